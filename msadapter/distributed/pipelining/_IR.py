"""Splits a model into stages at chosen places of its graph, which is recorded on an example microbatch."""

from __future__ import annotations

import enum
import functools
import operator
from dataclasses import dataclass
from typing import Any

from ... import nn
from ..._errors import unsupported
from ...fx import Graph, GraphModule
from ...fx._value_tracer import ValueTracer
from ...fx.node import map_arg
from .stage import build_stage

__all__ = ["Pipe", "SplitPoint", "annotate_split_points", "pipe_split", "pipeline"]
_recording: list[_PipeTracer] = []


class SplitPoint(enum.Enum):
    """Where a stage begins: before a module, or after it."""

    BEGINNING = 1
    END = 2


@dataclass
class PipeInfo:
    """What a stage has to know about the whole pipeline."""

    graph: Any
    num_stages: int
    has_loss_and_backward: bool


def pipe_split() -> None:
    """Begin a new stage here, while ``pipeline`` records the model. Does nothing otherwise."""
    if _recording and not _recording[-1].is_running:
        _recording[-1].mark()


class _PipeTracer(ValueTracer):
    """Records a model on an example, and marks where stages begin."""

    def __init__(self, split_spec: dict):
        super().__init__(sizes=False)
        self._spec = split_spec

    def is_leaf_module(self, m, module_qualified_name: str) -> bool:
        if any(name.startswith(module_qualified_name + ".") for name in self._spec):
            return False
        return super().is_leaf_module(m, module_qualified_name)

    def decide(self, value, kind: type):
        raise RuntimeError(
            f"pipeline() cannot record a model that turns a tensor into a Python {kind.__name__}, as data-dependent control flow "
            "does. Make a PipelineStage of each part by hand instead."
        )

    def mark(self) -> None:
        """Begin a new stage at this place of the graph."""
        self.create_node("call_function", pipe_split, (), {})

    def call_module(self, m, forward, args, kwargs):
        if self.is_running:
            return forward(*args, **kwargs)
        where = self._spec.get(self.path_of_module(m))
        if where is SplitPoint.BEGINNING:
            self.mark()
        result = super().call_module(m, forward, args, kwargs)
        if where is SplitPoint.END:
            self.mark()
        return result


def annotate_split_points(mod: nn.Module, spec: dict[str, SplitPoint]) -> None:
    """Note on submodules, by their names, where stages begin. ``pipeline`` reads it."""
    for name, where in spec.items():
        module = functools.reduce(getattr, name.split("."), mod)
        module._pipe_split_at = SplitPoint(where)


class Pipe(nn.Module):
    """A model split into stages. Calling it runs them one after the other, and returns a tuple.

    Attributes:
        split_gm: a graph that calls the stages ``submod_pp_0``, ``submod_pp_1`` and so on.
        num_stages: how many there are.
    """

    def __init__(
        self, split_gm: GraphModule, num_stages: int, has_loss_and_backward: bool = False, loss_spec=None
    ):
        super().__init__()
        self.split_gm, self.num_stages = split_gm, num_stages
        self.has_loss_and_backward, self.loss_spec = has_loss_and_backward, loss_spec

    def forward(self, *args, **kwargs):
        return self.split_gm(*args, **kwargs)

    def get_stage_module(self, stage_idx: int) -> nn.Module:
        """Return the module of a stage. ValueError if there is none of this number."""
        if stage_idx < 0 or stage_idx >= self.num_stages:
            raise ValueError(f"Invalid stage index {stage_idx}!")
        return getattr(self.split_gm, f"submod_pp_{stage_idx}")

    def info(self) -> PipeInfo:
        """Return what ``build_stage`` needs."""
        return PipeInfo(self.split_gm.graph, self.num_stages, self.has_loss_and_backward)

    def build_stage(self, stage_index: int, device, group=None):
        """Return the stage that this rank computes."""
        return build_stage(self.get_stage_module(stage_index), stage_index, self.info(), device, group)

    def print_readable(self) -> None:
        """Print the stages as Python."""
        self.split_gm.print_readable()

    def __str__(self) -> str:
        return str(self.split_gm)

    @staticmethod
    def from_tracing(mod, example_args, example_kwargs=None, split_policy=None) -> Pipe:
        """Record a model on an example and split it where ``pipe_split`` was called."""
        return pipeline(mod, example_args, example_kwargs, split_policy=split_policy)


