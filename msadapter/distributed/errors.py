"""Errors of torch.distributed."""


class DistError(RuntimeError):
    """Any error of the distributed package."""


class DistBackendError(DistError):
    """An error of the backend."""


class DistNetworkError(DistError):
    """An error of the network."""


class DistStoreError(DistError):
    """An error of a store."""


class QueueEmptyError(DistStoreError):
    """A queue of a store is empty."""
