"""The checks of the exercises of chapter 2. Each raises AssertionError with a hint if the answer is wrong."""


def exercise_2_1(offsets) -> None:
    assert list(offsets) == [0, 20, 28], "an id has four bytes; a document begins where the one before ends"


def exercise_2_2(weights) -> None:
    assert [round(w, 6) for w in weights] == [0.75, 0.25], "each row of the whole batch must count the same"


def exercise_2_3(count) -> None:
    assert count == 4, "8 ranks / (2 x 2) are 2 data-parallel ranks, each of which has 8 rows"
