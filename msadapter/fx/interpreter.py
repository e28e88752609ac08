"""Runs a graph node by node, and transforms graphs."""

from __future__ import annotations

from .. import nn
from ._symbolic_trace import Tracer
from .graph import Graph
from .graph_module import GraphModule, _read
from .node import map_aggregate, map_arg
from .proxy import Proxy

__all__ = ["Interpreter", "Transformer"]


class Interpreter:
    """Runs a GraphModule. Subclasses can override the methods for each kind of node."""

    def __init__(self, module, garbage_collect_values: bool = True, graph: Graph | None = None):
        self.module, self.submodules = module, dict(module.named_modules())
        self.graph = graph if graph is not None else module.graph
        self.env: dict = {}
        self.garbage_collect_values = garbage_collect_values
        self._last: dict = {}
        if garbage_collect_values:
            seen = set()
            for node in reversed(list(self.graph.nodes)):
                for x in node.all_input_nodes:
                    if x not in seen:
                        seen.add(x)
                        self._last.setdefault(node, []).append(x)

    def run(self, *args, initial_env=None, enable_io_processing: bool = True):
        """The output for these inputs."""
        self.env = dict(initial_env or {})
        self.args_iter = iter(args)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            self.env[node] = self.run_node(node)
            for dead in self._last.get(node, ()):
                self.env.pop(dead, None)
            if node.op == "output":
                return self.env[node]
        return None

    def run_node(self, n):
        """The value of one node."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        return getattr(self, n.op)(n.target, args, kwargs)

    def placeholder(self, target, args, kwargs):
        """The next input."""
        if target.startswith("*"):
            return list(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration:
            if args:
                return args[0]
            raise RuntimeError(
                f"Expected positional argument for parameter {target}, but one was not passed in!"
            ) from None

    def get_attr(self, target, args, kwargs):
        """An attribute of the module."""
        return self.fetch_attr(target)

    def call_function(self, target, args, kwargs):
        """The result of a function."""
        return target(*args, **kwargs)

    def call_method(self, target, args, kwargs):
        """The result of a method."""
        own, *rest = args
        return getattr(own, target)(*rest, **kwargs)

    def call_module(self, target, args, kwargs):
        """The result of a submodule."""
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target, args, kwargs):
        """The result of the graph."""
        return args[0]

    def fetch_attr(self, target: str):
        """What is at a dotted path of the module."""
        return _read(self.module, target)

    def fetch_args_kwargs_from_env(self, n):
        """Arguments of a node with values in the places of nodes."""
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)

    def map_nodes_to_values(self, args, n):
        """Values in the places of nodes."""
        return map_arg(args, lambda x: self.env[x])


class Transformer(Interpreter):
    """Runs a graph with proxies to create a new one. Subclasses can change nodes."""

    def __init__(self, module):
        super().__init__(module)
        self.new_graph = Graph()

        self.tracer = Tracer()
        self.tracer.graph, self.tracer.root = self.new_graph, module
        self.tracer.is_leaf_module = lambda m, name: True

    def placeholder(self, target, args, kwargs):
        default = args[0] if args else ...
        return Proxy(self.new_graph.placeholder(target, default_value=default), self.tracer)

    def get_attr(self, target, args, kwargs):
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(self, target, args, kwargs):
        if not isinstance(self.fetch_attr(target), nn.Module):
            raise AssertionError(f"{target} is not a module")
        return self.tracer.create_proxy("call_module", target, args, kwargs)

    def call_function(self, target, args, kwargs):
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def call_method(self, target, args, kwargs):
        return self.tracer.create_proxy("call_method", target, args, kwargs)

    def transform(self) -> GraphModule:
        """The new module."""
        result = super().run(enable_io_processing=False)
        if result is not None:
            self.new_graph.output(map_aggregate(result, lambda x: x.node if isinstance(x, Proxy) else x))
        return GraphModule(self.module, self.new_graph)
