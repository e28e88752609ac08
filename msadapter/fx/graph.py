"""Graphs of nodes, and the Python code of a graph."""

from __future__ import annotations

import builtins
import keyword
import math
import re

import msadapter

from .node import Node, map_arg, qualified_name

__all__ = ["CodeGen", "Graph", "PythonCode"]
_INFIX = {
    "add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "floordiv": "{} // {}", "truediv": "{} / {}", "mod": "{} % {}",
    "pow": "{} ** {}", "matmul": "{} @ {}", "lshift": "{} << {}", "rshift": "{} >> {}", "and_": "{} & {}", "or_": "{} | {}",
    "xor": "{} ^ {}", "eq": "{} == {}", "ne": "{} != {}", "lt": "{} < {}", "gt": "{} > {}", "le": "{} <= {}",
    "ge": "{} >= {}", "getitem": "{}[{}]", "pos": "+{}", "neg": "-{}", "invert": "~{}",
}  # fmt: skip
_IN_PLACE = {"iadd": "+=", "isub": "-=", "imul": "*=", "itruediv": "/=", "ifloordiv": "//=", "imod": "%=", "ipow": "**=",
             "imatmul": "@=", "iand": "&=", "ior": "|=", "ixor": "^="}  # fmt: skip


class _Names:
    """Names that are free in the code of a graph."""

    def __init__(self):
        self._used: dict[str, object] = {}
        self._count: dict[str, int] = {}

    def make(self, candidate: str, owner) -> str:
        """``candidate``, with a number where it is taken or has a meaning in Python."""
        candidate = re.sub(r"[^0-9a-zA-Z_]+", "_", candidate) or "_unnamed"
        candidate = f"_{candidate}" if candidate[0].isdigit() else candidate
        match = re.match(r"(.*)_(\d+)$", candidate)
        base, number = (match.group(1), int(match.group(2))) if match else (candidate, None)
        name = candidate
        number = number if number is not None else self._count.get(base, 0)
        while name in self._used or self._means_something(name):
            number += 1
            name = f"{base}_{number}"
        self._count[base] = number
        self._used[name] = owner
        return name

    @staticmethod
    def _means_something(name: str) -> bool:
        return (
            name in keyword.kwlist
            or name in vars(builtins)
            or name in ("inf", "nan", "NoneType", "torch", "device")
        )


class PythonCode:
    """Source of a function and the globals that it needs."""

    def __init__(self, src: str, globals_: dict):
        self.src, self.globals = src, globals_


