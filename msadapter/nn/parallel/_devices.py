"""Batches over several devices of one process: scatter, replicate, parallel_apply, gather.

On the host every device is the same memory under another name, so the work is real and the gain is none.
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
    """A list with one entry for each device: tensors are cut along ``dim``, other objects repeated."""
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
    """(inputs, kwargs) of each device, as many of the one as of the other."""
    rows = scatter(inputs, target_gpus, dim) if inputs else []
    named = scatter(kwargs, target_gpus, dim) if kwargs else []
    rows += [()] * (len(named) - len(rows))
    named += [{}] * (len(rows) - len(named))
    return tuple(rows), tuple(named)


def gather(outputs, target_device, dim=0):
    """The outputs of the devices joined on one: tensors along ``dim``, numbers of 0-dim tensors as a vector."""
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
    """A copy of the module for each device, whose parameters are the originals' (their gradients meet in them)."""
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
    """The module itself, without its children, on another device."""
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
    """The output of each module for its inputs, each in a thread; the first error is raised here.

    Raises:
        AssertionError: lists of different lengths.
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
        except Exception as error:  # raised in the caller's thread
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
