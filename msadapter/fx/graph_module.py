"""GraphModule: a module whose forward is a graph."""

from __future__ import annotations

import builtins
import contextlib
import copy
import itertools
import linecache
import sys
import traceback
import types
import warnings
from pathlib import Path

from .. import nn
from .._host import extensions
from .._serialization import names
from ..serialization import save
from ..tensor import Tensor
from ._codegen import PyTreeCodeGen
from ._names import custom_builtins
from .graph import Graph

__all__ = ["GraphModule", "reduce_graph_module", "reduce_package_graph_module"]
_HOOKS = ("_replace_hooks", "_create_node_hooks", "_erase_node_hooks", "_deepcopy_hooks")
_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"
_count = itertools.count()


def _compiled(code, co_fields: dict):
    """Return the function of a PythonCode. Its source is there for tracebacks."""
    name = f"<eval_with_key>.{next(_count)}"
    if {"co_filename", "co_firstlineno", "co_name"} <= co_fields.keys():
        name += f" from {co_fields['co_filename']}:{co_fields['co_firstlineno']} in {co_fields['co_name']}"
    space = dict(code.globals)
    exec(compile(code.src, name, "exec", dont_inherit=True), space)
    linecache.cache[name] = (len(code.src), None, code.src.splitlines(True), name)
    return space["forward"]


def _assign(target: str, value, module) -> None:
    """Put ``value`` at a dotted path; plain modules are made on the way."""
    *path, leaf = target.split(".")
    for part in path:
        if getattr(module, part, None) is None:
            setattr(module, part, nn.Module())
        module = getattr(module, part)
    if isinstance(value, Tensor) and not isinstance(value, nn.Parameter):
        module.register_buffer(leaf, value)
    else:
        setattr(module, leaf, value)


def _read(module, target: str):
    for part in target.split("."):
        module = getattr(module, part)
    return module


def _found(module, target: str):
    """Return what is at a dotted path of a module, or None."""
    for part in target.split("."):
        module = getattr(module, part, None)
    return module


def _copy_attr(source, module, target: str) -> None:
    """Put what is at a dotted path of a module at the same path of another one, which may have it already."""
    *path, leaf = target.split(".")
    for part in path:
        source, have = getattr(source, part), getattr(module, part, None)
        if source is have:
            return
        if have is None:
            have = nn.Module()
            setattr(module, part, have)
        module = have
    _assign(leaf, getattr(source, leaf), module)


class _WrappedCall:
    """The call of a graph module. If an error comes from a line of its graph, this line is printed."""

    def __init__(self, cls, cls_call):
        self.cls, self.cls_call = cls, cls_call

    def __call__(self, obj, *args, **kwargs):
        try:
            if self.cls_call is not None:
                return self.cls_call(obj, *args, **kwargs)
            return super(self.cls, obj).__call__(*args, **kwargs)
        except Exception as error:
            last = traceback.StackSummary.extract(traceback.walk_tb(error.__traceback__))[-1]
            if "eval_with_key" not in last.filename:
                raise
            print(self._generate_error_message(last), file=sys.stderr)
            raise error.with_traceback(None) from None

    @staticmethod
    def _generate_error_message(frame) -> str:
        lines = linecache.getlines(frame.filename)
        at = frame.lineno
        head = f"Call using an FX-traced Module, line {at} of the traced Module's generated forward function:"
        marker = "~" * len(frame.line) + "~~~ <--- HERE"
        before, after = "".join(lines[max(at - 2, 0) : at]), "\n".join(lines[at : at + 2])
        return "\n".join([traceback.format_exc(), head, before, marker, after])


class _CodeOnlyModule(nn.Module):
    """The attributes of a graph module that is copied, without its graph."""

    def __init__(self, body: dict):
        super().__init__()
        self.__dict__ = body


