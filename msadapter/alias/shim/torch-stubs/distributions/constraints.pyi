# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *

class Constraint:
    _bounds: _Any
    event_dim: _Any
    is_discrete: _Any
    def __repr__(self) -> _str: ...
    def check(self, value) -> _Any: ...
class MixtureSameFamilyConstraint(Constraint):
    base_constraint: _Any
    event_dim: _Any
    is_discrete: _Any
    def __init__(self, base_constraint) -> None: ...
    def __repr__(self) -> _str: ...
    def check(self, value) -> _Any: ...
boolean: _Any
class cat(Constraint):
    cseq: _Any
    dim: _Any
    event_dim: _Any
    is_discrete: _Any
    lengths: _Any
    def __init__(self, cseq, dim=..., lengths=...) -> None: ...
    def check(self, value) -> _Any: ...
corr_cholesky: _Any
dependent: _Any
class dependent_property(_builtins.property, Constraint):
    _event_dim: _Any
    _is_discrete: _Any
    event_dim: _Any
    is_discrete: _Any
    def __call__(self, fn) -> _Any: ...
    def __init__(self, fn=..., *, is_discrete=..., event_dim=...) -> None: ...
    def check(self, x) -> _Any: ...
class greater_than(Constraint):
    lower_bound: _Any
    def __init__(self, lower_bound) -> None: ...
    def check(self, value) -> _Any: ...
class greater_than_eq(Constraint):
    lower_bound: _Any
    def __init__(self, lower_bound) -> None: ...
    def check(self, value) -> _Any: ...
class half_open_interval(Constraint):
    lower_bound: _Any
    upper_bound: _Any
    def __init__(self, lower_bound, upper_bound) -> None: ...
    def check(self, value) -> _Any: ...
class independent(Constraint):
    base_constraint: _Any
    event_dim: _Any
    is_discrete: _Any
    reinterpreted_batch_ndims: _Any
    def __init__(self, base_constraint, reinterpreted_batch_ndims) -> None: ...
    def __repr__(self) -> _str: ...
    def check(self, value) -> _Any: ...
class integer_interval(Constraint):
    is_discrete: _Any
    lower_bound: _Any
    upper_bound: _Any
    def __init__(self, lower_bound, upper_bound) -> None: ...
    def check(self, value) -> _Any: ...
class interval(Constraint):
    lower_bound: _Any
    upper_bound: _Any
    def __init__(self, lower_bound, upper_bound) -> None: ...
    def check(self, value) -> _Any: ...
def is_dependent(constraint) -> _bool: ...
class less_than(Constraint):
    upper_bound: _Any
    def __init__(self, upper_bound) -> None: ...
    def check(self, value) -> _Any: ...
lower_cholesky: _Any
lower_triangular: _Any
class multinomial(Constraint):
    event_dim: _Any
    is_discrete: _Any
    upper_bound: _Any
    def __init__(self, upper_bound) -> None: ...
    def check(self, x) -> _Any: ...
nonnegative: _Any
nonnegative_integer: _Any
one_hot: _Any
positive: _Any
positive_definite: _Any
positive_integer: _Any
positive_semidefinite: _Any
real: _Any
real_vector: _Any
simplex: _Any
square: _Any
class stack(Constraint):
    cseq: _Any
    dim: _Any
    event_dim: _Any
    is_discrete: _Any
    def __init__(self, cseq, dim=...) -> None: ...
    def check(self, value) -> _Any: ...
symmetric: _Any
unit_interval: _Any
