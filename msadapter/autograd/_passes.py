"""backward, grad and what both do around a pass of the engine."""

from __future__ import annotations

import contextlib
import functools
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from .. import ops
from .._host import extensions
from .._host.native import load
from .._host.warn import warn_once
from .._values.layout import LAYOUTS
from .._values.size import Size
from ..tensor import Tensor

_C = load()
STRIDED = LAYOUTS["strided"]


class GradientEdge(NamedTuple):
    """An output of a graph node. It stands for a tensor that this node made, also after the tensor has changed."""

    node: Any
    output_nr: int
    ownership_token: Any = None  # what keeps the node alive, if the node does not do so itself


class InputMetadata(NamedTuple):
    """What a node knows about one of the tensors that it made."""

    shape: Any
    dtype: Any
    is_nested_tensor: bool = False
    is_cpp_nested_tensor: bool = False


def input_metadata(node) -> list[InputMetadata | None]:
    """Return the metadata of a node's outputs in the forward. None stands for an output that is not known."""
    return [
        None if entry is None else InputMetadata(Size(entry[0]), entry[1])
        for entry in node._input_shapes_and_dtypes()
    ]


def _described(output):
    """Return what has the shape and dtype of a tensor, or of the tensor that an edge stands for."""
    return input_metadata(output.node)[output.output_nr] if isinstance(output, GradientEdge) else output


def _requires_grad(output) -> bool:
    return isinstance(output, GradientEdge) or output.requires_grad


def _sequence(x) -> tuple:
    return (x,) if isinstance(x, (Tensor, GradientEdge)) else tuple(x)


def _calculate_shape(output, grad, is_grads_batched: bool) -> tuple:
    """Return the shapes of an output and of its gradient, as messages name them.

    Of nested tensors with the strided layout they are the sizes of the parts, int64 (B, dims of a part). With
    ``is_grads_batched``, the first dim of the gradient is left out.
    """
    if (
        not isinstance(output, (GradientEdge, InputMetadata))
        and output.is_nested
        and output.layout is STRIDED
    ):
        return output._nested_tensor_size(), grad._nested_tensor_size()
    out = _described(output)
    return out.shape, grad.shape[1:] if is_grads_batched else grad.shape


def _mismatch(number: int, output, grad) -> RuntimeError:
    """Return the error for a gradient that has another shape than its output."""
    out_shape, grad_shape = _calculate_shape(output, grad, False)
    return RuntimeError(
        f"Mismatch in shape: grad_output[{number}] has a shape of {grad_shape} and output[{number}] has a shape of {out_shape}."
    )


def _ones_like(out: Tensor) -> Tensor:
    """Return ones without history. A class with `__torch_dispatch__` is asked once."""
    return ops.ones_like(out if _C.dispatches(out) else out.detach())


def _make_grads(outputs, grads, is_grads_batched: bool) -> list:
    """Return the gradients from which a pass over the outputs starts, and check those that are given.

    With is_grads_batched, the first dimension of each is the batch dimension.
    """
    if len(outputs) != len(grads):
        raise RuntimeError(f"got {len(outputs)} tensors and {len(grads)} gradients")
    made: list[Tensor | None] = []
    for place, g in zip(outputs, grads, strict=True):
        out = _described(place)
        if isinstance(g, Tensor):
            if is_grads_batched and g[0].shape != out.shape:
                raise RuntimeError(
                    "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch dimension. "
                    f"The sizes of the remaining dimensions are expected to match the shape of corresponding output, but a "
                    f"mismatch was detected: grad_output[{len(made)}] has a shape of {g.shape} and output[{len(made)}] has a "
                    f"shape of {out.shape}. If you only want some tensors in `grad_output` to be considered batched, "
                    "consider using vmap."
                )
            if not is_grads_batched and g.shape != out.shape:
                raise _mismatch(len(made), out, g)
            if out.dtype.is_complex != g.dtype.is_complex:
                raise RuntimeError(
                    f"For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: "
                    f"grad_output[{len(made)}] has a dtype of {g.dtype} and output[{len(made)}] has a dtype of {out.dtype}."
                )
            made.append(g if g.dtype is out.dtype else g.to(out.dtype))
        elif g is None:
            if _requires_grad(place):
                if out.shape.numel() != 1:
                    raise RuntimeError("grad can be implicitly created only for scalar outputs")
                if not out.dtype.is_floating_point:
                    raise RuntimeError(
                        f"grad can be implicitly created only for real scalar outputs but got {out.dtype}"
                    )
                like = isinstance(place, Tensor)
                made.append(_ones_like(out) if like else ops.ones(out.shape, dtype=out.dtype))
            else:
                made.append(None)
        else:
            raise TypeError(f"gradients can be either Tensors or None, but got {type(g).__name__}")
    return made


