"""GraphModule: a module whose forward is a graph."""

from __future__ import annotations

import builtins
import copy
import linecache
import types

from .. import nn
from .._host import extensions
from .._serialization import names
from ..tensor import Tensor
from .graph import Graph

__all__ = ["GraphModule"]
_count = [0]


def _compiled(code):
    """The function of a PythonCode; its source is there for tracebacks."""
    _count[0] += 1
    name = f"<eval_with_key>.{_count[0]}"
    space = dict(code.globals)
    exec(compile(code.src, name, "exec"), space)
    linecache.cache[name] = (len(code.src), None, code.src.splitlines(True), name)
    return space["forward"]


def _assign(target: str, value, module) -> None:
    """Puts ``value`` at a dotted path; plain modules are made on the way."""
    *path, leaf = target.split(".")
    for part in path:
        if not hasattr(module, part):
            module.add_module(part, nn.Module())
        module = getattr(module, part)
    if isinstance(value, Tensor) and not isinstance(value, nn.Parameter):
        module.register_buffer(leaf, value)
    else:
        setattr(module, leaf, value)


def _read(module, target: str):
    for part in target.split("."):
        module = getattr(module, part)
    return module


class GraphModule(nn.Module):
    """A module made from a graph and the attributes of ``root`` (a module or a dict) that its nodes use."""

    def __new__(cls, *args, **kwargs):
        for base in cls.__mro__:
            if base.__qualname__ != "GraphModule.__new__.<locals>.GraphModuleImpl":
                own = base
                break

        class GraphModuleImpl(own):
            """A class of its own: ``forward`` belongs to one graph."""

        return super().__new__(GraphModuleImpl)

    def __init__(self, root, graph: Graph, class_name: str = "GraphModule"):
        super().__init__()
        self.__class__.__name__ = class_name
        if isinstance(root, nn.Module):
            self.training = getattr(root, "training", True)
        elif not isinstance(root, dict):
            raise RuntimeError("Unsupported type " + str(root) + " passed for root!")
        for node in graph.nodes:
            if node.op in ("get_attr", "call_module"):
                self._take(root, node.name, node.target)
        self.meta: dict = {}
        self.graph = graph

    def _take(self, root, name: str, target: str) -> None:
        if isinstance(root, dict):
            if target not in root:
                raise RuntimeError(
                    f"Node {name} referenced target {target} but that target was not provided in ``root``!"
                )
            _assign(target, root[target], self)
            return
        try:
            _read(self, target)
        except AttributeError:
            _assign(target, _read(root, target), self)

    @property
    def graph(self) -> Graph:
        """The graph; after changing it call ``recompile``."""
        return self._graph

    @graph.setter
    def graph(self, g: Graph) -> None:
        if not isinstance(g, Graph):
            raise AssertionError(f"Expected a Graph instance, but got {type(g)}")
        self.__dict__["_graph"] = g
        g.owning_module = self
        self.recompile()

    @property
    def code(self) -> str:
        """Source of ``forward``."""
        return self._code

    def recompile(self):
        """Makes ``forward`` of the graph as it is."""
        made = self._graph.python_code("self")
        self.__dict__["_code"] = made.src
        type(self).forward = _compiled(made)
        return made

    def add_submodule(self, target: str, m) -> bool:
        """Puts a module at a dotted path; False where something else is in the way."""
        *path, leaf = target.split(".")
        holder = self
        for part in path:
            if not hasattr(holder, part):
                holder.add_module(part, nn.Module())
            holder = getattr(holder, part)
            if not isinstance(holder, nn.Module):
                return False
        holder.add_module(leaf, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Removes the module at a dotted path; whether there was one."""
        *path, leaf = target.split(".")
        holder = self
        for part in path:
            if part not in holder._modules:
                return False
            holder = holder._modules[part]
        return holder._modules.pop(leaf, None) is not None

    def delete_all_unused_submodules(self) -> None:
        """Removes modules that no node names."""
        used = set()
        for node in self._graph.nodes:
            if node.op in ("call_module", "get_attr"):
                parts = node.target.split(".")
                used.update(".".join(parts[: i + 1]) for i in range(len(parts)))
                if node.op == "call_module":
                    below = self.get_submodule(node.target).named_modules(prefix=node.target)
                    used.update(name for name, _ in below)
        for name in [name for name, _ in self.named_modules() if name and name not in used]:
            self.delete_submodule(name)

    def print_readable(self, print_output: bool = True, **options) -> str:
        """The code as the text of a class; printed unless told otherwise."""
        body = "\n".join("    " + line if line.strip() else "" for line in self._code.strip().splitlines())
        text = f"class {self._get_name()}(torch.nn.Module):\n{body}\n"
        if print_output:
            print(text)
        return text

    def __deepcopy__(self, memo):
        holder = nn.Module()
        memo[id(self)] = holder
        for name, value in self.__dict__.items():
            if name not in ("_graph", "_code", "meta"):
                holder.__dict__[name] = copy.deepcopy(value, memo)
        made = GraphModule(holder, copy.deepcopy(self._graph), type(self).__name__)
        made.train(self.training)
        memo[id(self)] = made  # before `meta`, which may name the module itself
        made.meta = copy.deepcopy(self.meta, memo)
        return made

    def __copy__(self):
        made = GraphModule(self, copy.deepcopy(self._graph), type(self).__name__)
        made.meta = self.meta
        return made

    def __reduce__(self):
        body = {k: v for k, v in self.__dict__.items() if k != "_graph"}
        body["_graphmodule_cls_name"] = type(self).__name__
        return reduce_graph_module, (body, _imports(self._graph.python_code("self").globals))

    def __str__(self) -> str:
        hint = "# To see more debug info, please use `graph_module.print_readable()`"
        return "\n".join([super().__str__(), self._code, hint])


def _imports(used: dict) -> str:
    """Return the statements that import what the source of a graph uses, under PyTorch's names."""
    lines = set()
    for name, value in used.items():
        if name in ("inf", "nan"):
            lines.add(f"from math import {name}")
        elif name == "NoneType":
            lines.add("NoneType = type(None)")
        elif isinstance(value, types.ModuleType):
            lines.add(
                "import torch" if name == "torch" else f"import {names.to_file(value.__name__)} as {name}"
            )
        else:
            module, path = names.place_of(value) or (value.__module__, value.__qualname__)
            lines.add(f"from {module} import {path} as {name}")
    return "\n".join(sorted(lines))


def _import(name, globals=None, locals=None, fromlist=(), level=0):
    """`__import__` for the source in a file, in which torch means this package, whether or not `import torch` does."""
    if name.partition(".")[0] != "torch" or level:
        return __import__(name, globals, locals, fromlist, level)
    module = names.module_of(name)
    return module if fromlist else names.module_of("torch")


def reduce_graph_module(body: dict, import_block: str) -> nn.Module:
    """Return the GraphModule of a pickle, whose graph is recorded again from its source. Submodules stay as they are.

    Args:
        body: the attributes of the module, with the source of its forward in "_code".
        import_block: statements that import what the source uses.
    """
    body = dict(body)
    space = {"__builtins__": {**vars(builtins), "__import__": _import}}
    exec(f"{import_block}\n{body.get('_code') or body['code']}", space)
    base = body.get("_tracer_cls") or extensions.symbolic_tracer.value

    class _Calls(base):
        def is_leaf_module(self, m, module_qualified_name):
            return True

    name = body.pop("_graphmodule_cls_name", "GraphModule")
    root = type(name, (nn.Module,), {"forward": space["forward"]})()
    root.__dict__.update(body)
    made = GraphModule(root, _Calls().trace(root, **body.get("_tracer_extras", {})), name)
    for key, value in body.items():  # what the graph does not use
        if not hasattr(made, key):
            setattr(made, key, value)
    return made
