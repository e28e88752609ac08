"""The text of a tensor, printed as in PyTorch."""

from __future__ import annotations

import math
from contextlib import contextmanager

from .._host import extensions
from .._values.base import _C
from .._values.dtype import ALL


class _PrintOptions:
    precision = 4
    threshold = 1000
    edgeitems = 3
    linewidth = 80
    sci_mode: bool | None = None


PRINT_OPTS = _PrintOptions()


def set_printoptions(
    precision=None, threshold=None, edgeitems=None, linewidth=None, profile=None, sci_mode=None
) -> None:
    """Set how tensors are printed (torch.set_printoptions)."""
    presets: dict[str, tuple] = {
        "default": (4, 1000, 3, 80),
        "short": (2, 1000, 2, 80),
        "full": (4, math.inf, 3, 80),
    }
    if profile in presets:  # PyTorch takes any other word without effect
        PRINT_OPTS.precision, PRINT_OPTS.threshold, PRINT_OPTS.edgeitems, PRINT_OPTS.linewidth = presets[
            profile
        ]
    for name, value in (
        ("precision", precision),
        ("threshold", threshold),
        ("edgeitems", edgeitems),
        ("linewidth", linewidth),
    ):
        if value is not None:
            setattr(PRINT_OPTS, name, value)
    PRINT_OPTS.sci_mode = sci_mode


def get_printoptions() -> dict:
    return {
        n: getattr(PRINT_OPTS, n) for n in ("precision", "threshold", "edgeitems", "linewidth", "sci_mode")
    }


@contextmanager
def printoptions(**options):
    """Change how tensors are printed inside a block. The arguments are those of set_printoptions."""
    before = get_printoptions()
    set_printoptions(**options)
    try:
        yield
    finally:
        set_printoptions(**before)


class _RealFormat:
    """Formats all shown values of a tensor with the same width."""

    def __init__(self, values: list, floating: bool):
        self.floating, self.integral, self.scientific, self.width = floating, True, False, 1
        if not floating:
            self.width = max([1, *(len(str(v)) for v in values)])
            return
        finite = [abs(v) for v in values if math.isfinite(v) and v != 0]
        if not finite:
            return
        top, low = max(finite), min(finite)
        self.integral = all(v == math.ceil(v) for v in finite)
        self.scientific = top / low > 1000.0 or top > 1.0e8 or (not self.integral and low < 1.0e-4)
        if PRINT_OPTS.sci_mode is not None:
            self.scientific = PRINT_OPTS.sci_mode
        self.width = max(
            len(self(v)) for v in values if math.isfinite(v) and v != 0
        )  # nan and inf do not make the other columns wider

    def __call__(self, v) -> str:
        if not self.floating:
            return str(v).rjust(self.width)
        if not math.isfinite(v):
            text = "nan" if math.isnan(v) else "inf" if v > 0 else "-inf"
        elif self.scientific:
            text = f"{v:.{PRINT_OPTS.precision}e}"
        elif self.integral:
            text = f"{v:.0f}."
        else:
            text = f"{v:.{PRINT_OPTS.precision}f}"
        return text.rjust(self.width)


class _ComplexFormat:
    def __init__(self, values: list):
        self.real = _RealFormat([v.real for v in values], True)
        self.imag = _RealFormat([v.imag for v in values], True)

    def __call__(self, v) -> str:
        imag = self.imag(v.imag).lstrip()
        sign = "" if imag.startswith("-") else "+"
        return self.real(v.real) + sign + imag + "j"


def _summarised(values, shape, limit):
    """Return nested lists of the values, with None where elements are left out."""
    if not shape or not isinstance(values, list):
        return values
    e = PRINT_OPTS.edgeitems
    if limit and len(values) > 2 * e:
        kept = values[:e] + [None] + values[-e:]
    else:
        kept = values
    return [v if v is None else _summarised(v, shape[1:], limit) for v in kept]


def _leaves(nested):
    if isinstance(nested, list):
        for v in nested:
            yield from _leaves(v)
    elif nested is not None:
        yield nested


