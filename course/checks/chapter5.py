"""The checks of the exercises of chapter 5. Each raises AssertionError with a hint if the answer is wrong."""


def exercise_5_1(gigabytes) -> None:
    assert abs(gigabytes - 112) < 0.5, "each parameter takes 4 bytes, its gradient 4, and its two moments 8"


def exercise_5_2(share) -> None:
    assert abs(share - 3 / 16) < 1e-6, "the formula is (p - 1) / (v m)"


def exercise_5_3(batches) -> None:
    assert tuple(batches) == _largest(), (
        "count 16 h + heads + 4 numbers a token and block without recomputation, h with it, and 2 h + 2 V around the blocks"
    )


def _largest(
    budget=45_000_000, layers=6, hidden=192, heads=4, sequence=128, vocabulary=256
) -> tuple[int, int]:
    around = 2 * hidden + 2 * vocabulary
    token = (layers * (16 * hidden + heads + 4) + around, layers * hidden + around)
    without, with_recompute = (budget // (4 * sequence * numbers) for numbers in token)
    return without, with_recompute
