"""Fusion of elementwise operators in functions given to torch.compile or torch.jit.script.

The first call with operands of certain dtypes and shapes runs the function on symbols. If every operation is
known here, later calls run the recorded program as one kernel (FusedPointwise). It reads memory once, and
rounds every step like the single operator. In all other cases (other operations, gradients, an accelerator)
the function itself runs. The numbers are the same in both cases.
"""

from __future__ import annotations

import dis
import functools
import types
import warnings

from .. import overrides
from .._host.accelerator import on_host
from .._values.dtype import ALL, dtype
from ..autograd import is_grad_enabled
from ..func._binding import bind
from ..nn.parameter import Parameter
from ..ops._declare import _C, declaration_of, declarations, namespaces, raw
from ..tensor import Tensor

CODES = {name: code for code, name in enumerate(_C.fused_instructions())}
_RESULT, _TEMPORARIES, _OPERANDS, _PLANS = 1000, 16, 6, 64
_ROUNDING = {"float32": 0, "bfloat16": 1, "float16": 2}
_WORTH = 2  # instructions; a single operator is as fast without fusion


class NotFusable(Exception):
    """The function does something for which the fused program has no instruction."""


class Symbol:
    """A tensor while a function is recorded.

    It is an operand (or a part of one), the result of an operation, or a concatenation of symbols.
    """

    requires_grad, is_meta = False, False

    def __init__(self, dtype, shape, code=None, operands=(), leaf=None, parts=()):
        self.dtype, self.shape, self.ndim = dtype, tuple(shape), len(shape)
        self._code, self._operands, self._leaf, self._parts = code, operands, leaf, parts

    def size(self, dim=None):
        return self.shape if dim is None else self.shape[dim]

    def dim(self):
        return self.ndim

    def to(self, wanted, *rest, **options):
        if not isinstance(wanted, dtype) or rest or options or wanted.name not in _ROUNDING:
            raise NotFusable("to()")
        if wanted is self.dtype:
            return self
        return Symbol(wanted, self.shape, "copy", (self,))

    def type_as(self, other):
        return self.to(other.dtype)

    def float(self):
        return self.to(ALL["float32"])

    def chunk(self, chunks, dim=0):
        return _chunk(self, chunks, dim)

    __hash__ = object.__hash__

    def __getattr__(self, name):
        raise NotFusable(name)


def _refused(name):
    def method(self, *args):
        raise NotFusable(name)

    return method


# Python looks these up on the class, past __getattr__: what needs values, and operators without an instruction. Fusable
# operators replace theirs below.
for _name in ("bool", "int", "float", "complex", "index", "len", "iter", "getitem", "setitem", "contains", "array", "eq", "ne",
              "lt", "le", "gt", "ge", "pos", "invert", "round", "format", "and", "or", "xor", "lshift", "rshift", "pow", "rpow",
              "mod", "rmod", "floordiv", "rfloordiv", "matmul", "rmatmul", "iadd", "isub", "imul", "itruediv", "ipow"):  # fmt: skip
    setattr(Symbol, f"__{_name}__", _refused(_name))


def _method(declaration, reverse=False):
    return lambda self, *args, **kwargs: _step(
        declaration, (*args, self) if reverse else (self, *args), kwargs
    )


def _add_methods(declaration) -> None:
    """Give symbols the methods and the special methods of a fusable operator, and those with the operands in reverse."""
    for place in declaration.names:
        space, _, name = place.rpartition(".")
        if space == "Tensor" and namespaces[space][name] is not declaration.inplace:
            setattr(Symbol, name, _method(declaration))
    if declaration.dunder and len(declaration.schema.parameters) > 1:
        setattr(Symbol, f"__r{declaration.dunder.strip('_')}__", _method(declaration, reverse=True))


for _declaration in declarations.values():
    if _declaration.facts.fuses is not None:
        _add_methods(_declaration)
# Tensors compute it in these two steps, and the fused program has to round as they do.
Symbol.__rtruediv__ = lambda self, other: other * self.reciprocal()


def _shape_of(shapes):
    width = max(len(s) for s in shapes)
    padded = [(1,) * (width - len(s)) + tuple(s) for s in shapes]
    out = []
    for sizes in zip(*padded, strict=True):
        longest = max(sizes) if 0 not in sizes else 0
        if any(s not in (1, longest) for s in sizes):
            raise NotFusable("sizes that do not go together")
        out.append(longest)
    return tuple(out)


def _whole(x):
    if x._parts:
        raise NotFusable("parts put together are a result here, no operand")
    return x


