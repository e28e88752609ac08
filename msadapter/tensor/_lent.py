"""The memory that a numpy array and a tensor have in common. A storage there cannot be resized, because it would move."""

from __future__ import annotations

import collections

lent: collections.Counter = collections.Counter()  # how often memory is lent, by its address


class Loan:
    """Counts memory as lent while this object lives."""

    __slots__ = ("address",)

    def __init__(self, address: int):
        self.address = address
        lent[address] += 1

    def __del__(self):
        lent[self.address] -= 1
        if not lent[self.address]:
            del lent[self.address]
