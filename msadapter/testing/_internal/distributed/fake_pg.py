"""The store for process groups of the backend "fake", whose ranks do not communicate."""

from ....distributed import Store


class FakeStore(Store):
    """A store that keeps nothing, because a "fake" group needs no store.

    Its operations raise NotImplementedError.
    """