def _pair(code, a, b):
    symbols = [_whole(x) for x in (a, b) if isinstance(x, Symbol)]
    for x in (a, b):
        if not isinstance(x, (Symbol, int, float)) or isinstance(x, bool):
            raise NotFusable(type(x).__name__)
    dtype = symbols[0].dtype
    if any(s.dtype is not dtype for s in symbols):
        dtype = ALL["float32"]  # the common dtype of any two different dtypes that are supported here
    return Symbol(dtype, _shape_of([s.shape for s in symbols]), code, (a, b))


def _single(code, x):
    return Symbol(_whole(x).dtype, x.shape, code, (x,))


def _chunk(x, chunks, dim):
    dim = dim + x.ndim if dim < 0 else dim
    size = x.shape[dim]
    if x._parts or chunks <= 0 or size % chunks:
        raise NotFusable("chunk")
    each = size // chunks
    return tuple(_part(x, x.ndim - dim, i * each, each, {}) for i in range(chunks))


def _part(x, from_the_end, start, length, done):
    """Return the positions start to start + length of a dim, counted from the last, in all operands of ``x``."""
    if not isinstance(x, Symbol) or x.ndim < from_the_end or x.shape[x.ndim - from_the_end] == 1:
        return x
    if id(x) not in done:
        done[id(x)] = _cut(x, from_the_end, start, length, done)
    return done[id(x)]


def _cut(x, from_the_end, start, length, done):
    dim = x.ndim - from_the_end
    shape = x.shape[:dim] + (length,) + x.shape[dim + 1 :]
    if x._leaf is not None:
        index, cuts = x._leaf
        if cuts:
            raise NotFusable("a part of a part")
        return Symbol(x.dtype, shape, leaf=(index, ((dim, start, length),)))
    return Symbol(
        x.dtype, shape, x._code, tuple(_part(o, from_the_end, start, length, done) for o in x._operands)
    )


def _cat(tensors, dim=0):
    first = tensors[0]
    if len(tensors) > 4 or any(
        not isinstance(x, Symbol) or x.dtype is not first.dtype or x.ndim != first.ndim for x in tensors
    ):
        raise NotFusable("cat")
    dim = dim + first.ndim if dim < 0 else dim
    for x in tensors:
        _whole(x)
        if x.shape[:dim] + x.shape[dim + 1 :] != first.shape[:dim] + first.shape[dim + 1 :]:
            raise NotFusable("cat")
    shape = first.shape[:dim] + (sum(x.shape[dim] for x in tensors),) + first.shape[dim + 1 :]
    return Symbol(first.dtype, shape, parts=(dim, tuple(tensors)))


_LAYOUT = {"cat": _cat, "chunk": lambda self, chunks, dim=0: _chunk(self, chunks, dim)}


def _instruction(declaration, bound) -> tuple[str, tuple[str, ...]]:
    """(instruction, arguments that determined it) of a call."""
    fuses = declaration.facts.fuses
    if not isinstance(fuses, dict):
        return fuses, ()
    for (argument, value), instruction in fuses.items():
        if bound[argument] == value:
            return instruction, (argument,)
    raise NotFusable(declaration.schema.name)


def _step(declaration, args, kwargs):
    """The step for a call of a fusable operator: the operands come first, and every other argument has its default."""
    bound = bind(declaration, args, kwargs)
    instruction, decided = _instruction(declaration, bound)
    parameters = declaration.schema.parameters
    operands = [bound[p.name] for p in parameters if p.type in ("Tensor", "TensorOrScalar")]
    for p in parameters:
        if (
            p.type not in ("Tensor", "TensorOrScalar")
            and p.name not in decided
            and bound[p.name] != p.default
        ):
            raise NotFusable(f"{declaration.schema.name} with {p.name}={bound[p.name]!r}")
    return _single(instruction, *operands) if len(operands) == 1 else _pair(instruction, *operands)


