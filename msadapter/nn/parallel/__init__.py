"""Data parallelism: DistributedDataParallel comes from the distributed package; DataParallel is refused."""

from ..modules.module import Module

__all__ = ["DataParallel", "DistributedDataParallel"]


class DataParallel(Module):
    """One process driving several devices: not offered, as one MindSpore process drives one device."""

    def __init__(self, module, device_ids=None, output_device=None, dim=0):
        super().__init__()
        raise NotImplementedError(
            "torch.nn.DataParallel: one process with several devices is not supported; use "
            "torch.nn.parallel.DistributedDataParallel (docs/coverage.md)"
        )


def data_parallel(module, inputs, device_ids=None, output_device=None, dim=0, module_kwargs=None):
    """Refused for the same reason as :class:`DataParallel`."""
    raise NotImplementedError(
        "torch.nn.parallel.data_parallel: one process with several devices is not supported; "
        "use torch.nn.parallel.DistributedDataParallel (docs/coverage.md)"
    )


def __getattr__(name):
    # Looked up when asked for: the distributed package builds on modules.
    if name == "DistributedDataParallel":
        from .distributed import DistributedDataParallel

        return DistributedDataParallel
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
