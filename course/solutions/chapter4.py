"""Answers to the exercises of chapter 4."""

import math

ANSWERS = {
    "4.1": -2.4,
    "4.2": [0.625, -0.25],
    "4.3": [-1 / math.sqrt(3), -1 / math.sqrt(3), 2 / math.sqrt(3)],
}
