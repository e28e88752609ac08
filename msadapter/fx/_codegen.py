"""The Python code of a graph."""

from __future__ import annotations

import enum
import keyword
import re
import types
import typing
from collections import defaultdict
from dataclasses import dataclass
from typing import Any, NamedTuple

import msadapter

from .._aten import OpOverload
from .._serialization import names
from ..utils import _pytree as pytree
from ._names import custom_builtins
from ._qualified import qualified_name, type_text
from .node import DTYPE_NAMES, Node
from .tensor_type import TensorType

__all__ = ["CodeGen", "PyTreeCodeGen", "PyTreeInfo", "PythonCode"]
reflectable_magic_methods = {
    "add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "floordiv": "{} // {}", "truediv": "{} / {}", "div": "{} / {}",
    "mod": "{} % {}", "pow": "{} ** {}", "lshift": "{} << {}", "rshift": "{} >> {}", "and_": "{} & {}", "or_": "{} | {}",
    "xor": "{} ^ {}", "getitem": "{}[{}]", "matmul": "{} @ {}",
}  # fmt: skip
magic_methods = {
    "eq": "{} == {}", "ne": "{} != {}", "lt": "{} < {}", "gt": "{} > {}", "le": "{} <= {}", "ge": "{} >= {}",
    "pos": "+{}", "neg": "-{}", "invert": "~{}", **reflectable_magic_methods,
}  # fmt: skip
inplace_methods = {
    "iadd": "{} += {}", "iand": "{} &= {}", "ifloordiv": "{} //= {}", "ilshift": "{} <<= {}", "imod": "{} %= {}",
    "imul": "{} *= {}", "imatmul": "{} @= {}", "ior": "{} |= {}", "ipow": "{} **= {}", "irshift": "{} >>= {}",
    "isub": "{} -= {}", "itruediv": "{} /= {}", "ixor": "{} ^= {}", "setitem": "{}[{}] = {}",
}  # fmt: skip
# The generic classes of typing that stand for built-in ones: PyTorch writes typing.List[int] and list[int] in different ways.
_OF_TYPING = {
    typing.get_origin(kind): kind
    for kind in map(vars(typing).get, ("List", "Dict", "Set", "FrozenSet", "Tuple"))
}
_COLORS = {"red": 31, "blue": 34, "dim": 2, "dim_blue": "2m\033[34", "dim_green": "2m\033[32"}


@dataclass
class PythonCode:
    """The source of a function and the globals that it needs.

    Attributes:
        src: the source.
        globals: name -> object.
        _lineno_map: line of the source, counted from its `def` -> number of the node that is computed there.
        _prologue_start: the line of the `def`.
    """

    src: str
    globals: dict[str, Any]
    _lineno_map: dict[int, int | None] | None
    _prologue_start: int = 0


def _format_target(base: str, target: str) -> str:
    """Return the expression that reads a dotted path of an object."""
    for part in target.split("."):
        plain = part.isidentifier() and not keyword.iskeyword(part)
        base = f"{base}.{part}" if plain else f'getattr({base}, "{part}")'
    return base


def _resolves(name: str, target) -> bool:
    """Return whether an expression that begins with `torch` gives an object."""
    value = msadapter
    for part in name.split(".")[1:]:
        value = getattr(value, part, None)
    return value is target


