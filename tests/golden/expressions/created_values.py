"""Values whose dtype ``out=`` or ``dtype`` decides, options that contradict ``out=``, and warnings of deprecated calls."""

SETUP = """
import array, warnings
import numpy as np
from torch.utils.dlpack import from_dlpack, to_dlpack
field = np.array([(1, 2.5), (3, 4.5)], dtype=[("a", "i1"), ("b", "f4")])["b"]  # strides of five bytes
u = torch.tensor([1, 0], dtype=torch.uint8)
b = torch.tensor([True, False])
f = torch.tensor([1.5, float("nan")])
def to(dtype, n=0):
    return torch.empty(n, dtype=getattr(torch, dtype))
def refused(call):
    try:
        return call()
    except Exception as error:
        return type(error).__name__
def out_view(call):  # a view that is not contiguous, and its base
    base = torch.zeros(2, 3)
    return call(base.narrow(1, 1, 2)), base
def shares(call):
    a = np.arange(3.0)
    t = call(a)
    a[0] = 9
    return t[0].item()
def said(call):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        try:
            call()
        except Exception as error:
            found.append(error)
    return [str(getattr(x, "message", x)).partition(" (Triggered")[0] for x in found]
"""

_CREATED = {
    "zeros": "torch.zeros(2",
    "full": "torch.full((2,), 2.7",
    "full of 300": "torch.full((2,), 300",
    "eye": "torch.eye(2, 3",
    "arange": "torch.arange(0, 3.5, 0.75",
    "range": "torch.range(0.5, 6.25, 1.25",
    "range down": "torch.range(5, 1, -2",
    "linspace": "torch.linspace(0, 9, 4",
    "logspace": "torch.logspace(0, 2, 4",
    "rfftfreq": "torch.fft.rfftfreq(5",
}
_REDUCED = {
    "sum": "torch.sum(x, 0",
    "prod": "torch.prod(x, 0",
    "mean": "torch.mean(x, 0",
    "cumsum": "torch.cumsum(x, 0",
    "cumprod": "torch.cumprod(x, 0",
    "softmax": "torch.softmax(x, 0",
    "norm": "torch.linalg.vector_norm(x",
}
_DRAWN = ("rand(5", "randn(5", "randint(100, (5,)", "randperm(5", "normal(0.5, 2.0, (5,)")
_DTYPES = ("float64", "float32", "bfloat16", "int64", "int32", "int8", "bool", "complex64")
_OPERAND = "(x := torch.tensor([[0.1, 2.6], [3.7, 1e-9]]))"
_RANGES = ("linspace(0, 3, 4", "range(0, 3", "arange(4", "logspace(0, 1, 4", "linspace(0, 4, 5", "zeros(4")
_OBJECTS = ("3", "[1, 2]", "np.arange(3.0)", "np.float32(3)", "f", "bytearray(8)", "array.array('f', [1, 2])",
            "array.array('i', [1, 2])", "to_dlpack(torch.ones(2))", "range(3)", "bytearray(3)", "[]")  # fmt: skip