class CodeGen:
    """Writes a graph as a function."""

    def __init__(self):
        self._globals: dict = {}

    def _global(self, name: str, value) -> str:
        """The name under which ``value`` is a global of the code."""
        name = name.replace(".", "_")
        base, i = name, 0
        while name in self._globals and self._globals[name] is not value:
            i += 1
            name = f"{base}_{i}"
        self._globals[name] = value
        return name

    def _function(self, target) -> str:
        self._globals["torch"] = msadapter
        name = qualified_name(target)
        if name.startswith("builtins."):
            return name.removeprefix("builtins.")
        if name.startswith("torch.") and _resolves(msadapter, name, target):
            return name
        return self._global(name.replace("operator.", "_operator."), target)

    def _value(self, a) -> str:
        if isinstance(a, Node):
            return a.name
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            return f"{self._global(type(a).__name__, type(a))}({', '.join(map(self._value, a))})"
        if isinstance(a, tuple):
            inner = ", ".join(map(self._value, a))
            return f"({inner},)" if len(a) == 1 else f"({inner})"
        if isinstance(a, list):
            return f"[{', '.join(map(self._value, a))}]"
        if isinstance(a, dict):
            return "{" + ", ".join(f"{k!r}: {self._value(v)}" for k, v in a.items()) + "}"
        if isinstance(a, slice):
            return f"slice({', '.join(map(self._value, (a.start, a.stop, a.step)))})"
        if isinstance(a, float) and not math.isfinite(a):
            return (
                self._global({True: "nan"}.get(a != a, "inf"), abs(a))
                if a != -math.inf
                else "-" + self._global("inf", math.inf)
            )
        if type(a).__module__ == "torch" and type(a).__name__ in ("dtype", "memory_format", "layout"):
            self._function(_value_of)
            return repr(a)
        if type(a).__name__ == "device" and type(a).__module__ == "torch":
            return f"{self._global('device', type(a))}(type={a.type!r}" + (
                f", index={a.index})" if a.index is not None else ")"
            )
        if callable(a) and hasattr(a, "__name__"):
            return self._function(a)
        if a is None or a is Ellipsis or isinstance(a, (bool, int, float, complex, str, bytes)):
            return repr(a)
        return self._global("_" + type(a).__name__, a)

    def _call(self, args, kwargs) -> str:
        parts = [self._value(a) for a in args] + [f"{k} = {self._value(v)}" for k, v in kwargs.items()]
        return ", ".join(parts)

    def _expression(self, node) -> str:
        if node.op == "call_method":
            return f"{_receiver(self._value(node.args[0]))}.{node.target}({self._call(node.args[1:], node.kwargs)})"
        if node.op in ("call_module", "get_attr"):
            path = _attribute(node.target)
            return f"{path}({self._call(node.args, node.kwargs)})" if node.op == "call_module" else path
        name = qualified_name(node.target)
        family, _, short = name.rpartition(".")
        if family == "operator" and short in _INFIX and not node.kwargs:
            return _INFIX[short].format(*map(self._value, node.args))
        if (
            name == "builtins.getattr"
            and isinstance(node.args[1], str)
            and node.args[1].isidentifier()
            and len(node.args) == 2
        ):
            return f"{_receiver(self._value(node.args[0]))}.{node.args[1]}"
        return f"{self._function(node.target)}({self._call(node.args, node.kwargs)})"

    def code(self, graph, root: str = "self") -> PythonCode:
        """The function ``forward`` of a graph."""
        self._globals = {}
        parameters, lines = [], []
        last = _last_uses(graph)
        for node in graph.nodes:
            if node.op == "placeholder":
                default = f" = {self._value(node.args[0])}" if node.args else ""
                parameters.append(node.target + default)
                if node.name != node.target.lstrip("*"):
                    lines.append(f"{node.name} = {node.target.lstrip('*')}")
                continue
            if node.op == "output":
                lines.append(f"return {self._value(node.args[0])}")
                continue
            short = qualified_name(node.target).rpartition(".")[2] if node.op == "call_function" else ""
            if short in _IN_PLACE and qualified_name(node.target).startswith("operator."):
                left, right = map(self._value, node.args)
                line = f"{left} {_IN_PLACE[short]} {right};  {node.name} = {left}"
            else:
                line = f"{node.name} = {self._expression(node)}"
            dead = [n.name for n in last.get(node, ())] + ([node.name] if not node.users else [])
            lines.append(f"{line};  {' = '.join(dead)} = None" if dead else line)
        body = "\n".join("    " + line for line in lines) or "    pass"
        head = ", ".join([root, *parameters])
        return PythonCode(f"\n\n\ndef forward({head}):\n{body}\n    ", self._globals)


def _value_of() -> None:
    """Stands for anything that is written as ``torch.something``."""


def _receiver(text: str) -> str:
    return text if re.fullmatch(r"[\w.\[\]'\"]+", text) and not text[0].isdigit() else f"({text})"


def _resolves(root, name: str, target) -> bool:
    value = root
    for part in name.split(".")[1:]:
        try:
            value = getattr(value, part)
        except AttributeError:
            return False
    return value is target


def _attribute(path: str) -> str:
    text = "self"
    for part in path.split("."):
        text = (
            f"{text}.{part}"
            if part.isidentifier() and not keyword.iskeyword(part)
            else f'getattr({text}, "{part}")'
        )
    return text


def _last_uses(graph) -> dict:
    """Return, for each node, its inputs that no later node uses, in the order of its arguments."""
    seen, last = set(), {}
    for node in reversed(list(graph.nodes)):
        if node.op == "output":
            seen.update(node.all_input_nodes)
            continue
        for x in node.all_input_nodes:
            if x not in seen:
                seen.add(x)
                last.setdefault(node, []).append(x)
    return last


