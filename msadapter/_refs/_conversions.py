"""torch._refs._conversions: a tensor in another dtype, by the dtype's short name, and the conversions of complex numbers."""

from .. import ops
from ..tensor import Tensor

_CASTS = "bfloat16 bool byte cdouble cfloat chalf char double float half int long short"


def __getattr__(name: str):
    if name in _CASTS.split():
        return getattr(Tensor, name)
    if name in ("complex", "polar"):
        return getattr(ops, name)
    raise AttributeError(f"module 'torch._refs._conversions' has no attribute {name!r}")
