"""Answers to the exercises of chapter 3."""

ANSWERS = {
    "3.1": (4, 111),
    "3.2": 9728,
    "3.3": 96,
}
