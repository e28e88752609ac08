"""Answers to the exercises of chapter 5."""

ANSWERS = {
    "5.1": 112,
    "5.2": 3 / 16,
    "5.3": ((8, False), (8, True)),
}