class _Writer:
    """Writes the nodes of one graph. CodeGen decides what the function around them looks like."""

    def __init__(self, codegen, root_module: str, namespace, options: dict):
        self.codegen, self.root_module, self.namespace, self.options = (
            codegen,
            root_module,
            namespace,
            options,
        )
        self.parameters: list[str] = []
        self.body: list[str] = []
        self.globals: dict[str, Any] = {}
        self.wrapped: dict[str, None] = {}
        self.returned = ""
        self._summary = None  # the last comment about the program's line
        for name, builtin in custom_builtins.items():
            self.add_global(name, builtin.obj)

    # ---- names
    def add_global(self, hint: str, obj) -> str:
        """Return the expression by which the code refers to something outside the graph."""
        if names.is_ours(getattr(obj, "__module__", None)) and obj is not msadapter.device:
            name = qualified_name(obj)
            if _resolves(name, obj):
                return name
        name = self.namespace.create_name(hint, obj)
        self.globals.setdefault(name, obj)
        return name

    def annotation(self, kind) -> str:
        """Return a type as an annotation of the code."""
        if kind == ():
            return "()"
        text = type_text(kind)
        if isinstance(kind, types.UnionType):
            return "|".join(map(self.annotation, typing.get_args(kind)))
        origin = getattr(kind, "__origin__", None)
        if not origin:
            return self.add_global(text, kind)
        if isinstance(kind, typing._GenericAlias):
            origin = _OF_TYPING.get(origin, origin)
        name = self.add_global(type_text(origin), origin)
        args = kind.dims if isinstance(kind, TensorType) else typing.get_args(kind)
        return f"{name}[{','.join(map(self.annotation, args))}]" if args else name

    # ---- values
    def value(self, arg) -> str:
        """Return an argument as an expression."""
        if isinstance(arg, Node):
            return repr(arg)
        if isinstance(arg, tuple) and hasattr(arg, "_fields"):
            cls = self.add_global(qualified_name(type(arg)), type(arg))
            return f"{cls}({', '.join(map(self.value, arg))})"
        if isinstance(arg, (tuple, list)):
            inner = ", ".join(map(self.value, arg))
            if isinstance(arg, list):
                return f"[{inner}]"
            return f"({inner},)" if len(arg) == 1 else f"({inner})"
        if isinstance(arg, dict):
            return "{" + ", ".join(f"{k!r}: {self.value(v)}" for k, v in arg.items()) + "}"
        if isinstance(arg, slice):
            return f"slice({', '.join(map(self.value, (arg.start, arg.stop, arg.step)))})"
        return self._constant(arg)

    def _constant(self, arg) -> str:
        if isinstance(arg, enum.Enum):
            return f"{self.add_global(type(arg).__name__, type(arg))}.{arg.name}"
        if isinstance(arg, msadapter.Tensor):
            return f"torch.Tensor(size={list(arg.size())}, dtype={str(arg.dtype).rpartition('.')[2]})"
        if isinstance(arg, OpOverload):
            return str(arg) if _resolves(str(arg), arg) else self.add_global(str(arg), arg)
        if isinstance(arg, type) or (
            callable(arg) and hasattr(arg, "__name__") and hasattr(arg, "__module__")
        ):
            return self.add_global(qualified_name(arg), arg)
        return self.color("blue", repr(arg))

    def call(self, args, kwargs) -> str:
        """Return the arguments of a call, without the parentheses."""
        return ", ".join([*map(self.value, args), *(f"{k} = {self.value(v)}" for k, v in kwargs.items())])

    def color(self, name: str, text: str) -> str:
        """Return a text in a color, if colors are wanted."""
        return f"\033[{_COLORS[name]}m{text}\033[0m" if self.options.get("colored") and text else text

    # ---- nodes
    def node(self, node) -> None:
        """Add the line of a node, without its end."""
        kind = self._annotation_of(node)
        if node.op == "placeholder":
            default = f" = {self.value(node.args[0])}" if node.args else ""
            comment = self._description(node)
            self.parameters.append(f"{node.target}{kind}{default}{comment}")
            raw = node.target.replace("*", "")
            if raw != repr(node):
                self.body.append(f"{node!r} = {raw}\n")
        elif node.op == "output":
            if node.type is not None:
                self.returned = f" -> {self.annotation(node.type)}"
            descriptions = node.meta.get("desc") if self.options.get("expanded_def") else None
            options = {"descs": descriptions, "repr_fn": self.value}
            self.body.append(_with_known(self.codegen.generate_output, node.args[0], **options))
        elif (
            getattr(node.target, "__module__", "") == "_operator" and node.target.__name__ in inplace_methods
        ):
            left = self.value(node.args[0])
            text = inplace_methods[node.target.__name__].format(*map(self.value, node.args))
            self.body.append(f"{text};  {node!r}{kind} = {left}")
        else:
            self.body.append(f"{node!r}{kind} = {self._expression(node)}")

    def _expression(self, node) -> str:
        if node.op == "call_method":
            receiver, *args = node.args
            return f"{_format_target(self.value(receiver), node.target)}({self.call(args, node.kwargs)})"
        if node.op == "call_module":
            return f"{_format_target(self.root_module, node.target)}({self.call(node.args, node.kwargs)})"
        if node.op == "get_attr":
            return _format_target(self.root_module, node.target)
        name = getattr(node.target, "__name__", "")
        if getattr(node.target, "__module__", "") == "_operator" and name in magic_methods:
            return magic_methods[name].format(*map(self.value, node.args))
        function = self._function(node.target)
        args = node.args
        if function == "getattr" and len(args) == 2 and isinstance(args[1], str) and args[1].isidentifier():
            return _format_target(self.value(node.args[0]), node.args[1])
        if node.meta.get("is_wrapped", False) and function.isidentifier():
            self.wrapped.setdefault(function)
        return f"{function}({self.call(node.args, node.kwargs)})"

    def _function(self, target) -> str:
        if isinstance(target, OpOverload):
            name = f"torch.ops.{target}"
            return name if _resolves(name, target) else self.add_global(str(target), target)
        return self.add_global(qualified_name(target), target)

    def _annotation_of(self, node) -> str:
        if self.options.get("verbose"):
            known = self._tensor_annotation(node)
            if known:
                return known
        return "" if node.type is None else f" : {self.annotation(node.type)}"

    def _tensor_annotation(self, node) -> str:
        value = node.meta.get("val", node.meta.get("tensor_meta", node.meta.get("example_value")))
        if not hasattr(value, "dtype") or not hasattr(value, "shape"):
            return ""
        text = self.color("red", DTYPE_NAMES[value.dtype]) + self.color("blue", _sizes(value.shape))
        if isinstance(value, msadapter.Tensor):
            text += (
                self.color("dim_blue", _sizes(value.stride())) if self.options.get("include_stride") else ""
            )
            text += self.color("dim_green", str(value.device)) if self.options.get("include_device") else ""
            cls = type(value)
            if cls not in (msadapter.Tensor, msadapter.nn.Parameter):
                text = f"{cls.__name__}({text})"
        return f': "{text}"'

    def _description(self, node) -> str:
        text = node.meta.get("desc") if self.options.get("expanded_def") else None
        return f"  # {text}" if text is not None else ""

    def summary(self, node) -> None:
        """Add a comment that names the program's line, if it is another one than before."""
        if node.op in ("placeholder", "output"):
            return
        keys = [k for k in self.options.get("additional_meta") or () if k in node.meta]
        head = "# " + ", ".join(f"{k}: {node.meta[k]}" for k in keys) + " " if keys else ""
        custom = {k: _shortened(v) for k, v in node.meta.get("custom", {}).items()}
        notes = f" Annotation: {custom}" if custom else ""
        parsed = parse_stack_trace(node.stack_trace)
        place = parsed.get_summary_str() if parsed else "No stacktrace found for following nodes"
        text = "\n" + self.color("dim", f"{head}#{notes} {place}") + "\n"
        if text != self._summary:
            self._summary = text
            self.body.append(text)


