"""quantize_dynamic: linear layers with int8 weights."""

from __future__ import annotations

import copy

from ... import nn
from ..._errors import unsupported
from ..._values.dtype import ALL, OTHERS
from ..nn.quantized.dynamic import Linear

__all__ = ["quantize_dynamic"]
# The modules that PyTorch quantises, if none are named. Of them, only linear layers are supported.
_DEFAULT = (nn.Linear, nn.LSTM, nn.GRU, nn.LSTMCell, nn.GRUCell, nn.RNNCell)


def quantize_dynamic(model, qconfig_spec=None, dtype=OTHERS["qint8"], mapping=None, inplace=False):
    """Return the model with quantised weights, whose inputs are quantised at each call. It is in evaluation mode.

    ``qconfig_spec`` is a set of types of modules, or of their names in the model; by default all that PyTorch quantises.

    Raises:
        NotImplementedError: another module than ``nn.Linear`` would be quantised, or to another dtype than ``torch.qint8``, or
            by an own configuration.
    """
    where = "torch.ao.quantization.quantize_dynamic"
    if dtype not in (OTHERS["qint8"], ALL["float16"], OTHERS["quint8"]) and not isinstance(
        qconfig_spec, dict
    ):
        raise ValueError(
            f"Don't know how to quantize with default settings for {dtype}. Provide full qconfig please"
        )
    if dtype is not OTHERS["qint8"]:
        raise unsupported(f"{where}(dtype={dtype})")
    if mapping is not None or isinstance(qconfig_spec, dict):
        raise unsupported(f"{where}", "an own configuration or mapping is not supported")
    chosen = set(_DEFAULT if qconfig_spec is None else qconfig_spec)
    made = model if inplace else copy.deepcopy(model)
    made.eval()
    return _replaced(made, "", chosen, where)


def _replaced(module, name: str, chosen: set, where: str):
    if name in chosen or type(module) in chosen or any(_above(name, n) for n in chosen if isinstance(n, str)):
        if type(module) is nn.Linear:
            return Linear.from_float(module)
        if type(module) in _DEFAULT or isinstance(module, (nn.EmbeddingBag, nn.Embedding)):
            raise unsupported(f"{where}", f"{type(module).__name__} is not supported")
    for child, below in list(module.named_children()):
        new = _replaced(below, f"{name}.{child}" if name else child, chosen, where)
        if new is not below:
            setattr(module, child, new)
    return module


def _above(name: str, chosen: str) -> bool:
    """Return whether a module lies inside of a chosen one."""
    return name.startswith(chosen + ".") or chosen == ""
