"""make_fx: the graph of what a function did with example values, through all its modules."""

from __future__ import annotations

import functools

from ... import autograd, nn
from ..._errors import unsupported
from ..._values.base import as_leaf
from ...tensor import Tensor
from .._value_tracer import ValueTracer
from ..graph_module import GraphModule

__all__ = ["get_proxy_mode", "make_fx"]
_tracers: list[_OperatorTracer] = []  # of the calls of make_fx that run now, the innermost last


class _OperatorTracer(ValueTracer):
    """Records the operators of a function. Modules are looked through, and everything but tensors is constant."""

    def __init__(self):
        super().__init__(sizes=False)
        self._autowrap_search.append(autograd)
        self._autowrap_function_ids |= {id(autograd.grad), id(autograd.backward)}

    def is_leaf_module(self, m, module_qualified_name: str) -> bool:
        return False

    def decide(self, value, kind: type):
        raise RuntimeError(
            f"It appears that you're trying to get a {kind.__name__} out of a traced tensor. It's likely that this is caused by "
            "data-dependent control flow or similar, which make_fx cannot record."
        )

    def placeholder_name(self, name: str) -> str:
        return f"{name}_1"


def get_proxy_mode():
    """Return what records operators now, or None outside of make_fx. Programs only ask whether there is something."""
    return _tracers[-1] if _tracers else None


def _requiring_grad(x: Tensor) -> Tensor:
    """Return a tensor that requires a gradient, as the example did."""
    return x if x.requires_grad else as_leaf(x.detach())


def _computes_gradients(graph) -> bool:
    return any(
        node.target in (autograd.grad, autograd.backward)
        or (node.op == "call_method" and node.target == "backward")
        for node in graph.nodes
    )


def _prepare_inputs(graph, needing: list[bool]) -> None:
    """Make a graph with a backward pass independent of whether its inputs require gradients."""
    inputs = [node for node in graph.nodes if node.op == "placeholder"]
    for node, needs in zip(inputs, needing, strict=True):
        if needs:
            with graph.inserting_before(inputs[-1].next):
                made = graph.call_function(_requiring_grad, (node,))
            node.replace_all_uses_with(made, delete_user_cb=lambda user, made=made: user is not made)


def make_fx(
    f, decomposition_table=None, tracing_mode="real", _allow_non_fake_inputs=False, *, pre_dispatch=False,
    record_module_stack=False, _allow_fake_constant=False, _error_on_data_dependent_ops=True, record_stack_traces=False,
):  # fmt: skip
    """Return a function that runs ``f`` on examples and returns a GraphModule of what it did.

    The graph calls torch's functions and methods; sizes and numbers are constants. A call of ``torch.autograd.grad`` or of
    ``backward`` is one call in the graph, not the operators of the backward pass.
    """
    if tracing_mode not in ("real", "fake", "symbolic"):
        raise AssertionError(f"tracing_mode must be real/fake/symbolic, got {tracing_mode}")
    if tracing_mode != "real":
        raise unsupported(
            "torch.fx.experimental.proxy_tensor.make_fx", f"tracing_mode={tracing_mode!r} is not supported"
        )
    if decomposition_table:
        raise unsupported(
            "torch.fx.experimental.proxy_tensor.make_fx", "decomposition_table is not supported"
        )

    @functools.wraps(f if not isinstance(f, nn.Module) else f.forward)
    def wrapped(*args, **kwargs):
        tracer = _OperatorTracer()
        function = f.forward if isinstance(f, nn.Module) else f
        _tracers.append(tracer)
        try:
            graph = tracer.trace_values(function, args, kwargs)
        finally:
            _tracers.pop()
        if _computes_gradients(graph):
            _prepare_inputs(graph, tracer.inputs_needing_gradients)
        return GraphModule(tracer.root, graph, getattr(f, "__name__", type(f).__name__))

    return wrapped
