"""The store of process groups of the backend "fake", whose ranks never meet."""

from ....distributed import Store


class FakeStore(Store):
    """A store that keeps nothing: its operations raise NotImplementedError, a "fake" group does not need them."""