class GraphModule(nn.Module):
    """A module made from a graph and the attributes of ``root`` (a module or a dict) that its nodes use."""

    def __new__(cls, *args, **kwargs):
        own = next(base for base in cls.__mro__ if base.__qualname__.rpartition(".")[2] != "GraphModuleImpl")

        class GraphModuleImpl(own):
            """A class of its own: ``forward`` belongs to one graph."""

        return super().__new__(GraphModuleImpl)

    def __init__(self, root, graph: Graph, class_name: str = "GraphModule"):
        super().__init__()
        self.__class__.__name__ = class_name
        targets = [(n, n.target) for n in graph.nodes if n.op in ("get_attr", "call_module")]
        if isinstance(root, nn.Module):
            self.training = getattr(root, "training", True)
            if isinstance(root, _CodeOnlyModule):
                self._take_all(root)
            for _, target in targets:
                _copy_attr(root, self, target)
        elif isinstance(root, dict):
            for node, target in targets:
                if target not in root:
                    raise RuntimeError(
                        f"Node {node} referenced target {target} but that target was not provided in ``root``!"
                    )
            for target in sorted((t for _, t in targets), key=lambda t: t.count(".")):
                _assign(target, root[target], self)
        else:
            raise RuntimeError("Unsupported type " + str(root) + " passed for root!")
        self.graph = graph
        tracer = graph._tracer_cls  # which records a pickled module again, if the pickle can name it
        self._tracer_cls = tracer if tracer and "<locals>" not in tracer.__qualname__ else None
        self._tracer_extras = graph._tracer_extras or {}
        self.meta: dict = {}
        for name in _HOOKS:
            setattr(self, name, [])
        self.shape_env = None

    def _take_all(self, root) -> None:
        """Take the modules, buffers and parameters of a module, also those that the graph does not use."""
        for name in [name for name, _ in root.named_children()]:
            _copy_attr(root, self, name)
        for name, _ in [*root.named_buffers(), *root.named_parameters()]:
            _copy_attr(root, self, name)

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
        if "_code" not in self.__dict__:
            raise RuntimeError("Code has not been generated! Please report a bug to PyTorch")
        return self._code

    def recompile(self):
        """Make ``forward`` of the graph as it is, and of the graphs in modules of this one."""
        if isinstance(self._graph._codegen, PyTreeCodeGen):
            info = self._graph._codegen.pytree_info
            self.__dict__["_in_spec"], self.__dict__["_out_spec"] = info.in_spec, info.out_spec
        made = self._graph.python_code(root_module="self")
        self.__dict__.update(
            _code=made.src, _lineno_map=made._lineno_map, _prologue_start=made._prologue_start
        )
        cls = type(self)
        cls.forward = _compiled(made, self._graph._co_fields)
        if "_wrapped_call" not in vars(cls):
            cls._wrapped_call = _WrappedCall(cls, vars(cls).get("__call__"))
        for child in self.children():
            if isinstance(child, GraphModule):
                child.recompile()

        def call_wrapped(self, *args, **kwargs):
            return self._wrapped_call(self, *args, **kwargs)

        cls.__call__ = call_wrapped
        return made

    # ---- modules
    def add_submodule(self, target: str, m) -> bool:
        """Put a module at a dotted path. Return False where something else is in the way."""
        *path, leaf = target.split(".")
        holder = self
        for part in path:
            if getattr(holder, part, None) is None:
                holder.add_module(part, nn.Module())
            holder = getattr(holder, part)
            if not isinstance(holder, nn.Module):
                return False
        holder.add_module(leaf, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Remove the module at a dotted path. Return whether there was one."""
        *path, leaf = target.split(".")
        holder = self
        for part in path:
            holder = getattr(holder, part, None)
            if not isinstance(holder, nn.Module):
                return False
        if not isinstance(getattr(holder, leaf, None), nn.Module):
            return False
        delattr(holder, leaf)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Remove modules that no node names."""
        used = set()
        for node in self._graph.nodes:
            if node.op in ("call_module", "get_attr"):
                parts = node.target.split(".")
                used.update(".".join(parts[: i + 1]) for i in range(len(parts)))
                if node.op == "call_module" and (module := _found(self, node.target)) is not None:
                    used.update(name for name, _ in module.named_modules(prefix=node.target))
        for name in [name for name, _ in self.named_modules() if name and name not in used]:
            self.delete_submodule(name)

    # ---- text and files
    def print_readable(self, print_output: bool = True, include_stride=False, include_device=False, colored=False, *,
                       fast_sympy_print=False, expanded_def=False, additional_meta=None) -> str:  # fmt: skip
        """Return the code as the text of a class, with the classes of the graphs in it; printed unless told otherwise."""
        options = {
            "include_stride": include_stride,
            "include_device": include_device,
            "colored": colored,
            "expanded_def": expanded_def,
            "additional_meta": additional_meta,
        }
        text = _readable(self, self._get_name(), options)
        if print_output:
            print(text)
        return text

    def to_folder(self, folder, module_name: str = "FxModule") -> None:
        """Write the module as a package of Python: ``from folder import module_name``."""
        folder = Path(folder)
        folder.mkdir(exist_ok=True)
        save(self.state_dict(), folder / "state_dict.pt")
        lines = [
            "import torch",
            *(b.import_str for b in custom_builtins.values()),
            "",
            "from torch.nn import *",
        ]
        lines += [
            f"class {module_name}(torch.nn.Module):",
            "    def __init__(self):",
            "        super().__init__()",
        ]
        saved = []
        for name, child in self.named_children():
            text = repr(child)
            if type(child) not in _REPRODUCED:
                save(child, folder / f"{name}.pt")
                saved.append(name)
                text = f"torch.load(r'{folder / name}.pt', weights_only=False)"
            lines.append(f"        setattr(self, {name!r}, {text})")
        for name, value in self._buffers.items():
            if value is not None:
                lines.append(f"        self.register_buffer({name!r}, {_empty_like(value)})")
        for name, value in self._parameters.items():
            if value is not None:
                lines.append(f"        setattr(self, {name!r}, torch.nn.Parameter({_empty_like(value)}))")
        lines.append(f"        self.load_state_dict(torch.load(r'{folder}/state_dict.pt'))")
        (folder / "module.py").write_text("\n".join(lines) + f"\n{_indented(self.code)}\n", encoding="utf-8")
        (folder / "__init__.py").write_text("from .module import *", encoding="utf-8")
        if saved:
            warnings.warn(
                "Was not able to save the following children modules as reprs -saved as pickled files instead: "
                f"{saved}",
                stacklevel=2,
            )

    def __str__(self) -> str:
        hint = "# To see more debug info, please use `graph_module.print_readable()`"
        return "\n".join([super().__str__(), self._code, hint])

    # ---- copies
    def _deepcopy_init(self):
        return GraphModule.__init__

    def __deepcopy__(self, memo):
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        body = _CodeOnlyModule(copy.deepcopy(self.__dict__, memo))
        self._deepcopy_init()(made, body, body.__dict__["_graph"])
        hooks = ("_state_dict_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks", *_HOOKS)
        for name in hooks:
            if name in self.__dict__:
                setattr(made, name, copy.deepcopy(self.__dict__[name], memo))
        made.__class__.__name__ = type(self).__name__
        made.meta = copy.deepcopy(self.__dict__.get("meta", {}), memo)
        for name, value in made.meta.get(_USER_PRESERVED_ATTRIBUTES_KEY, {}).items():
            setattr(made, name, value)
        for hook in self.__dict__.get("_deepcopy_hooks", ()):
            hook(made)
        return made

    def __copy__(self):
        made = GraphModule(self, self._graph, type(self).__name__)
        made.meta = self.__dict__.get("meta", {})
        return made

    def _replicate_for_data_parallel(self):
        made = self.__copy__()
        object.__setattr__(made, "_is_replica", True)
        return made

    def __reduce__(self):
        return reduce_graph_module, (self._body(), _imports(self.recompile().globals))

    def __reduce_package__(self, exporter):
        """Return what rebuilds the module from an archive of torch.package. The source becomes a module of that archive."""
        name = f"fx-generated._{exporter.get_unique_id()}"
        imports = _imports(self.recompile().globals, exporter.importer)
        exporter.save_source_string(name, imports + self.code)
        return reduce_package_graph_module, (self._body(), name)

    def _body(self) -> dict:
        """Return what a pickle keeps: all attributes but the graph, which is recorded again from the source."""
        body = {k: v for k, v in self.__dict__.items() if k != "_graph"}
        body["_graphmodule_cls_name"] = type(self).__name__
        return body

    # ---- hooks
    @contextlib.contextmanager
    def _set_replace_hook(self, f):
        """Within this block, ``f(old=, new=, user=)`` is called for each user whose input gets another node or name."""
        self._register_replace_node_hook(f)
        try:
            yield
        finally:
            self._unregister_replace_node_hook(f)


def _add_hook_methods() -> None:
    """Give GraphModule the methods that register and unregister each kind of hook."""
    kinds = {"replace_node": "_replace_hooks", "create_node": "_create_node_hooks", "erase_node": "_erase_node_hooks",
             "deepcopy": "_deepcopy_hooks"}  # fmt: skip
    for kind, attribute in kinds.items():
        for verb, change in (("register", list.append), ("unregister", list.remove)):

            def method(self, f, attribute=attribute, change=change):
                """Change the hooks of this kind."""
                if not callable(f):
                    raise AssertionError("A hook must be a callable.")
                change(getattr(self, attribute), f)

            method.__name__ = f"_{verb}_{kind}_hook"
            setattr(GraphModule, method.__name__, method)


_add_hook_methods()
_REPRODUCED = (
    nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d,
)  # fmt: skip


def _empty_like(value) -> str:
    return f"torch.empty({list(value.shape)}, dtype={value.dtype})"


def _indented(text: str) -> str:
    """Return a text of which all lines but the first are indented by four spaces."""
    return text.replace("\n", "\n    ")


def _readable(module, name: str, options: dict) -> str:
    code = module.graph.python_code("self", verbose=True, **options).src.lstrip("\n")
    parts = [_indented(f"class {name}(torch.nn.Module):\n{code}")]
    inner = {**options, "expanded_def": False}
    below = [_readable(m, n, inner) for n, m in module.named_children() if isinstance(m, GraphModule)]
    return "".join([*parts, _indented("\n".join(["", *below]))])


def _imports(used: dict, importer=None) -> str:
    """Return the statements that import what the source of a graph uses, under PyTorch's names.

    An ``importer`` of torch.package knows the names of what is not torch's.
    """
    lines = set()
    for name, value in used.items():
        if name in custom_builtins:
            lines.add(custom_builtins[name].import_str)
        elif isinstance(value, types.ModuleType):
            lines.add(f"import {names.to_file(value.__name__)} as {name}")
        else:
            own = (value.__module__, value.__qualname__) if importer is None else importer.get_name(value)
            module, path = names.place_of(value) or own
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
    space = {"__builtins__": {**vars(builtins), "__import__": _import}, "__name__": "<graph>"}
    exec(f"{import_block}\n{body.get('_code') or body['code']}", space)
    return _recorded(space["forward"], body)


def reduce_package_graph_module(importer, body: dict, generated_module_name: str) -> nn.Module:
    """Return the GraphModule of an archive of torch.package, where a module of its own has the source of its forward."""
    return _recorded(importer.import_module(generated_module_name).forward, body)


def _recorded(forward, body: dict) -> nn.Module:
    """Return a GraphModule with these attributes, whose graph is recorded from ``forward``."""
    body = dict(body)
    base = body.get("_tracer_cls") or extensions.symbolic_tracer.value

    class _Calls(base):
        def is_leaf_module(self, m, module_qualified_name):
            return True

    name = body.pop("_graphmodule_cls_name", "GraphModule")
    root = type(name, (_CodeOnlyModule,), {"forward": forward})(body)
    graph = _Calls().trace(root, **body.get("_tracer_extras", {}))
    graph._tracer_cls = base
    made = GraphModule(root, graph, name)
    for key, value in body.items():  # what the graph does not use
        if not hasattr(made, key):
            setattr(made, key, value)
    return made
