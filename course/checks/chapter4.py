"""The checks of the exercises of chapter 4. Each raises AssertionError with a hint if the answer is wrong."""

import math


def exercise_4_1(loss) -> None:
    assert math.isclose(loss, -2.4, abs_tol=1e-9), (
        "the ratio counts as 1.2, and the loss is minus the product with A"
    )


def exercise_4_2(advantages) -> None:
    first, second = advantages
    assert math.isclose(second, -0.25, abs_tol=1e-9), "the last delta is 0 + 0 - 0.25"
    assert math.isclose(first, 0.625, abs_tol=1e-9), (
        "the first is 1 + 0.25 - 0.5, and half of the second is added"
    )


def exercise_4_3(advantages) -> None:
    wanted = (-1 / math.sqrt(3), -1 / math.sqrt(3), 2 / math.sqrt(3))
    assert len(advantages) == 3 and all(
        math.isclose(a, b, abs_tol=1e-3) for a, b in zip(advantages, wanted, strict=True)
    ), "the mean is 1, and the unbiased standard deviation is the root of (1 + 1 + 4) / 2"