def _sizes(sizes) -> str:
    return f"[{', '.join(map(str, sizes))}]"


def _shortened(value):
    text = str(value)
    return f"{text[:40]}..." if len(text) > 40 else value


def _with_known(method, *args, **options):
    """Call a method of a CodeGen with the options that it knows: those of programs have fewer."""
    code = method.__func__.__code__ if hasattr(method, "__func__") else method.__code__
    known = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    takes_all = code.co_flags & 8  # **kwargs
    return method(*args, **{k: v for k, v in options.items() if takes_all or k in known})


@dataclass(frozen=True)
class ParsedStackTrace:
    """The innermost line of a stack trace."""

    file: str
    lineno: str
    name: str
    code: str

    def get_summary_str(self) -> str:
        """Return the place and the line as one text."""
        return f"File: {self.file}:{self.lineno} in {self.name}, code: {self.code}"


def parse_stack_trace(stack_trace: str | None, filter_fn=None) -> ParsedStackTrace | None:
    """Return the innermost line of a stack trace of which `filter_fn(file, name, code)` is true."""
    lines = (stack_trace or "").strip().split("\n")
    for head, code in reversed(list(zip(lines, lines[1:], strict=False))):
        match = re.match(r'^File "(.+)", line (\d+), in (.+)$', head.strip())
        if match:
            found = ParsedStackTrace(*match.groups(), code.strip())
            if filter_fn is None or filter_fn(found.file, found.name, found.code):
                return found
    return None


