"""torch.autograd.graph: hooks on saved tensors, and graph nodes."""

from __future__ import annotations

import abc
import contextlib
import dataclasses
import threading

from .._host import extensions
from .._host.native import load
from ..tensor import Tensor
from ._functions import DelayedError, UndefinedGrad
from ._hooks import RemovableHandle
from ._passes import GradientEdge, input_metadata
from .function import FunctionCtx

_C = load()


class Node(abc.ABC):  # noqa: B024  # it has no methods: only its set of subclasses is asked for
    """A node of the autograd graph. This class is for ``isinstance`` only: nodes are made by the native engine."""

    @classmethod
    def __subclasshook__(cls, subclass):
        if cls is Node:
            return issubclass(subclass, (_C.Node, FunctionCtx, DelayedError, UndefinedGrad)) or NotImplemented
        return NotImplemented


_C.Node._input_metadata = property(input_metadata)


_refusal = threading.local()


def refusal_of_hooks() -> str | None:
    """Return why hooks on saved tensors are refused in this thread, or None."""
    return getattr(_refusal, "message", None)


class saved_tensors_hooks:
    """Inside this block, tensors saved for backward are replaced by ``pack_hook(tensor)``.

    Backward gets ``unpack_hook(packed)``, which must return a tensor with the same values.
    """

    def __init__(self, pack_hook, unpack_hook):
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook

    def __enter__(self):
        refusal = refusal_of_hooks()
        if refusal is not None:
            raise RuntimeError(refusal)
        _C.push_saved_hooks(self.pack_hook, self.unpack_hook)
        return self

    def __exit__(self, *exc):
        _C.pop_saved_hooks()


class save_on_cpu(saved_tensors_hooks):
    """Keep the tensors that are saved inside this block in CPU memory until backward."""

    def __init__(self, pin_memory=False, device_type="cuda"):
        super().__init__(lambda x: (x.device, x.cpu()), lambda packed: packed[1].to(packed[0]))


@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message: str):
    """Inside this block, ``saved_tensors_hooks`` raises RuntimeError with this message, in this thread."""
    if _C.saved_hooks_count():
        raise RuntimeError(error_message)
    previous = refusal_of_hooks()
    _refusal.message = error_message
    try:
        yield
    finally:
        _refusal.message = previous


def get_gradient_edge(tensor) -> GradientEdge:
    if not tensor.requires_grad:
        raise RuntimeError(
            "It is not possible to get the gradient edge of a Tensor that does not require gradients"
        )
    return GradientEdge(*_C.gradient_edge(tensor))


class _MultiHandle(RemovableHandle):
    """Removes the hooks of several tensors."""

    def __init__(self, handles: tuple[RemovableHandle, ...]):
        self.handles = handles

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()

    def __getstate__(self):
        return self.handles

    def __setstate__(self, state) -> None:
        self.handles = state


@dataclasses.dataclass
class _Arrivals:
    """The gradients that have arrived at the tensors of a multi-grad hook in one backward pass."""

    expected: int
    grads: list
    count: int = 0


def register_multi_grad_hook(tensors, fn, *, mode="all"):
    """Call fn(grads) once the gradients of all tensors have been computed, or fn(grad) for the first of them.

    ``mode`` is "all" or "any".
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    tensors = tuple(tensors)
    nodes = [_C.gradient_edge(t)[0] for t in tensors if t.requires_grad]
    passes: dict[int, _Arrivals] = {}  # of each running backward pass, because several threads may run one
    handles = []

    def make(i):
        def hook(grad):
            task = _C.current_graph_task_id()
            arrivals = passes.get(task)
            if arrivals is None:
                expected = 1 if mode == "any" else sum(node._will_execute() for node in nodes)
                arrivals = passes[task] = _Arrivals(expected, [None] * len(tensors))
                _C.queue_callback(lambda: passes.pop(task, None))
            arrivals.count += 1
            arrivals.grads[i] = grad
            if arrivals.count == arrivals.expected:
                fn(grad if mode == "any" else arrivals.grads)

        return hook

    for i, t in enumerate(tensors):
        if t.requires_grad:
            handles.append(t.register_hook(make(i)))

    return _MultiHandle(tuple(handles))


def allow_mutation_on_saved_tensors():
    """Return a context in which tensors that are saved for backward may be written (see utils/_mutation.py)."""
    return extensions.mutation_of_saved.value()


def increment_version(tensor):
    """Add one to the version of a tensor, or of each of several tensors, as an in-place write does.

    Inference tensors have no version and stay as they are.
    """
    for t in (tensor,) if isinstance(tensor, Tensor) else tensor:
        if not _C.is_inference(t):
            _C.bump_version(t)
