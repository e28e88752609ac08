"""Answers to the exercises of chapter 2."""

ANSWERS = {
    "2.1": [0, 20, 28],
    "2.2": [0.75, 0.25],
    "2.3": 4,
}
