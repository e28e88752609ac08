"""The checks of the exercises of chapter 3. Each raises AssertionError with a hint if the answer is wrong."""


def exercise_3_1(mask) -> None:
    count, first = mask
    assert count == 4, "the three characters of the answer are learned, and the end token"
    assert first == ord("o"), "the first learned token is the first byte of the answer"


def exercise_3_2(count) -> None:
    assert count == 8 * (128 + 2 * 96 + 128 + 2 * 256 + 256), "each matrix of m x n gets 8 (m + n)"


def exercise_3_3(row) -> None:
    assert row == 96, "a group has the rows of its two query heads, of its key and of its value: 4 x 16 rows"
