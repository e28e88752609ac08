"""Batches over several devices of one process: scatter, replicate, parallel_apply and gather.

On a CPU all devices share the same memory. The functions do their work there, but nothing gets faster.
"""

from __future__ import annotations

import copy
import threading

from ... import ops
from ...autograd import is_grad_enabled, set_grad_enabled
from ...tensor import Tensor, device

__all__ = ["gather", "parallel_apply", "replicate", "scatter"]


def _device(value) -> device:
    return device("cuda", value) if isinstance(value, int) else device(value)


def _is_named(value) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_fields")


def scatter(inputs, target_gpus, dim=0):
    """Return a list with one entry for each device.

    Tensors are split along ``dim``, other objects repeated.
    """
    devices = [_device(d) for d in target_gpus]

    def spread(value):
        if isinstance(value, Tensor):
            parts = value.chunk(len(devices), dim)
            return [part.to(d) for part, d in zip(parts, devices, strict=False)]
        if _is_named(value):
            return [type(value)(*row) for row in zip(*map(spread, value), strict=False)]
        if isinstance(value, tuple) and value:
            return list(zip(*map(spread, value), strict=False))
        if isinstance(value, list) and value:
            return [list(row) for row in zip(*map(spread, value), strict=False)]
        if isinstance(value, dict) and value:
            return [type(value)(row) for row in zip(*map(spread, value.items()), strict=False)]
        return [value for _ in devices]

    return spread(inputs)


def scatter_kwargs(inputs, kwargs, target_gpus, dim=0):
    """Return (inputs, kwargs) for each device. The shorter of both lists is filled up with empty entries."""
    rows = scatter(inputs, target_gpus, dim) if inputs else []
    named = scatter(kwargs, target_gpus, dim) if kwargs else []
    rows += [()] * (len(named) - len(rows))
    named += [{}] * (len(rows) - len(named))
    return tuple(rows), tuple(named)


def gather(outputs, target_device, dim=0):
    """Join the outputs of all devices on ``target_device``.

    Tensors are concatenated along ``dim``. 0-dimensional tensors become one vector.
    """
    target = device("cpu") if target_device == "cpu" or target_device == -1 else _device(target_device)

    def join(values):
        first = values[0]
        if isinstance(first, Tensor):
            flat = [v.unsqueeze(0) if v.ndim == 0 else v for v in values]
            return ops.cat([v.to(target) for v in flat], dim)
        if first is None:
            return None
        if isinstance(first, dict):
            if any(len(v) != len(first) for v in values):
                raise ValueError("All dicts must have the same number of keys")
            return type(first)((key, join([v[key] for v in values])) for key in first)
        if _is_named(first):
            return type(first)._make(map(join, zip(*values, strict=True)))
        return type(first)(map(join, zip(*values, strict=True)))

    return join(outputs)


def replicate(network, devices, detach=False):
    """Return a copy of the module for each device.

    The copies use the original parameters (moved to the device), so their gradients add up in the originals.
    """
    made = []
    for where in map(_device, devices):
        twins: dict = {}
        for module in network.modules():
            twins[module] = _twin(module, where, detach)
        for module, twin in twins.items():
            for name, child in module._modules.items():
                twin._modules[name] = None if child is None else twins[child]
        made.append(twins[network])
    return made


def _twin(module, where, detach: bool):
    """Return a copy of one module on another device, without its children."""
    twin = copy.copy(module)
    twin.__dict__ = dict(module.__dict__)
    twin._modules, twin._buffers = {}, {}
    twin._parameters = {}
    twin._former_parameters = {}
    for name, param in module._parameters.items():
        found = None if param is None else (param.detach() if detach else param).to(where)
        twin._former_parameters[name] = found
        twin.__dict__[name] = found
    for name, buffer in module._buffers.items():
        twin._buffers[name] = None if buffer is None else buffer.to(where)
    return twin


def parallel_apply(modules, inputs, kwargs_tup=None, devices=None) -> list:
    """Call each module with its inputs, each in a thread of its own, and return the list of outputs.

    The first error is raised in the calling thread.

    Raises:
        AssertionError: the lists have different lengths.
    """
    if len(modules) != len(inputs):
        raise AssertionError(
            f"The number of modules {len(modules)} is not equal to the number of inputs {len(inputs)}"
        )
    named = ({},) * len(modules) if kwargs_tup is None else kwargs_tup
    if devices is not None and len(modules) != len(devices):
        raise AssertionError(
            f"The number of modules {len(modules)} is not equal to the number of devices {len(devices)}"
        )
    found: dict = {}
    recorded = is_grad_enabled()

    def work(i, module, given, options):
        try:
            with set_grad_enabled(recorded):
                given = given if isinstance(given, (list, tuple)) else (given,)
                found[i] = (module(*given, **options), None)
        except Exception as error:  # the calling thread raises it
            found[i] = (None, error)

    threads = [
        threading.Thread(target=work, args=(i, module, given, options))
        for i, (module, given, options) in enumerate(zip(modules, inputs, named, strict=True))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i in range(len(modules)):
        if found[i][1] is not None:
            raise found[i][1]
    return [found[i][0] for i in range(len(modules))]
