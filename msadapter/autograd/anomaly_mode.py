"""torch.autograd.anomaly_mode: find the forward operation whose backward returns nan.

While the mode is on, the graph nodes of every operation keep the Python stack of its call, and get a hook
that checks the gradients that they return.
"""

from __future__ import annotations

import dataclasses
import sys
import traceback
import warnings
from pathlib import Path

from .. import ops
from .._host import extensions
from .._host.native import load
from ..overrides import TorchFunctionMode, _modes
from ..tensor import Tensor

_C = load()
__all__ = ["detect_anomaly", "set_detect_anomaly"]
_KEY = "traceback_"  # the key of the stack in a node's metadata, as in PyTorch
_state = {"mode": None, "check_nan": True}


def _tensors(value):
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for v in value:
            yield from _tensors(v)


@dataclasses.dataclass(eq=False)
class _Record:
    """What is known of a node: the stack of the call that made it, or None, and the node that ran then, in a backward pass."""

    name: str
    stack: list[str] | None
    parent: _Record | None


_running: list[_Record] = []  # the nodes that run now, the innermost last


class _Entry:
    """A hook of a node before it runs."""

    def __init__(self, record: _Record):
        self.record = record

    def __call__(self, grad_outputs) -> None:
        _running.append(self.record)


class _Checker:
    """A hook of a node that refuses nan gradients."""

    def __init__(self, record: _Record):
        self.record = record

    def __call__(self, grad_inputs, grad_outputs) -> None:
        for i, g in enumerate(grad_inputs if _state["check_nan"] else ()):
            if g is None or not (g.dtype.is_floating_point or g.dtype.is_complex):
                continue
            if bool(ops.isnan(g.detach()).any()):
                raise RuntimeError(f"Function '{self.record.name}' returned nan values in its {i}th output.")
        while (
            _running and _running.pop() is not self.record
        ):  # nodes below it have failed, and the program went on
            pass


def _report() -> None:
    """Tell which node has failed, and which nodes made it."""
    record, text = _running[-1] if _running else None, "Error detected in {}."
    _running.clear()
    while record is not None:
        _warn(text.format(record.name) + _origin(record))
        record, text = record.parent, "\n\nPrevious calculation was induced by {}."


def _origin(record: _Record) -> str:
    if record.stack is None:
        return " No forward pass information available. Enable detect anomaly during forward pass for more information."
    return f" Traceback of forward call that caused the error:\n{''.join(record.stack)}"


def _warn(text: str) -> None:
    try:
        warnings.warn(text, stacklevel=4)
    except Warning:  # where warnings are errors; the error of the node must not be lost
        print(text, file=sys.stderr)


def _is_marked(node) -> bool:
    """Whether a node has its hook already. The hooks belong to the node, whose Python object may be created again."""
    return any(isinstance(hook, _Checker) for hook in node._hooks("post").values())


_OWN = tuple(
    str(Path(__file__).parents[1] / part)
    for part in ("overrides.py", "autograd/anomaly_mode.py", "autograd/function.py", "ops/", "tensor/")
)


def _stack_of_the_call() -> list[str]:
    """Return the stack down to the call of the operator, without the frames that run it."""
    frames = traceback.extract_stack()
    while frames and frames[-1].filename.startswith(_OWN):
        frames.pop()
    return frames.format()


def _watch(result) -> None:
    """Mark the graph nodes behind a result, as far as they have not been marked."""
    _mark(result, _stack_of_the_call)


def _mark(result, stack_of) -> None:
    stack, parent, known = None, _running[-1] if _running else None, False
    todo = [x.grad_fn for x in _tensors(result) if x.grad_fn is not None]
    while todo:
        node = todo.pop()
        if node is None or _is_marked(node):
            continue
        if not known:
            stack, known = stack_of(), True
        if node.name() == "torch::autograd::AccumulateGrad":  # it has no results that could be checked
            if stack is not None:
                node.metadata.setdefault(_KEY, stack)
            continue
        if stack is not None:
            node.metadata[_KEY] = stack
        record = _Record(node.name(), stack, parent)
        node.register_prehook(_Entry(record))
        node.register_hook(_Checker(record))
        todo.extend(following for following, _ in node.next_functions)


def _before(roots) -> None:
    """Mark the nodes that were made before the mode was switched on."""
    _mark(roots, lambda: None)


def _make_mode():
    class Anomaly(TorchFunctionMode):
        """Sees every operation and marks the graph nodes that it has created."""

        def __torch_function__(self, function, types, args=(), kwargs=None):
            result = function(*args, **(kwargs or {}))
            if _C.is_grad_enabled():
                _watch(result)
            return result

    return Anomaly()


def _switch(on: bool) -> None:
    mode = _state["mode"]
    if on and mode is None:
        _state["mode"] = _make_mode().__enter__()
        extensions.before_backward.provide(_before)
        extensions.failed_backward.provide(_report)
        extensions.applied_function.provide(_watch)
    elif not on and mode is not None:
        stack = _modes()
        if mode in stack:
            stack.remove(mode)
            _C.add_torch_function_modes(-1)
        _state["mode"] = None
        for point in (extensions.before_backward, extensions.failed_backward, extensions.applied_function):
            point.withdraw()
        _running.clear()


class set_detect_anomaly:
    """Switch the mode on or off immediately. As a context manager, restore it at the end."""

    def __init__(self, mode: bool, check_nan: bool = True):
        self._previous = (_state["mode"] is not None, _state["check_nan"])
        _switch(bool(mode))
        _state["check_nan"] = check_nan

    def __enter__(self):
        pass

    def __exit__(self, *exc):
        on, _state["check_nan"] = self._previous
        _switch(on)


class detect_anomaly(set_detect_anomaly):
    """Inside this block, a backward that returns nan raises RuntimeError and prints the forward call."""

    def __init__(self, check_nan: bool = True):
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for "
            "debugging.",
            stacklevel=2,
        )
        self._previous, self._wanted = (_state["mode"] is not None, _state["check_nan"]), check_nan

    def __enter__(self):
        _switch(True)
        _state["check_nan"] = self._wanted


def is_anomaly_enabled() -> bool:
    """Return whether the mode is on."""
    return _state["mode"] is not None


def is_anomaly_check_nan_enabled() -> bool:
    """Return whether gradients are checked for nan while the mode is on."""
    return bool(_state["check_nan"])


def set_anomaly_enabled(enabled: bool, check_nan: bool = True) -> None:
    """Switch anomaly detection on or off, until the next call."""
    set_detect_anomaly(enabled, check_nan)
