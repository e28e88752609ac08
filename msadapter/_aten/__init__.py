"""torch.ops.aten: the operator table under the names of PyTorch's dispatcher."""

from __future__ import annotations

from ..ops._declare import namespaces
from ..ops.foreach import FUNCTIONS as LISTS
from ..overrides import handle_torch_function
from ..tensor import Tensor
from .backward import OPERATORS as GRADIENTS
from .only import METHODS, OPERATORS

_SPACES = ("aten", "torch", "nn.functional", "Tensor")
_FAMILIES = ("linalg", "special", "fft")


def _find(name: str):
    """Return the function for a dispatcher name such as ``add``, ``add_`` or ``linalg_inv``; None if unknown."""
    if name in OPERATORS:
        return OPERATORS[name]
    if name in METHODS:
        return getattr(Tensor, name)
    for space in _SPACES:
        if name in namespaces[space]:
            return namespaces[space][name]
    family, _, rest = name.partition("_")
    if family in _FAMILIES:
        return namespaces[family].get(rest)
    return GRADIENTS.get(name) or LISTS.get(name)


class OpOverload:
    """One overload, such as ``aten.add.Tensor``. It is called with the arguments of the operator."""

    def __init__(self, packet: OpOverloadPacket, name: str):
        self._overloadpacket, self._overloadname = packet, name
        self.namespace = "aten"
        self.__module__ = packet.__module__
        self.__name__ = f"{packet.__name__}.{name}"
        self.__qualname__ = self.__name__

    def name(self) -> str:
        """Return the qualified name. The name of the default overload is left out."""
        suffix = "" if self._overloadname == "default" else f".{self._overloadname}"
        return f"aten::{self._overloadpacket.__name__}{suffix}"

    @property
    def overloadpacket(self) -> OpOverloadPacket:
        return self._overloadpacket

    def __call__(self, *args, **kwargs):
        if any(not isinstance(a, Tensor) and hasattr(type(a), "__torch_function__") for a in args):
            # a proxy of torch.fx records the overload
            return handle_torch_function(self, args, *args, **kwargs)
        return self._overloadpacket(*args, **kwargs)

    def __deepcopy__(self, memo) -> OpOverload:
        return self  # programs compare overloads by identity

    def __repr__(self) -> str:
        return f"<OpOverload(op='aten.{self._overloadpacket.__name__}', overload='{self._overloadname}')>"

    def __str__(self) -> str:
        return f"aten.{self.__name__}"


class OpOverloadPacket:
    """All overloads of an operator. They share one function, which looks at its arguments."""

    def __init__(self, name: str, function):
        self.__name__, self.__module__, self._function = name, "torch._ops.aten", function
        self._made: dict[str, OpOverload] = {}

    def __call__(self, *args, **kwargs):
        return self._function(*args, **kwargs)

    def overloads(self) -> list[str]:
        """Return the names of the overloads that have been used so far."""
        return sorted({"default", *self._made})

    def __getattr__(self, name: str):
        if name.startswith("_"):
            raise AttributeError(name)
        return self._made.setdefault(name, OpOverload(self, name))

    def __deepcopy__(self, memo) -> OpOverloadPacket:
        return self

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='aten.{self.__name__}')>"

    def __str__(self) -> str:
        return f"aten.{self.__name__}"


class _Aten:
    """The namespace. Operators that programs define in it take precedence over the table."""

    def __init__(self, programs):
        self._programs = programs

    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        defined = self._programs(name)
        if defined is not None:
            return defined
        function = _find(name)
        if function is None:
            raise AttributeError(f"'_OpNamespace' 'aten' object has no attribute '{name}'")
        packet = OpOverloadPacket(name, function)
        setattr(self, name, packet)
        return packet


def namespace(programs):
    """Return torch.ops.aten.

    ``programs(name)`` returns an operator that a program has defined in it, or None.
    """
    return _Aten(programs)