def _lines(nested, depth: int, indent: int, fmt) -> str:
    if depth == 0:
        return fmt(nested)
    if depth == 1:
        cells = [" ..." if v is None else fmt(v) for v in nested]
        width = max([len(c) for c in cells], default=0) + 2
        per_line = max(1, (PRINT_OPTS.linewidth - indent) // max(width, 1))
        rows = [", ".join(cells[i : i + per_line]) for i in range(0, len(cells), per_line)]
        return "[" + (",\n" + " " * (indent + 1)).join(rows) + "]"
    parts = [" ..." if v is None else _lines(v, depth - 1, indent + 1, fmt) for v in nested]
    parts = [p.strip() if p == " ..." else p for p in parts]
    return "[" + ("," + "\n" * (depth - 1) + " " * (indent + 1)).join(parts) + "]"


def _tensor_str(self, indent: int) -> str:
    """Return the values as nested brackets. Lines after the first are indented by ``indent`` columns.

    The name and the arguments are PyTorch's, because libraries call it.
    """
    tensor = self
    if tensor.numel() == 0:
        return "[]"
    d, plain = tensor.dtype, tensor.detach()
    if d.itemsize < 4 and d.is_floating_point:
        plain = plain.to(ALL["float32"])
    if _C.device_tag(plain):
        plain = plain.to("cpu")
    limit = tensor.numel() > PRINT_OPTS.threshold
    nested = _summarised(plain.tolist(), tuple(tensor.shape), limit)
    leaves = list(_leaves(nested))
    fmt = _ComplexFormat(leaves) if d.is_complex else _RealFormat(leaves, d.is_floating_point)
    return _lines(nested, tensor.ndim, indent, fmt)


def names_dtype(tensor) -> bool:
    """Return whether repr has to name the dtype, because Python numbers do not imply it."""
    d = tensor.dtype
    plain = d is _C.default_dtype() or d.name in ("int64", "bool")
    return not (plain or (d.is_complex and d is _C.default_dtype().to_complex()))


def tensor_str(tensor, contents: str | None = None) -> str:
    """Return repr(tensor). ``contents`` stands for the numbers, of which a class of its own may have others."""
    name = "tensor" if type(tensor).__name__ in ("Tensor", "Parameter") else type(tensor).__name__
    indent = len(name) + 1
    suffixes = []
    if _C.device_tag(tensor) and contents is None:
        suffixes.append(f"device='{tensor.device}'")
    if contents is not None:
        body = contents
    elif tensor.is_meta:
        suffixes.append(f"size={tuple(tensor.shape)}")
        if tensor.dtype is not _C.default_dtype():
            suffixes.append(f"dtype={tensor.dtype}")
        body = "..."
    elif tensor.numel() == 0:
        if tensor.ndim != 1:
            suffixes.append(f"size={tuple(tensor.shape)}")
        if tensor.dtype is not _C.default_dtype():
            suffixes.append(f"dtype={tensor.dtype}")
        body = "[]"
    else:
        if names_dtype(tensor):
            suffixes.append(f"dtype={tensor.dtype}")
        body = _tensor_str(tensor, indent)
    try:
        node = tensor.grad_fn
        node_name = None if node is None else node.name()
    except RuntimeError:  # a view whose history was lost by a write to its base
        node_name = "Invalid"
    if node_name is not None:
        suffixes.append(f"grad_fn=<{node_name}>")
    elif tensor.requires_grad:
        suffixes.append("requires_grad=True")
    shown = extensions.shown_tangent.value
    tangent = None if shown is None else shown(tensor)
    if tangent is not None:
        suffixes.append(f"tangent={tensor_str(tangent)}")
    out = name + "(" + body
    last = len(out) - out.rfind("\n") - 1
    for i, s in enumerate(suffixes):
        if last + len(s) + 2 + (i == len(suffixes) - 1) > PRINT_OPTS.linewidth:
            out += ",\n" + " " * indent + s
            last = indent + len(s)
        else:
            out += ", " + s
            last += len(s) + 2
    out += ")"
    parameter = extensions.parameter_class.value
    return f"Parameter({out})" if type(tensor) is not parameter and isinstance(tensor, parameter) else out