class _Recording(overrides.TorchFunctionMode):
    """Calls operators with symbols while a function is recorded."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        declaration, inplace = declaration_of(function)
        if declaration is None or inplace:
            raise NotFusable(getattr(function, "__name__", repr(function)))
        if declaration.schema.name in _LAYOUT:
            return _LAYOUT[declaration.schema.name](*args, **(kwargs or {}))
        if declaration.facts.fuses is None:
            raise NotFusable(declaration.schema.name)
        return _step(declaration, args, kwargs or {})


class _Plan:
    """A recorded function: its program, and how operands and results are split into parts."""

    def __init__(self, result):
        self.code, self.constants, self.leaves, self.results = [], [], [], []
        self._register, self._free = {}, list(range(_TEMPORARIES))
        self.single = isinstance(result, Symbol)
        self.shapes = [result] if self.single else list(result)
        roots = []
        for number, whole in enumerate(self.shapes):
            if not isinstance(whole, Symbol) or whole._leaf is not None or 0 in whole.shape:
                raise NotFusable("a result that is not a new tensor")
            parts = whole._parts[1] if whole._parts else (whole,)
            at = 0
            for part in parts:
                dim = whole._parts[0] if whole._parts else None
                self.results.append((number, dim, at, part.shape[dim] if dim is not None else 0))
                at += part.shape[dim] if dim is not None else 0
                roots.append(part)
        if len({part.shape for part in roots}) != 1:
            raise NotFusable("results of several sizes")
        self._numbers: dict = {}  # structure of a value -> its number, so that equal values are computed once
        self._known: dict = {}
        self.uses: dict = {}
        for root in roots:
            self._visit(root)
        for k, root in enumerate(roots):
            self._emit(root, _RESULT + k)
            self._read(root)
        if len(self.code) < _WORTH * 5 or len(self.leaves) + len(roots) > _OPERANDS:
            raise NotFusable("size")

    def _number(self, x):
        if id(x) not in self._known:
            about = (
                x._leaf
                if x._leaf is not None
                else tuple(self._number(o) if isinstance(o, Symbol) else float(o) for o in x._operands)
            )
            key = (x._code, x.dtype.name, about)
            self._known[id(x)] = (
                self._numbers.setdefault(key, len(self._numbers)),
                x,
            )  # the symbol is kept alive, so that its id is not used again
        return self._known[id(x)][0]

    def _visit(self, x):
        """Count how often each value is used, and collect the operands."""
        if not isinstance(x, Symbol):
            return
        if x._leaf is not None:
            if x._leaf not in self.leaves:
                self.leaves.append(x._leaf)
            return
        number = self._number(x)
        self.uses[number] = self.uses.get(number, 0) + 1
        if self.uses[number] == 1:
            for o in x._operands:
                self._visit(o)

    def _read(self, x):
        """Note one use of a value. Its register becomes free after the last use."""
        if not isinstance(x, Symbol) or x._leaf is not None:
            return
        number = self._number(x)
        self.uses[number] -= 1
        if not self.uses[number] and number in self._register:
            self._free.append(self._register[number] - len(self.leaves))

    def _constant(self, value, code, dtype):
        # as in the operators, a number is first rounded to the operands' dtype in sums
        if code in ("add", "sub") and dtype.name != "float32":
            value = raw.FillScalar([], value, dtype).item()
        if float(value) not in self.constants:
            self.constants.append(float(value))
        return -1 - self.constants.index(float(value))

    def _operand(self, x, code, dtype):
        if not isinstance(x, Symbol):
            return self._constant(x, code, dtype)
        if x._leaf is not None:
            return self.leaves.index(x._leaf)
        return self._emit(x)

    def _emit(self, x, destination=None):
        """Add the instructions that compute ``x`` and return its register."""
        if x._leaf is not None:
            self.code += [CODES["copy"], destination, self.leaves.index(x._leaf), 0, 0]
            return destination
        number = self._number(x)
        if number in self._register:
            if destination is not None:
                self.code += [CODES["copy"], destination, self._register[number], 0, 0]
            return self._register[number]
        operands = [self._operand(o, x._code, x.dtype) for o in x._operands]
        for o in x._operands:
            self._read(o)
        register = destination
        if destination is None or self.uses[number] > 1:
            if not self._free:
                raise NotFusable("too many values at a time")
            register = self._register[number] = len(self.leaves) + self._free.pop()
        self.code += [
            CODES[x._code],
            register,
            operands[0],
            operands[1] if len(operands) > 1 else 0,
            _ROUNDING[x.dtype.name],
        ]
        if destination is not None and register != destination:
            self.code += [CODES["copy"], destination, register, 0, 0]
        return register

    def run(self, operands, tag):
        wholes = [_C.raw_empty(s.shape, None, s.dtype) for s in self.shapes]
        if tag:
            for whole in wholes:
                _C.set_device_tag(whole, tag)
        results = [
            wholes[i] if dim is None else wholes[i].narrow(dim, start, length)
            for i, dim, start, length in self.results
        ]
        leaves = [operands[i] if not cuts else operands[i].narrow(*cuts[0]) for i, cuts in self.leaves]
        raw.FusedPointwise(leaves, results, self.code, self.constants or None)
        return wholes[0] if self.single else tuple(wholes)


def _flat(args):
    for a in args:
        if isinstance(a, (tuple, list)):
            yield from _flat(a)
        else:
            yield a


def _rebuilt(args, leaves):
    return tuple(_rebuilt(a, leaves) if isinstance(a, (tuple, list)) else next(leaves) for a in args)


_EFFECTS = frozenset(
    (
        "STORE_GLOBAL",
        "STORE_ATTR",
        "STORE_SUBSCR",
        "STORE_DEREF",
        "DELETE_GLOBAL",
        "DELETE_ATTR",
        "DELETE_SUBSCR",
        "YIELD_VALUE",
        "IMPORT_NAME",
        "MAKE_FUNCTION",
    )
)


def fusable(function) -> bool:
    """Return whether a function may be recorded.

    It must be a plain function without side effects, which uses only modules and other such functions.
    """
    if not isinstance(function, types.FunctionType) or function.__closure__:
        return False
    if any(step.opname in _EFFECTS for step in dis.get_instructions(function)):
        return False
    return all(
        isinstance(function.__globals__.get(name), (types.ModuleType, Fused)) for name in _outside(function)
    )


def _outside(function) -> list[str]:
    """Return the global names that a function uses."""
    return sorted(
        {
            step.argval
            for step in dis.get_instructions(function)
            if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")
        }
    )


class Fused:
    """A function whose calls may run as one kernel. Otherwise the original function runs."""

    def __init__(self, function):
        functools.update_wrapper(self, function)
        self._plans: dict = {}
        self._unrecorded: Exception | None = None
        self._outside = [(name, function.__globals__[name]) for name in _outside(function)]

    def __get__(self, owner, cls=None):
        return self if owner is None else types.MethodType(self, owner)

    def __call__(self, *args, **kwargs):
        flat = list(_flat(args))
        if kwargs or any(isinstance(a, Symbol) for a in flat):
            return self.__wrapped__(*args, **kwargs)
        plan = self._plan(args, flat)
        if plan is None:
            return self._run(args)
        tensors = [a for a in flat if isinstance(a, Tensor)]
        return plan.run(tensors, _C.device_tag(tensors[0]))

    def _plan(self, args, flat):
        """Return the program for these arguments, or None if the function itself must run."""
        outside = self.__wrapped__.__globals__
        if any(outside.get(name) is not value for name, value in self._outside):
            return None  # a global name that the function uses has been replaced
        if not on_host() or not _C.fast_path() or overrides._modes() or _C.autocast_enabled():
            return None
        recording = is_grad_enabled()
        key = []
        for a in flat:
            if type(a) in (Tensor, Parameter):
                if (
                    a.is_meta
                    or not a.ndim
                    or (recording and a.requires_grad)
                    or a.dtype.name not in _ROUNDING
                    or not a.is_contiguous()
                ):
                    return None
                key.append((a.dtype.name, tuple(a.shape), _C.device_tag(a)))
            elif a is None or type(a) in (int, float, bool):
                key.append((type(a), a))
            else:
                return None
        key = tuple(key)
        if key not in self._plans:
            if len(self._plans) >= _PLANS:
                return None
            self._plans[key] = self._record(args, flat)
        return self._plans[key]

    def _record(self, args, flat):
        symbols, count = [], 0
        tags = {_C.device_tag(a) for a in flat if isinstance(a, Tensor)}
        if len(tags) != 1:
            return None
        for a in flat:
            symbols.append(Symbol(a.dtype, a.shape, leaf=(count, ())) if isinstance(a, Tensor) else a)
            count += isinstance(a, Tensor)
        try:
            with _Recording():
                result = self.__wrapped__(*_rebuilt(args, iter(symbols)))
        except NotFusable:
            return None
        except (
            Exception
        ) as error:  # the function's own error, or symbols did not serve it: its run on tensors shows which
            self._unrecorded = error
            return None
        try:
            return _Plan(result)
        except NotFusable:
            return None

    def _run(self, args):
        """Run the function itself. If it succeeds although its recording failed, give a warning."""
        result = self.__wrapped__(*args)
        if self._unrecorded is not None:
            error, self._unrecorded = self._unrecorded, None
            warnings.warn(
                f"torch.compile: {self.__name__} could not be recorded and runs as it is ({type(error).__name__}: {error})",
                RuntimeWarning,
                stacklevel=3,
            )
        return result


def fused(function):
    """Return ``function``, fused if that is possible."""
    return Fused(function) if fusable(function) else function