_make_single_grads = functools.partial(_make_grads, is_grads_batched=False)


class _Pass(threading.local):
    """The state of a thread's running backward pass."""

    whole = True  # whether every reachable leaf gets its gradient, which re-entrant checkpoints need
    depth = 0  # number of nested backward passes; the counter of operations asks for it


_pass = _Pass()
_DEEPEST = 60  # backward passes nested in one thread; PyTorch's engine changes the thread at the same depth


@contextlib.contextmanager
def without_leaves():
    """Within the block, this thread runs a pass that does not accumulate into `.grad` of the leaves."""
    outer, _pass.whole = _pass.whole, False
    try:
        yield
    finally:
        _pass.whole = outer


def _is_checkpoint_valid() -> bool:
    """Return whether a re-entrant checkpoint may run now.

    It may not run inside ``autograd.grad`` or ``backward(inputs=...)``, which do not reach every leaf.
    """
    return _pass.whole


def _execute(tensors, grads, inputs, *flags, make=_make_single_grads):
    for wrapper in (extensions.spread_backward.value, extensions.values_backward.value):
        if wrapper is not None and any(isinstance(x, wrapper[0]) for x in (*tensors, *inputs)):
            tensors, grads, inputs, results = wrapper[1](tensors, grads, inputs)
            found = _execute(tensors, grads, inputs, *flags, make=make)
            return results(found) if inputs and found is not None else found
    watch = extensions.before_backward.value
    if watch is not None:
        watch(tensors)
    outer = _pass.whole
    _pass.whole = outer and not inputs
    _pass.depth += 1
    try:
        run = functools.partial(_C.backward, tensors, make(tensors, grads), inputs, *flags)
        return _in_new_thread(run) if _pass.depth > _DEEPEST else run()
    except Exception:
        report = extensions.failed_backward.value
        if report is not None:
            report()
        raise
    finally:
        _pass.whole = outer
        _pass.depth -= 1


def _in_new_thread(function):
    """Return ``function()``, called in a thread with a stack of its own.

    A backward pass inside of a backward pass inside of another one would otherwise exhaust the stack of its thread.
    """
    with ThreadPoolExecutor(max_workers=1) as pool:
        return pool.submit(function).result()


def _one_each(grads, count: int) -> tuple:
    """Return a gradient (or None) for each of ``count`` tensors.

    ``grads`` is None, a tensor or a sequence.
    """
    if grads is None:
        return (None,) * count
    return (grads,) if isinstance(grads, Tensor) else tuple(grads)


def backward(
    tensors, grad_tensors=None, retain_graph=None, create_graph=False, grad_variables=None, inputs=None
):
    """Add the gradients of ``tensors`` to ``.grad`` of the graph's leaves (or only of ``inputs``).

    ``grad_tensors`` has the shapes of ``tensors``; it may be left out for tensors with one element. ``grad_variables`` is its
    older name.
    RuntimeError if a tensor does not require grad, if its graph has been freed, or inside of a function that torch.func transforms.
    """
    refuse = extensions.refuse_in_transform.value
    if refuse is not None:
        refuse("backward")
    if grad_variables is not None:
        warnings.warn(
            "`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning, stacklevel=2
        )
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. Please only use "
                "`grad_tensors`."
            )
        grad_tensors = grad_variables
    tensors = _sequence(tensors)
    if inputs is not None:
        inputs = _sequence(inputs)
        if not inputs:
            raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    grads = _one_each(grad_tensors, len(tensors))
    for t in inputs or ():
        if isinstance(t, Tensor) and t.requires_grad:
            t.retain_grad()  # without effect on leaves
    if create_graph:
        _warn_about_cycle()
    sparse = extensions.sparse_gradients.value
    if sparse is not None and any(isinstance(g, sparse[0]) for g in grads):
        tensors, grads = sparse[1](tensors, grads, bool(create_graph))
        if not tensors:
            return
    keep = create_graph if retain_graph is None else retain_graph
    _execute(tensors, grads, inputs or (), bool(keep), bool(create_graph), True, True)


