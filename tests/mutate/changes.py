"""The single changes that mutation testing makes to a Python file, each as a replaced piece of its text."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass

_BINARY = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
_COMPARED = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_PAIRS = [
    ("min", "max"), ("any", "all"), ("amin", "amax"), ("sin", "cos"), ("floor", "ceil"), ("sum", "mean"),
    ("sinh", "cosh"), ("minimum", "maximum"), ("real", "imag"), ("tril", "triu"), ("zeros_like", "ones_like"),
    ("new_zeros", "new_ones"), ("zeros", "ones"), ("beta1", "beta2"), ("exp", "expm1"), ("log", "log1p"),
    ("left", "right"), ("first", "last"), ("src", "dst"), ("start", "end"), ("rows", "columns"),
]  # fmt: skip
_SWAPPED = dict(_PAIRS) | {b: a for a, b in _PAIRS}
_ROOTS = {"sqrt", "sqrt_"}
_UNSEEN = {"__repr__", "__str__", "extra_repr"}  # texts for people
_CHECKS = {
    "strict",
    "stacklevel",
    "help",
}  # keywords that check the code itself, place a warning, or are read by people
_SYMMETRIC = {
    "max",
    "min",
    "maximum",
    "minimum",
    "gcd",
    "lcm",
    "logical_and",
    "logical_or",
    "logical_xor",
}  # the order of their arguments changes no result
_EXCHANGING = {
    "transpose",
    "transpose_",
    "swapaxes",
    "swapdims",
}  # methods that exchange the two dims they are given
_TELLING = {"warn", "warning", "info", "debug", "print"}


@dataclass(frozen=True)
class Change:
    """One change: the text from `start` to `end` (byte offsets) becomes `text`. `statement` says whether it is a whole
    statement, `kind` what was done, `at_import` whether the place runs when the module is imported."""

    file: str
    line: int
    start: int
    end: int
    text: str
    kind: str
    statement: bool
    at_import: bool

    def apply(self, source: bytes) -> bytes:
        return source[: self.start] + self.text.encode() + source[self.end :]


def _with(node, **fields):
    made = copy.copy(node)
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def _name(node) -> str:
    """The last part of a name: `b` of `a.b`. Empty for any other expression."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _is_root(node) -> bool:
    return isinstance(node, ast.Call) and _name(node.func) in _ROOTS


def _root_of_sum(root: ast.Call, term):
    """sqrt(x + term) for sqrt(x), as a function or a method."""
    if root.args:
        return _with(root, args=[ast.BinOp(root.args[0], ast.Add(), term), *root.args[1:]])
    return _with(root, func=_with(root.func, value=ast.BinOp(root.func.value, ast.Add(), term)))


def _of_binary(node: ast.BinOp) -> Iterator[tuple[str, ast.expr]]:
    if type(node.op) in _BINARY and not isinstance(node.left, (ast.JoinedStr, ast.List)):
        yield "operator", _with(node, op=_BINARY[type(node.op)]())
    if isinstance(node.op, (ast.Sub, ast.Div, ast.MatMult, ast.FloorDiv)):
        yield "order of operands", _with(node, left=node.right, right=node.left)
    if isinstance(node.op, ast.Add) and _is_root(node.left):
        yield "term into the root", _root_of_sum(node.left, node.right)


