"""Tensors in the layout torch._mkldnn, which PyTorch uses for inference with oneDNN.

In PyTorch oneDNN arranges their memory as it likes. Here it is ordinary memory, because products and convolutions on the CPU are
oneDNN's anyway. The operators are those that PyTorch has for the layout, and give tensors of this layout; others are refused.
"""

from __future__ import annotations

from .._errors import unsupported
from .._values.dtype import ALL
from .._values.layout import FORMATS
from ..autograd._over_values import arguments
from ..ops._declare import t
from ..tensor import Tensor
from ..tensor._rare_methods import not_for
from ._base import SparseTensor

_DTYPES = tuple(ALL[name] for name in ("float32", "bfloat16", "float16", "uint8", "int8"))
_OPERATORS = frozenset(
    """add mul relu relu_ sigmoid tanh softmax gelu linear conv2d max_pool2d avg_pool2d adaptive_avg_pool2d reshape transpose
    zero_ __add__ __mul__""".split()  # noqa: SIM905  (a list literal would take a page)
)


class MkldnnTensor(SparseTensor):
    """A tensor with the layout torch._mkldnn. Its values are an ordinary tensor, which holds its gradient too."""

    _layout_name = "_mkldnn"
    is_mkldnn = property(lambda self: True)

    def _with(self, values, size=None):
        return _made(values)

    def _parts(self):
        return [("values", self._v)]

    def _take(self, other):
        self.__dict__["_v"] = other._v
        return self

    def to_dense(self, dtype=None, *, masked_grad=None):
        """Return an ordinary tensor with the same values."""
        return t.clone(
            self._v if dtype is None else self._v.to(dtype), memory_format=FORMATS["contiguous_format"]
        )

    def to_mkldnn(self, dtype=None):
        raise not_for(self, "to_mkldnn")

    def to(self, *args, **kwargs):
        raise not_for(self, "empty_strided")

    def __getitem__(self, index):
        raise not_for(self, "as_strided")

    def __iter__(self):
        raise not_for(self, "unbind")

    def item(self):
        raise not_for(self, "_local_scalar_dense")

    def numpy(self, *, force=False):
        raise TypeError("can't convert Mkldnn layout tensor to numpy. Use Tensor.to_dense() first.")

    def untyped_storage(self):
        raise NotImplementedError("Cannot access storage of OpaqueTensorImpl")

    storage = _typed_storage = untyped_storage

    def __repr__(self, *, tensor_contents=None):
        return f"{repr(self._v.detach())[:-1]}, layout={self.layout})"

    def __reduce_ex__(self, protocol):
        raise unsupported("saving a tensor of the layout torch._mkldnn")

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = function.__name__.rpartition(".")[2]
        mine = [a for a in arguments((args, kwargs)) if isinstance(a, SparseTensor)]
        if name not in _OPERATORS or not all(isinstance(a, MkldnnTensor) for a in mine):
            raise not_for(mine[0], name)
        if name in ("add", "__add__") and len(mine) < 2 or name in ("mul", "__mul__") and _mixed(args):
            raise RuntimeError("itensor_from_mkldnn expects MKL-DNN tensor input")
        found = function(*_values(args), **{key: _values(value) for key, value in kwargs.items()})
        return args[0] if name.endswith("_") and not name.endswith("__") else _made(found)


def _mixed(operands) -> bool:
    return any(isinstance(a, Tensor) and not isinstance(a, MkldnnTensor) for a in operands)


def _values(value):
    """Replace tensors of the layout by their values, also in lists and tuples."""
    if isinstance(value, (list, tuple)):
        return type(value)(map(_values, value))
    return value._v if isinstance(value, MkldnnTensor) else value


def _made(values) -> MkldnnTensor:
    return MkldnnTensor._shaped(values.shape, values)


def to_mkldnn(self, dtype=None):
    """Return a copy of a dense CPU tensor in the layout torch._mkldnn, in another dtype if one is given.

    RuntimeError for float64 and other dtypes that oneDNN does not have.
    """
    if isinstance(self, SparseTensor):
        raise not_for(self, "to_mkldnn")
    if self.dtype not in _DTYPES:
        raise RuntimeError("dense_to_mkldnn expects float, bfloat16, half, uint8, int8 tensor input")
    return _made(t.clone(self if dtype is None else self.to(dtype)))