class _NodeList:
    """The nodes of a graph in order; they may be erased while one walks."""

    def __init__(self, graph, backwards=False):
        self.graph, self.backwards = graph, backwards

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __iter__(self):
        root = self.graph._root
        at = root._prev if self.backwards else root._next
        while at is not root:
            if not at._erased:
                yield at
            at = at._prev if self.backwards else at._next

    def __reversed__(self):
        return _NodeList(self.graph, not self.backwards)


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
        self._root = Node(self, "", "root", "", (), {})
        self._names = _Names()
        self._insert = self._root.prepend
        self.owning_module = owning_module
        self._tracer_cls = tracer_cls
        self._codegen = CodeGen()

    @property
    def nodes(self):
        return _NodeList(self)

    def find_nodes(self, *, op: str, target=None, sort: bool = True) -> list:
        """Nodes of an op, and of a target where it is given."""
        return [n for n in self.nodes if n.op == op and (target is None or n.target == target)]

    # ---- making nodes
    def create_node(self, op, target, args=None, kwargs=None, name=None, type_expr=None):
        """A node at the insert point."""
        node = Node(self, "", op, target, args or (), kwargs or {}, type_expr)
        node.name = self._names.make(name or self._target_name(target), node)
        self._insert(node)
        return node

    @staticmethod
    def _target_name(target) -> str:
        if callable(target):
            target = target.__name__
        name = target.lstrip("*").replace(".", "_")
        name = (
            re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()
            if name != name.lower() and "_" not in name
            else name
        )
        return (
            name.removeprefix("__").removesuffix("__")
            if name.startswith("__") and name.endswith("__")
            else name
        )

    def placeholder(self, name, type_expr=None, default_value=...):
        """An input."""
        args = () if default_value is ... else (default_value,)
        return self.create_node("placeholder", name, args, type_expr=type_expr)

    def get_attr(self, qualified_name, type_expr=None):
        """A read of an attribute of the owning module."""
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(self, module_name, args=None, kwargs=None, type_expr=None):
        """A call of a submodule."""
        owner = self.owning_module
        if owner is not None:
            owner.get_submodule(module_name)
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(self, method_name, args=None, kwargs=None, type_expr=None):
        """A call of a method of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(self, the_function, args=None, kwargs=None, type_expr=None, name=None):
        """A call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name=name, type_expr=type_expr)

    def output(self, result, type_expr=None):
        """The result."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def node_copy(self, node, arg_transform=lambda x: x):
        """A copy of a node of any graph; ``arg_transform`` gives this graph's node for each of its inputs."""
        args, kwargs = map_arg(node.args, arg_transform), map_arg(node.kwargs, arg_transform)
        made = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        made.meta = dict(node.meta)
        return made

    def graph_copy(self, g, val_map: dict, return_output_node=False):
        """Copies of all nodes of ``g`` (``val_map``: from its nodes to ours); what its output names."""
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
        memo = memo if memo is not None else {}
        values: dict = {}
        result = made.graph_copy(self, values, return_output_node=True)
        if isinstance(result, tuple) and result[1] is not None:
            output = made.output(result[0])
            output.meta = dict(result[1].meta)
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
            return
        to_erase._unlink()
        to_erase._erased = True
        to_erase._set((), {})

    def _inserting(self, insert):
        return _InsertPoint(self, insert)

    def inserting_before(self, n=None):
        """Context: new nodes go before ``n`` (the graph's beginning without one)."""
        return self.inserting_after(self._root) if n is None else self._inserting(n.prepend)

    def inserting_after(self, n=None):
        """Context: new nodes go behind ``n`` (the graph's end without one), in the order of their making."""
        if n is None:
            return self.inserting_before(self._root)
        state = {"at": n}

        def insert(x):
            state["at"].append(x)
            state["at"] = x

        return self._inserting(insert)

    def eliminate_dead_code(self, is_impure_node=None) -> bool:
        """Remove the nodes whose results are not used and that have no other effect. Return whether there were any."""
        impure, changed = is_impure_node or Node.is_impure, False
        for node in reversed(list(self.nodes)):
            if not impure(node) and not node.users:
                self.erase_node(node)
                changed = True
        return changed

    # ---- reading
    def python_code(self, root_module: str = "self", **options) -> PythonCode:
        """Source and globals of the function that this graph is."""
        return self._codegen.code(self, root_module)

    def set_codegen(self, codegen) -> None:
        """Another writer of code."""
        self._codegen = codegen

    def output_node(self):
        """The output."""
        return next(n for n in reversed(self.nodes) if n.op == "output")

    def lint(self) -> None:
        """RuntimeError for a graph whose nodes are out of order, or name what the module does not have."""
        names, known = set(), set()
        for node in self.nodes:
            if node.graph is not self:
                raise RuntimeError(f"Node '{node}' does not belong to this Graph!")
            if node.name in names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            for x in node.all_input_nodes:
                if x not in known:
                    raise RuntimeError(
                        f"Argument '{x}' of Node '{node}' was used before it has been defined! Please check that Nodes in "
                        "the graph are topologically ordered"
                    )
            names.add(node.name)
            known.add(node)
            if self.owning_module is not None and node.op in ("get_attr", "call_module"):
                holder = self.owning_module
                for part in node.target.split("."):
                    if not hasattr(holder, part):
                        raise RuntimeError(
                            f"Node {node} target {node.target} references nonexistent attribute {part}"
                        )
                    holder = getattr(holder, part)

    def print_tabular(self) -> None:
        """Prints a table of the nodes."""
        rows = [("opcode", "name", "target", "args", "kwargs")]
        rows += [(n.op, n.name, str(n.target), str(n.args), str(n.kwargs)) for n in self.nodes]
        widths = [max(len(r[i]) for r in rows) for i in range(5)]
        for r in rows:
            print("  ".join(cell.ljust(w) for cell, w in zip(r, widths, strict=True)).rstrip())

    def __str__(self) -> str:
        lines = [text for text in (n.format_node() for n in self.nodes) if text]
        return "graph():" + "".join("\n    " + text for text in lines)
