"""torch.fx.tensor_type: types of tensors with sizes of which some may be unknown (gradual types)."""

from __future__ import annotations

__all__ = ["Dyn", "TensorType", "is_consistent", "is_more_precise"]


class TensorType:
    """The type of the tensors of certain sizes. A size may be a number, a symbol, or Dyn for any."""

    __name__ = "TensorType"

    def __init__(self, dim):
        self.__origin__ = TensorType
        self.__args__ = dim

    @property
    def dims(self):
        """The sizes."""
        return self.__args__

    def __repr__(self) -> str:
        return f"TensorType[{self.__args__}]"

    def __eq__(self, other) -> bool:
        return isinstance(other, self.__class__) and list(self.__args__) == list(other.__args__)

    __hash__ = None

    @staticmethod
    def __class_getitem__(*args):
        dims = args[0]
        return TensorType(tuple(dims) if isinstance(dims, tuple) else (dims,))


class _DynType:
    """The type of anything."""

    def __init__(self):
        self.__name__ = "_DynType"

    def __eq__(self, other) -> bool:
        return isinstance(other, self.__class__)

    def __hash__(self) -> int:
        return hash(_DynType)

    def __str__(self) -> str:
        return "Dyn"

    __repr__ = __str__


Dyn = _DynType()


def is_consistent(t1, t2) -> bool:
    """Return whether two types can be those of one value. It says nothing about a third: the relation is not transitive."""
    if t1 in (t2, Dyn) or t2 == Dyn or isinstance(t1, Var) or isinstance(t2, Var):
        return True
    if isinstance(t1, TensorType) and isinstance(t2, TensorType):
        return len(t1.dims) == len(t2.dims) and all(map(is_consistent, t1.dims, t2.dims))
    return False


def is_more_precise(t1, t2) -> bool:
    """Return whether the first type says at least as much as the second one."""
    if t1 == t2 or t2 == Dyn or isinstance(t2, Var):
        return True
    if isinstance(t1, TensorType) and isinstance(t2, TensorType):
        return len(t1.dims) == len(t2.dims) and all(map(is_more_precise, t1.dims, t2.dims))
    return False


class Var:
    """A variable for a type or a size that unification finds.

    Args:
        token: the name. Two variables of the same name are one.
    """

    def __init__(self, token):
        self.token = token

    def __eq__(self, other) -> bool:
        return isinstance(other, Var) and self.token == other.token

    def __hash__(self) -> int:
        return hash((Var, self.token))

    def __repr__(self) -> str:
        return f"~{self.token}"