def last_uses(nodes) -> dict:
    """Return for each node the inputs that no later node reads, in the order of its arguments."""
    seen, last = set(), defaultdict(list)
    for node in reversed(nodes):
        for x in node._input_nodes:
            if x not in seen:
                seen.add(x)
                last[node].append(x)
    return last


class CodeGen:
    """Writes a graph as a function. Subclasses change its arguments and results."""

    def __init__(self):
        self._body_transformer = None  # changes the lines of the function
        self._func_name = "forward"

    def gen_fn_def(
        self, free_vars: list[str], maybe_return_annotation: str, *, expanded_def: bool = False
    ) -> str:
        """Return the line with `def`. ``free_vars`` are the placeholders; `self` is added if it is not among them."""
        if not free_vars or free_vars[0] != "self":
            free_vars.insert(0, "self")
        inner = ", ".join(free_vars)
        if expanded_def:
            inner = "\n" + "".join(_line_with_comment(arg) for arg in free_vars)
        return f"def {self._func_name}({inner}){maybe_return_annotation}:"

    def generate_output(self, output_args, *, descs=None, repr_fn=None) -> str:
        """Return the statement that returns the results."""
        return f"return {_results(output_args, descs, repr_fn or repr)}"

    def process_inputs(self, *args):
        """Return what the placeholders receive when the function is called with these arguments."""
        return args

    def process_outputs(self, outputs):
        """Return what the function returns for these results of the graph."""
        return outputs

    def additional_globals(self) -> list[tuple[str, Any]]:
        """Return further globals of the code, as pairs of a name and an object."""
        return []

    def _gen_python_code(self, nodes, root_module: str, namespace, **options) -> PythonCode:
        writer = _Writer(self, root_module, namespace, options)
        last = last_uses(nodes)
        for number, node in enumerate(nodes):
            if options.get("verbose"):
                writer.summary(node)
            writer.body.append(f"# COUNTER: {number}\n")
            writer.node(node)
            if node.op != "placeholder":
                writer.body.append(_end_of_line(node, last[node]))
        body = writer.body or ["pass\n"]
        wraps = ""
        if writer.wrapped:
            wrap = writer.add_global("wrap", msadapter.fx.wrap)
            wraps = "\n".join(f'{wrap}("{name}")' for name in writer.wrapped)
        if self._body_transformer is not None:
            body = self._body_transformer(body)
        for name, value in self.additional_globals():
            writer.add_global(name, value)
        options = {"expanded_def": options.get("expanded_def", False)}
        head = _with_known(self.gen_fn_def, writer.parameters, writer.returned, **options)
        lines, numbers = _numbered("".join(body), head.count("\n") + 1)
        text = "\n".join("    " + line for line in lines)
        return PythonCode(f"\n{wraps}\n\n{head}\n{text}", writer.globals, numbers, wraps.count("\n") + 4)


def _line_with_comment(arg: str) -> str:
    text, mark, comment = arg.partition("#")
    return f"    {text.rstrip()},{'  #' if mark else ''}{comment}\n"


def _results(output_args, descs, repr_fn) -> str:
    """Return the results as an expression, in several lines if they have descriptions."""
    if descs is None or not isinstance(output_args, (list, tuple)):
        return repr_fn(output_args)
    left, right = "()" if isinstance(output_args, tuple) else "[]"
    lines = [f"    {repr_fn(x)},  # {d}\n" for x, d in zip(output_args, descs, strict=True)]
    return f"{left}\n{''.join(lines)}{right}"