def _of_call(node: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    plain = [a for a in node.args if not isinstance(a, ast.Starred)]
    exchanged = isinstance(node.func, ast.Attribute) and node.func.attr in _EXCHANGING and len(plain) == 2
    ordered = len(plain) == len(node.args) and _name(node.func) not in _SYMMETRIC and not exchanged
    if len(plain) >= 2 and ordered and ast.dump(plain[0]) != ast.dump(plain[1]):
        yield "order of arguments", _with(node, args=[plain[1], plain[0], *plain[2:]])
    for k, keyword in enumerate(node.keywords):
        if keyword.arg is not None and keyword.arg not in _CHECKS:
            yield f"without {keyword.arg}=", _with(node, keywords=node.keywords[:k] + node.keywords[k + 1 :])
    added = isinstance(node.func, ast.Attribute) and node.func.attr in ("add", "add_") and len(node.args) == 1
    if added and _is_root(node.func.value):
        yield "term into the root", _root_of_sum(node.func.value, node.args[0])
    if _name(node.func) == "range" and node.args:
        last = min(len(node.args), 2) - 1
        args = list(node.args)
        args[last] = ast.BinOp(args[last], ast.Sub(), ast.Constant(1))
        yield "one turn less", _with(node, args=args)


def _of_constant(node: ast.Constant) -> Iterator[tuple[str, ast.expr]]:
    value = node.value
    if isinstance(value, bool):
        yield "constant", ast.Constant(not value)
    elif isinstance(value, int):
        yield "constant", ast.Constant(value + 1)
    elif isinstance(value, float):
        yield "constant", ast.Constant(value * 2 if value else 1.0)


def _expressions(node) -> Iterator[tuple[str, ast.expr]]:
    """The replacements of an expression."""
    if isinstance(node, ast.BinOp):
        yield from _of_binary(node)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.Not)):
        yield "sign" if isinstance(node.op, ast.USub) else "negation", node.operand
    elif isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARED:
        yield "comparison", _with(node, ops=[_COMPARED[type(node.ops[0])]()])
    elif isinstance(node, ast.BoolOp):
        yield "and/or", _with(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
        for k in range(len(node.values)):
            rest = node.values[:k] + node.values[k + 1 :]
            yield "condition less", rest[0] if len(rest) == 1 else _with(node, values=rest)
    elif isinstance(node, ast.IfExp):
        yield "branches", _with(node, body=node.orelse, orelse=node.body)
    elif isinstance(node, ast.Call):
        yield from _of_call(node)
    elif isinstance(node, ast.Constant):
        yield from _of_constant(node)
    elif isinstance(node, ast.Name) and node.id in _SWAPPED:
        yield "name", _with(node, id=_SWAPPED[node.id])
    elif isinstance(node, ast.Attribute) and node.attr in _SWAPPED:
        yield "name", _with(node, attr=_SWAPPED[node.attr])


def _only_raises(node) -> bool:
    return isinstance(node, ast.If) and not node.orelse and all(isinstance(s, ast.Raise) for s in node.body)


def _dropped(node) -> bool:
    """Whether a statement should be left out as a change."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, (ast.Call, ast.Await)) and _name(node.value.func) not in _TELLING
    if isinstance(node, ast.Assign):
        return all(isinstance(t, (ast.Attribute, ast.Subscript)) for t in node.targets)
    return isinstance(node, ast.AugAssign) or _only_raises(node)


class _Collector:
    def __init__(self, file: str, source: bytes):
        self.file, self.source, self.found, self.functions = file, source, [], 0
        self.starts = [0]
        for line in source.split(b"\n"):
            self.starts.append(self.starts[-1] + len(line) + 1)

    def note(self, node, text: str, kind: str, statement: bool):
        start = self.starts[node.lineno - 1] + node.col_offset
        if statement and self.source.startswith(b"elif", start):
            return  # its place belongs to the condition before
        end = self.starts[node.end_lineno - 1] + node.end_col_offset
        self.found.append(
            Change(self.file, node.lineno, start, end, text, kind, statement, not self.functions)
        )

    def visit(self, node, depth: int = 0):
        if isinstance(
            node, (ast.Raise, ast.Assert, ast.JoinedStr, ast.Import, ast.ImportFrom, ast.match_case)
        ):
            return
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name in _UNSEEN:
            return
        if isinstance(node, ast.Call) and _name(node.func) in _TELLING:
            return
        if isinstance(node, ast.keyword) and node.arg in _CHECKS:
            return
        if isinstance(node, ast.stmt) and depth > 1 and _dropped(node):
            self.note(node, "pass", "statement dropped", True)
        if isinstance(node, ast.expr) and not isinstance(getattr(node, "ctx", None), (ast.Store, ast.Del)):
            for kind, made in _expressions(node):
                self.note(node, f"({ast.unparse(ast.fix_missing_locations(made))})", kind, False)
        for name, value in ast.iter_fields(node):
            inner = name == "body" and isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
            if name in ("annotation", "returns", "decorator_list", "type_params"):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    self.functions += inner
                    self.visit(child, depth + 1)
                    self.functions -= inner


def changes_of(file: str, source: bytes) -> list[Change]:
    """All single changes of a Python file."""
    collector = _Collector(file, source)
    collector.visit(ast.parse(source))
    return collector.found


def parses(change: Change, source: bytes) -> bool:
    """Whether the changed file is valid Python. A replacement may not be valid in its place."""
    try:
        ast.parse(change.apply(source))
    except SyntaxError:
        return False
    return True


_WITNESS = b"""
def __witness__(mark, _seen=set()):
    import os
    test = os.environ.get("PYTEST_CURRENT_TEST", "import")
    if (mark, test) not in _seen:
        _seen.add((mark, test))
        process = "main" if os.environ.get("MSADAPTER_MUTATE_PID") == str(os.getpid()) else "child"
        try:
            with open(os.environ["MSADAPTER_MUTATE_SEEN"], "a", encoding="utf-8") as file:
                file.write(f"{mark}\\t{process}\\t{test}\\n")
        except OSError:  # a test may limit what a process can write
            pass
"""


def instrumented(source: bytes, marks: dict[int, Change]) -> bytes:
    """The file with a call at the place of each change, which records the running test."""
    tree = ast.parse(source)
    spots: dict[tuple[int, int, bool], list[int]] = {}
    for mark, change in marks.items():
        spots.setdefault((change.start, change.end, change.statement), []).append(mark)
    inserted: list[tuple[int, int, bytes]] = []
    for (start, end, statement), found in spots.items():
        calls = " or ".join(f"__witness__({m})" for m in found)
        if statement:
            # On a line of its own before the statement, or on the same line if other statements are there.
            indent = source[source.rfind(b"\n", 0, start) + 1 : start]
            between = b"; " if indent.strip() else b"\n" + indent
            inserted.append((start, -len(source), calls.encode() + between))
        else:
            inserted += [(start, -end, f"({calls} or (".encode()), (end, start, b"))")]
    # At one place closing brackets come first, and of opening ones the widest expression's.
    for place, _, text in sorted(inserted, key=lambda i: (i[0], i[2] != b"))", i[1]), reverse=True):
        source = source[:place] + text + source[place:]
    first = tree.body[0] if tree.body else None
    future = [n for n in tree.body if isinstance(n, ast.ImportFrom) and n.module == "__future__"]
    documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    line = max([n.end_lineno for n in future] + [first.end_lineno if documented else 0])
    lines = source.split(b"\n")
    return b"\n".join([*lines[:line], _WITNESS, *lines[line:]])
