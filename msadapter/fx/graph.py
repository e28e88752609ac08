"""Graphs of nodes."""

from __future__ import annotations

import contextlib
import copy
import inspect
import warnings

from .. import nn
from ._codegen import (
    CodeGen,
    ParsedStackTrace,
    PythonCode,
    PyTreeCodeGen,
    PyTreeInfo,
    parse_stack_trace,
)
from ._codegen import inplace_methods as inplace_methods
from ._codegen import magic_methods as magic_methods
from ._codegen import reflectable_magic_methods as reflectable_magic_methods
from ._names import Namespace, custom_builtins
from ._names import _register_custom_builtin as _register_custom_builtin
from ._qualified import snake_case
from .immutable_collections import immutable_dict
from .node import Node, map_arg

__all__ = ["CodeGen", "Graph", "PythonCode"]
_PyTreeCodeGen, _PyTreeInfo, _Namespace, _custom_builtins = (
    PyTreeCodeGen, PyTreeInfo, Namespace, custom_builtins,
)  # fmt: skip
_parse_stack_trace, _ParsedStackTrace, _snake_case = parse_stack_trace, ParsedStackTrace, snake_case


class _node_list:
    """The nodes of a graph in order; they may be erased while one walks."""

    def __init__(self, graph, direction="_next"):
        if direction not in ("_next", "_prev"):
            raise AssertionError(f"direction must be '_next' or '_prev', got {direction}")
        self.graph, self.direction = graph, direction

    def __len__(self) -> int:
        return self.graph._len

    def __iter__(self):
        root = self.graph._root
        at = getattr(root, self.direction)
        while at is not root:
            if not at._erased:
                yield at
            at = getattr(at, self.direction)

    def __reversed__(self):
        return iter(_node_list(self.graph, "_prev" if self.direction == "_next" else "_next"))


class _InsertPoint:
    """Where new nodes go. It counts from its making on, so a call without ``with`` moves the place for good."""

    def __init__(self, graph, insert):
        self._graph, self._before = graph, graph._insert
        graph._insert = insert

    def __enter__(self):
        return None

    def __exit__(self, kind, error, trace) -> None:
        self._graph._insert = self._before


