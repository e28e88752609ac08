"""The checks of the exercises of chapter 5. Each raises AssertionError with a hint if the answer is wrong."""


def exercise_5_1(gigabytes) -> None:
    assert abs(gigabytes - 112) < 0.5, "each parameter takes 4 bytes, its gradient 4, and its two moments 8"


def exercise_5_2(share) -> None:
    assert abs(share - 3 / 16) < 1e-6, "the formula is (p - 1) / (v m)"


def exercise_5_3(flags) -> None:
    for (size, recompute), budget in zip(flags, (45_000_000, 24_000_000), strict=True):
        assert 32 % size == 0 and 32 // size <= 8, "at most eight equal micro-batches make 32 rows"
        assert _activations(size, recompute) <= budget, f"{size} rows do not fit into {budget} bytes"
        assert not recompute or _activations(4, False) > budget, f"{budget} bytes need no recomputation"
        larger = [rows for rows in (4, 8, 16, 32) if rows > size]
        assert not any(_activations(rows, recompute) <= budget for rows in larger), (
            f"a larger micro-batch fits into {budget} bytes as well"
        )


def _activations(batch: int, recompute: bool) -> int:
    """The bytes of Shape(layers=6, hidden=192, batch=..., recompute=...), with the sizes of the memory pool."""
    tokens, hidden, heads, vocabulary, layers = 128 * batch, 192, 4, 256, 6
    block = 5 * _pool(tokens * hidden) + _pool(3 * tokens * hidden) + 2 * _pool(4 * tokens * hidden)
    block += _pool(tokens * heads) + 4 * _pool(tokens)
    around = 2 * _pool(tokens * hidden) + 2 * _pool(tokens * vocabulary)
    return layers * (_pool(tokens * hidden) if recompute else block) + around


def _pool(numbers: int) -> int:
    power = 1 << (4 * numbers - 1).bit_length()
    return power * 3 // 4 if power * 3 // 4 >= 4 * numbers else power
