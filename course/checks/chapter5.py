"""The checks of the exercises of chapter 5. Each raises AssertionError with a hint if the answer is wrong."""


def exercise_5_1(gigabytes) -> None:
    assert abs(gigabytes - 112) < 0.5, "each parameter takes 4 bytes, its gradient 4, and its two moments 8"


def exercise_5_2(share) -> None:
    assert abs(share - 3 / 16) < 1e-6, "the formula is (p - 1) / (v m)"


# Megabytes at the peak, as the chapter's formula has them: (micro-batch, recompute) -> MB.
_PEAKS = {
    (4, False): 98.7,
    (8, False): 156.2,
    (16, False): 271.2,
    (32, False): 501.3,
    (4, True): 64.3,
    (8, True): 76.9,
    (16, True): 102.1,
    (32, True): 157.4,
}


def exercise_5_3(flags) -> None:
    for chosen, budget in zip(flags, (160, 90), strict=True):
        size, recompute = chosen
        assert 32 % size == 0 and 32 // size <= 8, "at most eight equal micro-batches make 32 rows"
        assert _PEAKS[size, recompute] <= budget, f"{size} rows do not fit into {budget} MB"
        fitting = [rows for rows, way in _PEAKS if way == recompute and _PEAKS[rows, way] <= budget]
        assert size == max(fitting), f"a larger micro-batch fits into {budget} MB as well"
        assert not recompute or _PEAKS[4, False] > budget, f"{budget} MB need no recomputation"