class Graph:
    """A program as a list of nodes, from placeholders to the output."""

    def __init__(self, owning_module=None, tracer_cls=None, tracer_extras=None):
        self._places: dict | None = None  # node -> its number, until a node is added or moved
        self._root = Node(self, "", "root", "", (), {})
        self._graph_namespace = Namespace()
        self._insert = self._root.prepend
        self._len = 0
        self.owning_module = owning_module
        self._tracer_cls, self._tracer_extras = tracer_cls, tracer_extras
        self._codegen = CodeGen()
        self._co_fields: dict = {}  # the name and the place of the function that was traced

    @property
    def nodes(self) -> _node_list:
        """The nodes in their order."""
        return _node_list(self)

    def _place_of(self, node) -> int:
        if self._places is None:
            self._places = {n: i for i, n in enumerate(self.nodes)}
        return self._places[node]

    def find_nodes(self, *, op: str, target=None, sort: bool = True) -> list:
        """Return the nodes of an op, and of a target where it is given, in the order of the graph."""
        if op == "call_function" and target is None:
            raise AssertionError("target must not be None for call_function op")
        return [n for n in self.nodes if n.op == op and (target is None or n.target == target)]

    def output_node(self) -> Node:
        """Return the output."""
        node = next(iter(reversed(self.nodes)))
        if node.op != "output":
            raise AssertionError(f"Expected output node, got op={node.op}")
        return node

    # ---- making nodes
    def create_node(self, op, target, args=None, kwargs=None, name=None, type_expr=None) -> Node:
        """Return a new node at the insert point.

        Args:
            name: the wanted name of its value. It gets a number if it is taken.
            type_expr: the type of its value, for the annotations of the code.
        """
        if args and not isinstance(args, tuple):
            raise AssertionError(f"args must be a tuple, got {type(args)}")
        if kwargs and not isinstance(kwargs, dict):
            raise AssertionError(f"kwargs must be a dict, got {type(kwargs)}")
        name = self._graph_namespace.create_name(self._target_to_str(target) if name is None else name, None)
        node = Node(self, name, op, target, args or (), kwargs or immutable_dict(), type_expr)
        for hook in getattr(self.owning_module, "_create_node_hooks", None) or ():
            hook(node)
        self._graph_namespace.associate_name_with_obj(name, node)
        self._insert(node)
        self._len += 1
        return node

    def _target_to_str(self, target) -> str:
        """Return the name that a value gets from the operation that computes it."""
        name = target.__name__ if callable(target) else target
        if not isinstance(name, str):
            raise AssertionError(f"Expected target to be str, got {type(name)}")
        if not callable(target) and name.startswith("__") and name.endswith("__"):
            name = name[2:-2]
        return snake_case(name)

    def placeholder(self, name, type_expr=None, default_value=...) -> Node:
        """Add an input."""
        args = () if default_value is ... or default_value is inspect.Signature.empty else (default_value,)
        return self.create_node("placeholder", name, args, type_expr=type_expr)

    def get_attr(self, qualified_name, type_expr=None) -> Node:
        """Add a read of an attribute of the owning module."""
        if self.owning_module is not None and not _has_value(self.owning_module, qualified_name):
            warnings.warn(
                "Attempted to insert a get_attr Node with no underlying reference in the owning GraphModule! Call "
                "GraphModule.add_submodule to add the necessary submodule, GraphModule.add_parameter to add the necessary "
                "Parameter, or nn.Module.register_buffer to add the necessary buffer",
                stacklevel=2,
            )
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(self, module_name, args=None, kwargs=None, type_expr=None) -> Node:
        """Add a call of a submodule."""
        if self.owning_module is not None:
            self.owning_module.get_submodule(module_name)
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(self, method_name, args=None, kwargs=None, type_expr=None) -> Node:
        """Add a call of a method of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(self, the_function, args=None, kwargs=None, type_expr=None, name=None) -> Node:
        """Add a call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name=name, type_expr=type_expr)

    def output(self, result, type_expr=None) -> Node:
        """Add the result."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def node_copy(self, node, arg_transform=lambda x: x) -> Node:
        """Add a copy of a node of any graph; ``arg_transform`` gives this graph's node for each of its inputs."""
        args, kwargs = map_arg(node.args, arg_transform), map_arg(node.kwargs, arg_transform)
        made = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        made.meta = copy.copy(node.meta)
        return made

    def graph_copy(self, g, val_map: dict, return_output_node=False):
        """Add copies of all nodes of ``g`` (``val_map``: from its nodes to ours). Return what its output names."""
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                result = map_arg(node.args[0], lambda n: val_map[n])
                return (result, node) if return_output_node else result
            val_map[node] = self.node_copy(node, lambda n: val_map[n])
        return None

    def __deepcopy__(self, memo=None):
        made = Graph(tracer_cls=self._tracer_cls)
        copied = made.graph_copy(self, memo if memo is not None else {}, return_output_node=True)
        made._codegen = copy.deepcopy(self._codegen)
        made._co_fields = dict(self._co_fields)
        if copied is not None:
            result, node = copied
            made.output(result, type_expr=node.type).meta = copy.copy(node.meta)
        return made

    # ---- changing the graph
    def erase_node(self, to_erase) -> None:
        """Remove a node whose result is not used."""
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in the "
                f"graph: {to_erase.users}!"
            )
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            warnings.warn(f"erase_node({to_erase}) on an already erased node", stacklevel=2)
            return
        for hook in getattr(self.owning_module, "_erase_node_hooks", None) or ():
            hook(to_erase)
        to_erase._remove_from_list()
        to_erase._erased = True
        self._len -= 1
        to_erase._update_args_kwargs(*map_arg((to_erase.args, to_erase.kwargs), lambda n: None))

    def _clear_nodes(self) -> None:
        for node in reversed(self.nodes):
            node.meta.clear()
            self.erase_node(node)

    def inserting_before(self, n=None) -> _InsertPoint:
        """Context: new nodes go before ``n`` (the graph's beginning without one)."""
        if n is None:
            return self.inserting_after(self._root)
        if n.graph is not self:
            raise AssertionError("Node to insert before is not in graph.")
        return _InsertPoint(self, n.prepend)

    def inserting_after(self, n=None) -> _InsertPoint:
        """Context: new nodes go directly behind ``n`` (the graph's end without one), the last one first."""
        if n is None:
            return self.inserting_before(self._root)
        if n.graph is not self:
            raise AssertionError("Node to insert after is not in graph.")
        return _InsertPoint(self, n.append)

    def eliminate_dead_code(self, is_impure_node=None) -> bool:
        """Remove the nodes whose results are not used and that have no other effect. Return whether there were any.

        Graphs that this one reads as attributes are treated alike.
        """
        self.lint()
        impure, changed = is_impure_node or Node.is_impure, False
        for node in reversed(self.nodes):
            if not impure(node) and not node.users:
                self.erase_node(node)
                changed = True
        read = {node.target for node in self.find_nodes(op="get_attr")}
        for name, module in self.owning_module.named_children() if self.owning_module is not None else ():
            if name in read and isinstance(getattr(module, "graph", None), Graph):
                changed |= module.graph.eliminate_dead_code()
                module.recompile()
        return changed

    # ---- code
    def process_inputs(self, *args):
        """Return what the placeholders receive when the module is called with these arguments."""
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out):
        """Return what the module returns for these results."""
        return self._codegen.process_outputs(out)

    def python_code(self, root_module: str, **options) -> PythonCode:
        """Return source and globals of the function that this graph is.

        Args:
            root_module: the variable that holds the owning module, usually "self".
            options: verbose, include_stride, include_device, colored, expanded_def, additional_meta: what else the source
                shows.
        """
        namespace = Namespace()
        nodes = list(self.nodes)
        before = [node._repr_fn for node in nodes]
        for node in nodes:
            node._repr_fn = lambda n: namespace.create_name(n.name, n)
        try:
            return self._python_code(root_module, namespace, **options)
        finally:
            for node, repr_fn in zip(nodes, before, strict=True):
                node._repr_fn = repr_fn

    def _python_code(self, root_module: str, namespace, **options) -> PythonCode:
        return self._codegen._gen_python_code(self.nodes, root_module, namespace, **options)

    def set_codegen(self, codegen: CodeGen) -> None:
        """Let another CodeGen write the code."""
        self._codegen = codegen

    def on_generate_code(self, make_transformer):
        """Change the lines of the code, each time they are written.

        Args:
            make_transformer: a function that gets the present transformer, or None, and returns the new one. That takes the
                list of lines, and returns another.

        Returns:
            a context manager, behind which the transformer before holds again.
        """
        before = self._codegen._body_transformer
        self._codegen._body_transformer = make_transformer(before)

        @contextlib.contextmanager
        def restored():
            try:
                yield
            finally:
                self._codegen._body_transformer = before

        return restored()

    # ---- reading
    def lint(self) -> None:
        """RuntimeError for a graph whose nodes are out of order, or name what the module does not have."""
        names, known = set(), set()
        for node in self.nodes:
            if node.graph is not self:
                raise RuntimeError(f"Node '{node}' does not belong to this Graph!")
            for x in node._input_nodes:
                self._check_input(x, node, known)
            known.add(node)
            if node.name in names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            names.add(node.name)
        for node in self.nodes if self.owning_module is not None else ():
            if node.op in ("get_attr", "call_module"):
                _check_target(self.owning_module, node)

    def _check_input(self, x, node, known: set) -> None:
        if x.graph is not self:
            raise RuntimeError(
                f"Argument '{x}' of Node '{node}' does not belong to this Graph, but was used as an argument! If you are "
                f"copying nodes from another graph, make sure to use ``arg_transform`` on node_copy() to remap values\n{self}"
            )
        if x not in known:
            raise RuntimeError(
                f"Argument '{x}' of Node '{node}' was used before it has been defined! Please check that Nodes in the graph "
                f"are topologically ordered\n{self}"
            )

    def print_tabular(self) -> None:
        """Print a table of the nodes."""
        rows = [("opcode", "name", "target", "args", "kwargs")]
        rows += [(n.op, n.name, str(n.target), str(n.args), str(n.kwargs)) for n in self.nodes]
        widths = [max(len(r[i]) for r in rows) for i in range(5)]
        rows.insert(1, tuple("-" * w for w in widths))
        for r in rows:
            print("  ".join(cell.ljust(w) for cell, w in zip(r, widths, strict=True)).rstrip())

    def __str__(self) -> str:
        returned = [""]
        lines = [text for text in (n.format_node([], returned) for n in self.nodes) if text]
        return f"graph(){returned[0]}:" + "".join("\n    " + text for text in lines)


def _has_value(module, path: str) -> bool:
    """Return whether a dotted path of a module leads to a module, a parameter or a buffer."""
    holder, _, name = path.rpartition(".")
    try:
        holder = module.get_submodule(holder)
    except AttributeError:
        warnings.warn(f"Failed to fetch module {holder}!", stacklevel=3)
        return False
    value = getattr(holder, name, None)
    return isinstance(value, (nn.Module, nn.Parameter)) or name in holder._buffers


def _check_target(holder, node) -> None:
    """RuntimeError if a module does not have what a node reads or calls."""
    seen: list[str] = []
    for part in node.target.split("."):
        holder = getattr(holder, part, None)
        where = f"Node {node} target {node.target}"
        if holder is None:
            raise RuntimeError(f"{where} references nonexistent attribute {part} of {'.'.join(seen)}")
        if node.op == "call_module" and not isinstance(holder, nn.Module):
            raise RuntimeError(f"{where} {part} of {'.'.join(seen)} does not reference an nn.Module")
        seen.append(part)