def _end_of_line(node, dead: list) -> str:
    """Return what follows the expression of a node: values that nobody reads any more are freed."""
    if node.op == "output":
        return "\n"
    dead = dead if node.users else [*dead, node]
    return f";  {' = '.join(map(repr, dead))} = None\n" if dead else "\n"


def _numbered(body: str, offset: int) -> tuple[list[str], dict]:
    """Return the lines without the counters of the nodes, and for each line the number of its node."""
    lines: list[str] = []
    numbers: dict[int, int | None] = {}
    current = None
    for line in body.split("\n"):
        match = re.search(r"# COUNTER: (\d+)", line)
        if match:
            current = int(match.group(1))
        else:
            numbers[len(lines) + offset] = current
            lines.append(line)
    while len(lines) > 1 and not lines[0]:
        lines.pop(0)
    return lines, numbers


class PyTreeInfo(NamedTuple):
    """The containers of the arguments and results of a traced function.

    Attributes:
        orig_args: the names of its arguments.
        in_spec: the structure of the arguments.
        out_spec: the structure of the results; None if they stay as the graph returns them.
    """

    orig_args: list[str]
    in_spec: Any
    out_spec: Any


class PyTreeCodeGen(CodeGen):
    """Writes a function that takes its arguments apart for the graph, and puts the results together."""

    def __init__(self, pytree_info: PyTreeInfo):
        super().__init__()
        self.pytree_info = pytree_info

    def process_inputs(self, *args):
        return pytree.tree_leaves(args)

    def process_outputs(self, outputs):
        if self.pytree_info is None or self.pytree_info.out_spec is None:
            return outputs
        outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]
        return pytree.tree_unflatten(outputs, self.pytree_info.out_spec)

    def gen_var_bindings(self, fn_args: list[str], free_vars: list[str], expanded_def: bool) -> str:
        """Return the lines that give the placeholders their values out of the function's arguments."""
        spec = self.pytree_info.in_spec
        given = f"[{', '.join(fn_args)}]"
        if spec.type is tuple and [child.type for child in spec.children_specs] == [tuple, dict]:
            count = spec.children_specs[0].num_children
            arguments = self.pytree_info.orig_args
            named = zip(spec.children_specs[1].context, arguments[count:], strict=False)
            given = f"([{', '.join(arguments[:count])}], {{{', '.join(f'{k!r}:{v}' for k, v in named)}}})"
        annotated = [x for x in free_vars if ":" in x]
        lines = "\n    " + "".join(f"{x}; " for x in annotated) + "\n" if annotated else ""
        if expanded_def and annotated:
            lines = "\n    " + "\n    ".join(annotated)
        bare = [re.split("[:#]", x)[0] for x in free_vars]
        return f"{lines}\n    {', '.join(bare)}, = fx_pytree.tree_flatten_spec({given}, self._in_spec)"

    def gen_fn_def(
        self, free_vars: list[str], maybe_return_annotation: str, *, expanded_def: bool = False
    ) -> str:
        if self.pytree_info is None:
            return super().gen_fn_def(free_vars, maybe_return_annotation, expanded_def=expanded_def)
        arguments = self.pytree_info.orig_args
        if arguments and arguments[0] == "self":
            free_vars.insert(0, "self")
        head = super().gen_fn_def(arguments[:], maybe_return_annotation, expanded_def=expanded_def)
        return head + self.gen_var_bindings(arguments, free_vars, expanded_def) if free_vars else head

    def generate_output(self, output_args, *, descs=None, repr_fn=None) -> str:
        if not self.pytree_info or not self.pytree_info.out_spec:
            return super().generate_output(output_args, descs=descs, repr_fn=repr_fn)
        return (
            f"return pytree.tree_unflatten({_results(output_args, descs, repr_fn or repr)}, self._out_spec)"
        )
