# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *

class SobolEngine:
    MAXBIT: _Any
    MAXDIM: _Any
    _first_point: _Any
    dimension: _Any
    num_generated: _Any
    quasi: _Any
    scramble: _Any
    seed: _Any
    shift: _Any
    sobolstate: _Any
    def __init__(self, dimension, scramble=..., seed=...) -> None: ...
    def __repr__(self) -> _str: ...
    def draw(self, n: _int = ..., out=..., dtype=...) -> _Any: ...
    def draw_base2(self, m: _int, out=..., dtype=...) -> _Any: ...
    def fast_forward(self, n: _int) -> _Any: ...
    def reset(self) -> _Any: ...
