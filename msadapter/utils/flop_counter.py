"""torch.utils.flop_counter: counts floating point operations of matrix products, convolutions and attention.

An operator is counted when it is called. Its backward is counted when it runs, once for each operand that gets a gradient.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from math import prod

from .. import ops
from ..autograd import _pass, is_grad_enabled
from ..nn.modules import module as modules
from ..overrides import TorchFunctionMode
from ..tensor import Tensor

__all__ = ["FlopCounterMode", "register_flop_formula"]

flop_registry: dict = {}  # operator of torch.ops -> formula that a program has registered


def register_flop_formula(targets, get_raw: bool = False) -> Callable:
    """Decorate ``formula(*shapes of the arguments, out_shape=..., **kwargs) -> int`` for operators of torch.ops.

    With ``get_raw``, the formula gets the arguments themselves, and the result as out_val.
    """

    def register(formula):
        for target in targets if isinstance(targets, (list, tuple)) else [targets]:
            flop_registry[target] = formula if get_raw else _of_shapes(formula)
        return formula

    return register


def _shape(value):
    if isinstance(value, Tensor):
        return value.shape
    if isinstance(value, (list, tuple)):
        return type(value)(_shape(v) for v in value)
    return value


def _of_shapes(formula):
    def counted(*args, out_val=None, **kwargs):
        named = {key: _shape(value) for key, value in kwargs.items()}
        return formula(*map(_shape, args), out_shape=_shape(out_val), **named)

    return counted


def _product(a, b, out) -> int:
    """Return the number of multiplications and additions of ``a @ b``."""
    return 2 * out.numel() * a.shape[-1]


def _matmul(args, out):
    a, b = args[0], args[1]
    name = "bmm" if out.ndim > 2 and b.ndim > 2 else "mm"
    return name, name, _product(a, b, out), (a, b), 1.0


def _linear(args, out):
    bias = args[2] if len(args) > 2 else None
    forward = "addmm" if bias is not None else "mm"
    return forward, "mm", _product(args[0], args[1], out), (args[0], args[1]), 1.0


def _added(name: str):
    def count(args, out):
        return (
            name,
            "mm" if name == "addmm" else "bmm",
            _product(args[1], args[2], out),
            (args[1], args[2]),
            1.0,
        )

    return count


def _convolution(transposed: bool):
    def count(args, out):
        x, weight = args[0], args[1]
        positions = prod(x.shape[2:]) if transposed else prod(out.shape[2:])
        flops = 2 * x.shape[0] * positions * weight.numel()
        return "convolution", "convolution_backward", flops, (x, weight), 1.0

    return count


def _attention(args, out):
    q, k, v = args[:3]
    heads = prod(q.shape[:-2])
    flops = 2 * heads * q.shape[-2] * k.shape[-2] * (q.shape[-1] + v.shape[-1])
    name = "_scaled_dot_product_flash_attention"
    return name, f"{name}_backward", flops, (q, k, v), 2.5 / 3  # five products for three gradients


_COUNTERS = {  # table operator -> (forward's and backward's name, flops, operands, cost of an operand's gradient)
    "matmul": _matmul,
    "mm": _matmul,
    "bmm": _matmul,
    "linear": _linear,
    "addmm": _added("addmm"),
    "baddbmm": _added("baddbmm"),
    **{f"conv{n}d": _convolution(False) for n in (1, 2, 3)},
    **{f"conv_transpose{n}d": _convolution(True) for n in (1, 2, 3)},
    "scaled_dot_product_attention": _attention,
}


class FlopCounterMode(TorchFunctionMode):
    """Counts inside ``with``, for each module and in all ('Global').

    Args:
        mods: not needed, modules are found by their calls. depth: of the table that is printed with ``display``.
        custom_mapping: operator of torch.ops -> formula, besides those of register_flop_formula.
    """

    def __init__(self, mods=None, depth: int = 2, display: bool = True, custom_mapping: dict | None = None):
        self.depth, self.display = depth, display
        self.flop_counts: dict = defaultdict(lambda: defaultdict(int))
        self._formulas = {**flop_registry, **(custom_mapping or {})}
        self._within: list[str] = []
        self._handles: list = []

    def __enter__(self):
        self.flop_counts.clear()
        names: dict = {}

        def begin(module, args):
            if module not in names:
                if not self._within:
                    names[module] = type(module).__name__
                for name, child in module.named_children():
                    names.setdefault(child, f"{names.get(module, type(module).__name__)}.{name}")
            self._within.append(names.get(module, type(module).__name__))
            for name, child in module.named_children():
                names.setdefault(child, f"{self._within[-1]}.{name}")

        def end(module, args, out):
            self._within.pop()

        self._handles = [
            modules.register_module_forward_pre_hook(begin),
            modules.register_module_forward_hook(end, always_call=True),
        ]
        return super().__enter__()

    def __exit__(self, *exc):
        super().__exit__(*exc)
        for handle in self._handles:
            handle.remove()
        self._within.clear()
        if self.display:
            print(self.get_table(self.depth))

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        formula = self._formulas.get(function)
        if formula is not None:
            out = function(*args, **kwargs)
            self._add(["Global", *self._within], function, formula(*args, **kwargs, out_val=out))
            return out
        counter = _COUNTERS.get(function.__name__.rpartition(".")[2])
        if counter is None or (
            _pass.depth and not is_grad_enabled()
        ):  # a formula of the backward pass was counted
            return NotImplemented  # runs as it is, and what it is made of comes here again
        out = function(*args, **kwargs)
        if isinstance(out, Tensor):
            self._count(counter, (*args, *kwargs.values()), out)
        return out

    def _count(self, counter, args, out) -> None:
        forward, backward, flops, operands, share = counter(args, out)
        where = ["Global", *dict.fromkeys(self._within)]
        self._add(where, getattr(ops.aten, forward), flops)
        wanting = sum(x.requires_grad for x in operands)
        if out.requires_grad and wanting:
            again = int(flops * wanting * share)
            out.register_hook(lambda g: self._add(where, getattr(ops.aten, backward, backward), again))

    def _add(self, where, operator, flops: int) -> None:
        for name in where:
            self.flop_counts[name][operator] += flops

    def get_total_flops(self) -> int:
        """Return the number of all operations that were counted."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict:
        """Return {module: {operator: flops}}."""
        return {name: dict(counts) for name, counts in self.flop_counts.items()}

    def get_table(self, depth=None) -> str:
        """Return a table of modules and operators as text, down to ``depth``."""
        depth = self.depth if depth is None else depth
        total = max(self.get_total_flops(), 1)
        rows = [("Module", "FLOP", "% Total")]
        for name, counts in self.flop_counts.items():
            level = 0 if name == "Global" else name.count(".") + 1
            if level > depth:
                continue
            rows += [
                (f"{'  ' * level}{name}", str(sum(counts.values())), f"{sum(counts.values()) / total:.2%}")
            ]
            rows += [(f"{'  ' * level} - {op}", str(n), f"{n / total:.2%}") for op, n in counts.items()]
        widths = [max(len(row[i]) for row in rows) for i in range(3)]
        lines = [
            "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows
        ]
        return "\n".join([lines[0], "  ".join("-" * w for w in widths), *lines[1:]])