def _warn_about_cycle() -> None:
    warn_once(
        "Using backward() with create_graph=True will create a reference cycle between the parameter and its gradient "
        "which can cause a memory leak. We recommend using autograd.grad when creating the graph to avoid this. If you "
        "have to use this function, make sure to reset the .grad fields of your parameters to None after use to break "
        "the cycle and avoid the leak.",
        stacklevel=4,
    )


def _tensor_backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None):
    """Add this tensor's gradients to ``.grad`` of the graph's leaves (see ``torch.autograd.backward``)."""
    backward(self, gradient, retain_graph, create_graph, inputs=inputs)


Tensor.backward = _tensor_backward


def grad(
    outputs,
    inputs,
    grad_outputs=None,
    retain_graph=None,
    create_graph=False,
    only_inputs=True,
    allow_unused=None,
    is_grads_batched=False,
    materialize_grads=False,
):
    """Return the gradients of ``outputs`` with respect to ``inputs`` as a tuple.

    ``.grad`` does not change.
    """
    if is_grads_batched:
        allow = materialize_grads if allow_unused is None else allow_unused
        result = _batched(outputs, inputs, grad_outputs, retain_graph, create_graph, allow)
        if materialize_grads:  # as in PyTorch, one zero gradient, not one for each row
            tensors = _sequence(inputs)
            result = tuple(
                _zeros_of(i, create_graph) if r is None else r for r, i in zip(result, tensors, strict=True)
            )
        return result
    outputs, inputs = _sequence(outputs), _sequence(inputs)
    if not inputs:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    grads = _one_each(grad_outputs, len(outputs))
    allow = materialize_grads if allow_unused is None else allow_unused
    for i, t in enumerate(outputs):
        if not _requires_grad(t):
            raise RuntimeError(f"element {i} of tensors does not require grad and does not have a grad_fn")
    keep = create_graph if retain_graph is None else retain_graph

    def run(vectors, create, used_again=False):
        def one(vectors, keep):
            return _execute(outputs, vectors, inputs, keep, create, bool(allow), False)

        keeps, batches = bool(keep) or used_again, extensions.batches.value
        return one(vectors, keeps) if batches is None else batches.gradients_of_each(one, vectors, keeps)

    follow = extensions.forward_gradients.value
    result = run(grads, bool(create_graph)) if follow is None else follow(run, grads, bool(create_graph))
    if materialize_grads:
        result = tuple(
            _zeros_of(i, create_graph) if r is None else r for r, i in zip(result, inputs, strict=True)
        )
    return result


def _zeros_of(place, requires_grad: bool):
    if not isinstance(place, Tensor):
        raise RuntimeError("materialize_grads cannot be used when the given input is a GradientEdge")
    return ops.zeros_like(place, requires_grad=requires_grad)


def _batched(outputs, inputs, grad_outputs, retain_graph, create_graph, allow_unused) -> tuple:
    """Return the gradients for every row of ``grad_outputs``, stacked. The rows run one after the other."""
    places = _sequence(outputs)
    vectors = (None,) * len(places) if grad_outputs is None else _sequence(grad_outputs)
    _make_grads(places, vectors, is_grads_batched=True)
    sizes = [v.shape[0] for v in vectors if v is not None]
    if len(set(sizes)) != 1:
        raise ValueError(
            "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
            f"{sizes} for the mapped dimension"
        )
    count, rows = sizes[0], []
    for i in range(count):
        keep = True if i < count - 1 else retain_graph
        row = [None if v is None else v[i] for v in vectors]
        rows.append(grad(outputs, inputs, row, keep, create_graph, allow_unused=allow_unused))
    return tuple(None if column[0] is None else ops.stack(column) for column in zip(*rows, strict=True))


class _Engine:
    """The autograd engine, under the name that PyTorch programs use."""

    @staticmethod
    def queue_callback(function):
        _C.queue_callback(function)

    @staticmethod
    def run_backward(
        tensors,
        grad_tensors,
        keep_graph,
        create_graph,
        inputs=(),
        allow_unreachable=False,
        accumulate_grad=False,
    ):
        """Like backward, but without a check of the tensors' shapes, because a tensor may have freed its
        memory.

        A gradient is only compared with the shape that its graph node knows.
        """
        return _execute(
            tensors,
            grad_tensors,
            inputs,
            keep_graph,
            create_graph,
            allow_unreachable,
            accumulate_grad,
            make=lambda _, grads: list(grads),
        )