def pipeline(module, mb_args, mb_kwargs=None, split_spec=None, split_policy=None) -> Pipe:
    """Split a model into stages.

    Sizes and everything else but tensors are constants: each microbatch has to look like the example.

    Args:
        mb_args, mb_kwargs: an example of a microbatch.
        split_spec: where stages begin, by the names of modules; besides calls of ``pipe_split`` in the model.
        split_policy: gets the GraphModule of the whole model and returns it with calls of ``pipe_split``.
    """
    if split_spec is not None and split_policy is not None:
        raise ValueError("Cannot specify both `split_spec` and `split_policy`. Please use only one of them.")
    spec = {name: m._pipe_split_at for name, m in module.named_modules() if hasattr(m, "_pipe_split_at")}
    for name, where in (split_spec or {}).items():
        functools.reduce(getattr, name.split("."), module)
        spec[name] = SplitPoint(where)
    tracer = _PipeTracer(spec)
    _recording.append(tracer)
    try:
        graph = tracer.trace_values(module, tuple(mb_args), dict(mb_kwargs or {}))
    finally:
        _recording.pop()
    whole = GraphModule(tracer.root, graph, type(module).__name__)
    if split_policy is not None:
        whole = split_policy(whole)
    return _split(whole)


def _segments(graph) -> tuple[list, list[list], Any]:
    """Return the placeholders, the nodes of every stage, and the value of the graph's output."""
    inputs: list = []
    stages: list[list] = [[]]
    for node in graph.nodes:
        if node.op == "placeholder":
            inputs.append(node)
        elif node.op == "output":
            return inputs, stages, node.args[0]
        elif node.target is not pipe_split:
            stages[-1].append(node)
        elif any(n.op != "get_attr" for n in stages[-1]):
            stages.append([])
    raise ValueError("the graph of the model has no output")


def _used(value) -> list:
    found: list = []
    map_arg(value, lambda node: found.append(node) or node)
    return found


def _needed(nodes) -> set:
    return {used for node in nodes for used in _used((node.args, node.kwargs))}


def _check_state(stages) -> None:
    """NotImplementedError if two stages use the same parameter or module, which would need its gradients from both."""
    first: dict[str, int] = {}
    for number, nodes in enumerate(stages):
        for node in nodes:
            if node.op in ("get_attr", "call_module") and first.setdefault(node.target, number) != number:
                raise unsupported(
                    "torch.distributed.pipelining.pipeline",
                    f"the stages {first[node.target]} and {number} both use {node.target}, which is not supported",
                )


def _split(whole: GraphModule) -> Pipe:
    inputs, stages, result = _segments(whole.graph)
    if stages[1:] and not stages[-1]:
        stages.pop()  # a split after the last module
    attributes = {node: node for nodes in stages for node in nodes if node.op == "get_attr"}
    last_needs = [_needed(nodes) for nodes in stages]
    last_needs[-1] |= set(_used(result))
    stages = [
        [n for n in attributes if n in needs] + [n for n in nodes if n.op != "get_attr"]
        for nodes, needs in zip(stages, last_needs, strict=True)
    ]
    _check_state(stages)
    outer, holder = Graph(), nn.Module()
    place = {node: outer.node_copy(node) for node in inputs}
    entering, known = inputs, list(inputs)
    for number, nodes in enumerate(stages):
        known += [node for node in nodes if node.op != "get_attr"]
        later = set().union(*last_needs[number + 1 :])
        leaving = [node for node in known if node in later]
        is_last = number == len(stages) - 1
        graph = _stage_graph(entering, nodes, result if is_last else _one_or_all(leaving))
        name = f"submod_pp_{number}"
        setattr(holder, name, GraphModule(whole, graph, name))
        called = outer.call_module(name, tuple(place[node] for node in entering))
        if is_last:
            outer.output(called if isinstance(result, (tuple, list, dict)) else (called,))
        elif len(leaving) == 1:
            place[leaving[0]] = called
        else:
            for i, node in enumerate(leaving):
                place[node] = outer.call_function(operator.getitem, (called, i))
        entering = leaving
    return Pipe(GraphModule(holder, outer, "GraphModule"), len(stages))


def _one_or_all(nodes: list):
    return nodes[0] if len(nodes) == 1 else tuple(nodes)


def _stage_graph(entering, nodes, result) -> Graph:
    graph = Graph()
    made: dict = {}
    for node in entering:
        made[node] = graph.node_copy(node) if node.op == "placeholder" else graph.placeholder(node.name)
    for node in nodes:
        made[node] = graph.node_copy(node, lambda n: made[n])
    graph.output(map_arg(result, lambda n: made[n]))
    return graph
