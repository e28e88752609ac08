"""Runs a graph node by node, and transforms graphs."""

from __future__ import annotations

import contextlib
import inspect

from .. import nn
from . import traceback as fx_traceback
from ._codegen import last_uses
from ._symbolic_trace import Tracer
from .graph import Graph
from .graph_module import GraphModule
from .node import map_arg
from .proxy import Proxy, strip_proxy

__all__ = ["Interpreter", "Transformer"]


class Interpreter:
    """Runs a GraphModule. Subclasses can override the methods for each kind of node.

    Attributes:
        env: node -> its value, of those whose value is still needed.
        extra_traceback: whether errors say which node was computed.
    """

    def __init__(self, module, garbage_collect_values: bool = True, graph: Graph | None = None):
        self.module, self.submodules = module, dict(module.named_modules())
        self.graph = graph if graph is not None else module.graph
        self.env: dict = {}
        self.name = "Interpreter"
        self.garbage_collect_values, self.extra_traceback = garbage_collect_values, True
        self.user_to_last_uses = last_uses(self.graph.nodes) if garbage_collect_values else {}

    def run(self, *args, initial_env=None, enable_io_processing: bool = True):
        """Return the output for these inputs.

        Args:
            initial_env: nodes with known values, which are not computed.
            enable_io_processing: whether the inputs and the output are those of the module, instead of the graph.
        """
        self.env = initial_env if initial_env is not None else {}
        self.args_iter = iter(self.graph.process_inputs(*args) if enable_io_processing else args)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            self.env[node] = self._run_with_place(node)
            for dead in self.user_to_last_uses.get(node, ()):
                del self.env[dead]
            if node.op == "output":
                result = self.env[node]
                return self.graph.process_outputs(result) if enable_io_processing else result
        return None

    def _run_with_place(self, node):
        """Return the value of a node. An error gets the node and its place in the program at the end of its text."""
        try:
            return self.run_node(node)
        except Exception as error:
            if not self.extra_traceback:
                raise
            text = f"While executing {node.format_node()}"
            text = f"{error.args[0]}\n\n{text}" if error.args else text
            error.args = (f"{text}\nOriginal traceback:\n{node.stack_trace}", *error.args[1:])
            if isinstance(error, KeyError):
                raise RuntimeError(*error.args) from error
            raise

    def boxed_run(self, args_list: list):
        """Return the output for a list of inputs, which is emptied, so that the inputs can be freed."""
        inputs = [n for n in self.graph.nodes if n.op == "placeholder"]
        if len(args_list) != len(inputs):
            detail = "extra arguments" if len(args_list) > len(inputs) else "missing arguments"
            raise RuntimeError(
                f"Interpreter.boxed_run expected {len(inputs)} arguments for placeholders but received {len(args_list)} "
                f"({detail})"
            )
        values = dict(zip(inputs, args_list, strict=True))
        args_list.clear()
        return self.run(initial_env=values)

    @contextlib.contextmanager
    def _set_current_node(self, node):
        with fx_traceback.set_current_meta(node, f"Interpreter_{type(self).__name__}"):
            yield

    def run_node(self, n):
        """Return the value of one node."""
        with self._set_current_node(n):
            args, kwargs = self.fetch_args_kwargs_from_env(n)
            return getattr(self, n.op)(n.target, args, kwargs)

    def placeholder(self, target, args, kwargs):
        """Return the next input."""
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
        """Return an attribute of the module."""
        return self.fetch_attr(target)

    def call_function(self, target, args, kwargs):
        """Return the result of a function."""
        return target(*args, **kwargs)

    def call_method(self, target, args, kwargs):
        """Return the result of a method."""
        own, *rest = args
        return getattr(own, target)(*rest, **kwargs)

    def call_module(self, target, args, kwargs):
        """Return the result of a submodule."""
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target, args, kwargs):
        """Return the result of the graph."""
        return args[0]

    def fetch_attr(self, target: str):
        """Return what is at a dotted path of the module."""
        value, seen = self.module, []
        for part in target.split("."):
            seen.append(part)
            if not hasattr(value, part):
                raise RuntimeError(f"Node referenced nonexistent target {'.'.join(seen)}")
            value = getattr(value, part)
        return value

    def fetch_args_kwargs_from_env(self, n):
        """Return the arguments of a node with values in the places of nodes."""
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)

    def map_nodes_to_values(self, args, n):
        """Return an argument of node ``n`` with values in the places of nodes."""

        def value(x):
            if x not in self.env:
                raise RuntimeError(
                    f"Node {n} referenced nonexistent value {x}! Run Graph.lint() to diagnose such issues"
                )
            return self.env[x]

        return map_arg(args, value)


class _TransformerTracer(Tracer):
    """Adds nodes to a new graph. Every module is a leaf."""

    def __init__(self, graph: Graph, root):
        super().__init__()
        self.graph, self.root = graph, root

    def is_leaf_module(self, m, module_qualified_name: str) -> bool:
        return True


class Transformer(Interpreter):
    """Runs a graph with proxies to create a new one. Subclasses can change nodes."""

    def __init__(self, module):
        super().__init__(module)
        self.new_graph = Graph()
        self.new_graph.set_codegen(module.graph._codegen)
        self.tracer = _TransformerTracer(self.new_graph, module)

    def placeholder(self, target, args, kwargs):
        default = args[0] if args else inspect.Signature.empty
        return Proxy(self.new_graph.placeholder(target, default_value=default), self.tracer)

    def get_attr(self, target, args, kwargs):
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(self, target, args, kwargs):
        module = self.fetch_attr(target)
        if not isinstance(module, nn.Module):
            raise AssertionError(f"{target} is not a module")
        return self.tracer.call_module(module, module.forward, args, kwargs)

    def call_function(self, target, args, kwargs):
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def transform(self) -> GraphModule:
        """Return the new module. Its nodes have the metadata of those that they are made for."""
        with fx_traceback.preserve_node_meta():
            result = super().run(enable_io_processing=False)
        if result is not None:
            made = self.new_graph.output(strip_proxy(result))
            made.meta.update(self.graph.output_node().meta)
        return GraphModule(self.module, self.new_graph)
