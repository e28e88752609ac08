"""Functions of torch.nn.functional that are compositions of other ops, in plain Python.

``exports`` maps each public name to its function. A function that the op table declares itself
replaces the one of the same name here (see ``nn/functional.py``).
"""

from . import (
    activation,
    attention,
    ctc,
    distance,
    dropout,
    embedding,
    grouped,
    losses,
    margin,
    normalization,
    pooling,
    vision,
)

_MODULES = (
    activation,
    attention,
    ctc,
    distance,
    dropout,
    embedding,
    grouped,
    losses,
    margin,
    normalization,
    pooling,
    vision,
)

exports = {}
for _module in _MODULES:
    for _name in _module.__all__:
        if _name in exports:
            raise RuntimeError(f"nn.functional.{_name} is defined twice")
        exports[_name] = getattr(_module, _name)
