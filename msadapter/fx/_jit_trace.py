"""torch.jit.trace: functions and modules as graphs of what they did with example inputs."""

from __future__ import annotations

import warnings

from .. import nn
from .._errors import unsupported
from ..jit import ScriptFunction, ScriptModule, TracerWarning
from ..tensor import Tensor
from ..testing import assert_close
from ..utils import _pytree as pytree
from ._value_tracer import ValueTracer
from .graph_module import GraphModule, _assign
from .proxy import Proxy

__all__ = ["TopLevelTracedModule", "TracedFunction", "traced"]


def _refuse(name: str):
    raise unsupported(f"torch.jit.{name}", "TorchScript archives are not supported")


class TopLevelTracedModule(GraphModule, ScriptModule):
    """A traced module: a graph with the parameters, buffers and modules of the original.

    Attributes:
        graph, code: what was recorded, as torch.fx writes it.
    """

    @property
    def original_name(self) -> str:
        """The name of the class that was traced."""
        return type(self).__name__

    @property
    def inlined_graph(self):
        """The graph. Calls of torch.nn's modules stay calls."""
        return self.graph

    def save(self, f, **options) -> None:
        """Not supported: raises NotImplementedError."""
        _refuse("save")


class TracedFunction(ScriptFunction):
    """A traced function: a graph that is called like the function."""

    def __init__(self, module, name: str):
        self._module, self.name, self.__name__ = module, name, name

    def __call__(self, *args, **kwargs):
        return self._module(*args, **kwargs)

    @property
    def graph(self):
        """What was recorded."""
        return self._module.graph

    inlined_graph = graph

    @property
    def code(self) -> str:
        """The graph as Python."""
        return self._module.code

    def save(self, f, **options) -> None:
        """Not supported: raises NotImplementedError."""
        _refuse("save")


class _JitTracer(ValueTracer):
    """Refuses results that torch.jit.trace refuses."""

    def __init__(self, strict: bool):
        super().__init__(TracerWarning)
        self._strict = strict

    def create_node(self, kind, target, args, kwargs, name=None, type_expr=None):
        if kind == "output":
            self._check(args[0], outermost=True)
        return super().create_node(kind, target, args, kwargs, name, type_expr)

    def _check(self, result, outermost=False) -> None:
        if result is None and outermost:
            raise RuntimeError(
                "The traced function didn't return any values! Side-effects are not captured in traces, so it would be a "
                "no-op."
            )
        value = self.value_of(result) if hasattr(result, "graph") else result
        if isinstance(value, dict) and self._strict:
            raise RuntimeError(
                "Encountering a dict at the output of the tracer might cause the trace to be incorrect, this is only valid if "
                "the container structure does not change based on the module's inputs. Consider using a constant container "
                "instead (e.g. for `list`, use a `tuple` instead. for `dict`, use a `NamedTuple` instead). If you absolutely "
                "need this and know the side effects, pass strict=False to trace() to allow this behavior."
            )
        for leaf in pytree.tree_leaves(value):
            leaf = self.value_of(leaf) if hasattr(leaf, "graph") else leaf
            if not isinstance(leaf, Tensor) or isinstance(leaf, Proxy):
                raise RuntimeError(
                    "Only tensors, lists, tuples of tensors, or dictionary of tensors can be output from traced functions"
                )


def _examples(inputs, named) -> tuple[tuple, dict]:
    if inputs is None:
        args: tuple = ()
    elif isinstance(inputs, Tensor):
        args = (inputs,)
    elif isinstance(inputs, dict):
        raise RuntimeError(
            "example_inputs must be a tensor or a tuple of tensors; give a dict as example_kwarg_inputs"
        )
    else:
        args = tuple(inputs)
    for value in (*args, *(named or {}).values()):
        if not all(isinstance(leaf, Tensor) for leaf in pytree.tree_leaves(value)):
            raise RuntimeError(
                f"Type '{type(value).__name__}' cannot be traced. Only Tensors and (possibly nested) Lists, Dicts, and Tuples of "
                "Tensors can be traced"
            )
    return args, dict(named or {})


def _copies(values):
    return pytree.tree_map_only(Tensor, lambda t: t.detach().clone().requires_grad_(t.requires_grad), values)


def _compare(program, made, args, kwargs, tolerance: float) -> None:
    """Warn if the graph gives other results than the program."""
    want, got = program(*_copies(args), **_copies(kwargs)), made(*_copies(args), **_copies(kwargs))
    for i, (one, other) in enumerate(zip(pytree.tree_leaves(want), pytree.tree_leaves(got), strict=True), 1):
        try:
            assert_close(other.detach(), one.detach(), rtol=tolerance, atol=tolerance, equal_nan=True)
        except AssertionError as error:
            warnings.warn(
                f"Output nr {i}. of the traced function does not match the corresponding output of the Python function. "
                f"Detailed error:\n{error}",
                TracerWarning,
                stacklevel=5,
            )


def traced(program, inputs, named, *, check=True, check_inputs=None, tolerance=1e-5, strict=True):
    """Return the TopLevelTracedModule of a module, or the TracedFunction of a function."""
    args, kwargs = _examples(inputs, named)
    tracer = _JitTracer(strict)
    graph = tracer.trace_values(program, args, kwargs)
    is_module = isinstance(program, nn.Module)
    name = type(program).__name__ if is_module else getattr(program, "__name__", type(program).__name__)
    made = (TopLevelTracedModule if is_module else GraphModule)(tracer.root, graph, name)
    if is_module:
        _complete(made, program)
    result = made if is_module else TracedFunction(made, name)
    if check:
        for more in [args, *(_examples(one, None)[0] for one in check_inputs or ())]:
            _compare(program, result, more, kwargs if more is args else {}, tolerance)
    return result


def _complete(made, program) -> None:
    """Give a traced module also those parameters and buffers that its graph does not name, for its state dict."""
    own = {*dict(made.named_parameters()), *dict(made.named_buffers())}
    kept = set(program.state_dict())
    for name, value in [*program.named_parameters(), *program.named_buffers()]:
        if name not in own and name in kept:
            _assign(name, value, made)
    made.training = program.training