CASES = [
    *[f"refused(lambda: {call}, dtype=torch.{d}))" for call in _CREATED.values() for d in _DTYPES],
    *[f"refused(lambda: {call}, out=to('{d}')))" for call in _CREATED.values() for d in _DTYPES],
    *[f"{_OPERAND}, refused(lambda: {call}, out=to('{d}')))" for call in _REDUCED.values() for d in _DTYPES],
    *[f"{call}, dtype=torch.int32, out=to('float32'))" for call in _CREATED.values()],
    *[f"{_OPERAND}, {call}, dtype=torch.float64, out=to('float32'))" for call in _REDUCED.values()],
    "torch.zeros(2, device='meta', out=torch.empty(2))",
    "torch.zeros(2, device='cpu', out=torch.empty(2, device='meta'))",
    "torch.zeros(2, out=torch.empty(3, device='meta')).shape",
    "torch.zeros(2, layout=torch.sparse_coo, out=torch.empty(2))",
    "torch.zeros(2, requires_grad=True, out=torch.empty(2)).requires_grad",
    "torch.zeros(2, requires_grad=True, out=torch.empty(2, dtype=torch.int64))",
    *[f"torch.nansum(f, dtype=torch.{d})" for d in _DTYPES],
    *[f"refused(lambda: torch.nanmean(f, dtype=torch.{d}))" for d in _DTYPES],
    *[f"refused(lambda: torch.mean(f, dtype=torch.{d}))" for d in _DTYPES],
    *[f"refused(lambda: b.pow({e}))" for e in ("True", "False", "0", "2", "1.0", "torch.tensor(True)")],
    *[f"b.clone().pow_({e})" for e in ("True", "False", "0", "1")],
    "torch.arange(1j)",
    "torch.range(0, 1j)",
    "torch.linspace(0, 1j, 3, dtype=torch.float32)",
    "torch.logspace(0, 1j, 3, dtype=torch.float64)",
    "torch.linspace(0, 1j, 3)",
    "torch.tensor([1], requires_grad=True)",
    "torch.arange(3, requires_grad=True)",
    "torch.ones_like(u, requires_grad=True)",
    "u.new_zeros(2, requires_grad=True)",
    "u.clone().requires_grad_()",
    "said(lambda: torch.range(0, 3))",
    "said(lambda: torch.where(u, f, f))",
    "said(lambda: torch.masked_scatter(f, u, f))",
    "said(lambda: torch.add(f, 1, out=torch.empty(3)))",
    "said(lambda: torch.add(f, 1, out=torch.empty(0)))",
    "said(lambda: torch.zeros(2, out=torch.empty(3)))",
    "said(lambda: torch.sort(f, out=(torch.empty(3), torch.empty(2, dtype=torch.int64))))",
    "said(lambda: torch.cat([f, f], out=torch.empty(3)))",
    "torch.cat([f, f], out=torch.empty(4, dtype=torch.int64))",
    *[f"[torch.manual_seed(3), torch.{call}, out=to('{d}'))][1]" for call in _DRAWN for d in ("float64", "float32")],
    # an out= with as many elements as a range keeps its shape
    *[f"out_view(lambda o: torch.{call}, out=o))" for call in _RANGES],
    # asarray
    *[f"torch.asarray({a})" for a in _OBJECTS],
    *[f"refused(lambda: torch.asarray({a}, copy=False))" for a in _OBJECTS],
    *[f"torch.asarray({a}, copy=True)" for a in _OBJECTS if "bytes" not in a],
    "shares(lambda a: torch.asarray(a)), shares(lambda a: torch.asarray(a, copy=True)), "
    "shares(lambda a: torch.asarray(memoryview(a)))",
    "shares(lambda a: torch.asarray(a, dtype=torch.float64, copy=False)), shares(lambda a: torch.asarray(a, dtype=torch.float64))",
    "shares(lambda a: torch.asarray(to_dlpack(torch.asarray(a)), copy=False))",
    "refused(lambda: torch.asarray(f, dtype=torch.float64, copy=False))",
    "refused(lambda: torch.asarray(f, device='meta', copy=False))",
    "refused(lambda: torch.asarray([1, 2], requires_grad=True))",
    "g = f.clone().requires_grad_(); (torch.asarray(g) is g, torch.asarray(g, requires_grad=False).requires_grad, "
    "torch.asarray(g * 2, requires_grad=True).is_leaf, torch.asarray(g, copy=True).is_leaf, "
    "torch.asarray(f.clone(), requires_grad=True))",
    # numbers that no integer type has, as truth values
    "torch.tensor([2**64, 0, -(2**63) - 1], dtype=torch.bool), torch.tensor((float('nan'), 0, -(2**63) - 1), dtype=torch.bool)",
    "refused(lambda: torch.tensor([2**64]))",
    # old empty vectors, with any dim
    *[f"torch.cat([torch.ones(0), torch.ones(0)], dim={d})" for d in (-1, 0, 1, 5)],
    "refused(lambda: torch.cat([f, torch.ones(0)], dim=5))",
    # moments without degrees of freedom
    *[f"said(lambda: torch.{name}(torch.ones(1{dtype})))" for name in ("var", "std", "var_mean", "std_mean")
      for dtype in ("", ", dtype=torch.complex64")],
    "said(lambda: torch.var(torch.ones(2, 1), 1)), said(lambda: torch.var(torch.ones(2, 1), 0)), "
    "said(lambda: torch.std(torch.ones(3), correction=3))",
    "torch.zeros(2, dtype=torch.complex64).apply_(lambda v: 5), torch.zeros(2).apply_(lambda v: 5)",
    # memory of numpy that no tensor describes: strides of parts of elements, and bytes in the other order
    *[f"torch.{name}({array})" for name in ("from_numpy", "tensor", "as_tensor")
      for array in ("field", "field[:1]", "np.arange(3, dtype='>i4')")],
    "torch.tensor(field.copy()), torch.from_numpy(field.copy())",
    # DLPack: bfloat16, which numpy does not have, and streams
    *[f"from_dlpack(torch.arange(6, dtype=torch.{d}).reshape(2, 3).t())" for d in ("bfloat16", "float16", "complex64", "bool")],
    "from_dlpack(to_dlpack(torch.arange(4, dtype=torch.bfloat16)[::2]))",
    "x = torch.zeros(2, dtype=torch.bfloat16); from_dlpack(x).add_(1.5); x",
    *[
        f"x = torch.zeros(2); from_dlpack(x.__dlpack__({options})).add_(1); x"
        for options in ("copy=True", "copy=False", "dl_device=(1, 0)", "max_version=(0, 8)", "stream=-1", "bogus=1")
    ],
    *[f"torch.ones(2).__dlpack__(stream={stream})" for stream in ("object()", "1", "1.0")],
    "said(lambda: from_dlpack(torch.ones(2, dtype=torch.complex64)))",
    "[torch.ones(2, 3, 4, 5).is_contiguous(memory_format=m) for m in (torch.preserve_format, torch.channels_last)], "
    "torch.ones(2, 3).t().is_contiguous(memory_format=torch.preserve_format)",
]  # fmt: skip
