"""Data parallelism: DistributedDataParallel for several processes, DataParallel for one process."""

from __future__ import annotations

from ..._host import accelerator as _accelerator
from ...autograd import is_grad_enabled
from ..modules.module import Module
from ._devices import _device, gather, parallel_apply, replicate, scatter, scatter_kwargs

__all__ = [
    "DataParallel",
    "DistributedDataParallel",
    "data_parallel",
    "gather",
    "parallel_apply",
    "replicate",
    "scatter",
]


class DataParallel(Module):
    """Splits the batch over the devices of this process and joins the outputs on the first device.

    A MindSpore process drives one device, so there is always a single part. The class exists so that programs
    that use it run unchanged.
    """

    def __init__(self, module, device_ids=None, output_device=None, dim=0):
        super().__init__()
        if device_ids is None:
            device_ids = list(range(_accelerator.device_count())) if _accelerator.is_available() else []
        self.module, self.dim = module, dim
        self.device_ids = [_device(d).index or 0 for d in device_ids]
        self.output_device = (
            (device_ids[0] if output_device is None else output_device) if device_ids else None
        )

    def forward(self, *inputs, **kwargs):
        """Return the module's output for the whole batch."""
        if not self.device_ids:
            return self.module(*inputs, **kwargs)
        rows, named = scatter_kwargs(inputs, kwargs, self.device_ids, self.dim)
        if not rows:
            rows, named = ((),), ({},)
        if len(self.device_ids) == 1:
            return self.module(*rows[0], **named[0])
        copies = replicate(self.module, self.device_ids[: len(rows)], not _recording())
        return gather(parallel_apply(copies, rows, named), self.output_device, self.dim)


def _recording() -> bool:
    return is_grad_enabled()


def data_parallel(module, inputs, device_ids=None, output_device=None, dim=0, module_kwargs=None):
    """Run ``module`` once like `DataParallel`."""
    inputs = inputs if isinstance(inputs, tuple) else () if inputs is None else (inputs,)
    return DataParallel(module, device_ids, output_device, dim)(*inputs, **(module_kwargs or {}))


def __getattr__(name):
    if name == "DistributedDataParallel":
        # here: torch.distributed is imported after torch.nn, because its packages import modules
        from .distributed import DistributedDataParallel

        return DistributedDataParallel
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
