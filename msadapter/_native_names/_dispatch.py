"""torch._C.DispatchKey and DispatchKeySet: names and sets of the layers that PyTorch's dispatcher goes through.

msadapter has no dispatcher of this kind, so nothing is registered under a key. Libraries use keys in annotations, in
registrations, and to ask a set for a key.
"""

from __future__ import annotations

from enum import IntEnum

_BACKENDS = ("CPU", "CUDA", "HIP", "XLA", "MPS", "IPU", "XPU", "HPU", "VE", "Lazy", "MTIA", "MAIA")
_BACKENDS += ("PrivateUse1", "PrivateUse2", "PrivateUse3", "Meta")
_SINGLE = {
    "Undefined": 0,
    "Dense": 1,
    "Quantized": 5,
    "Sparse": 8,
    "SparseCsr": 9,
    "NestedTensor": 10,
    "BackendSelect": 11,
    "Python": 13,
    "FuncTorchDynamicLayerBackMode": 14,
    "Functionalize": 15,
    "Conjugate": 16,
    "Negative": 17,
    "ZeroTensor": 18,
    "ADInplaceOrView": 19,
    "AutogradOther": 20,
    "AutogradFunctionality": 21,
    "AutogradNestedTensor": 22,
    "AutocastCPU": 24,
    "AutocastXPU": 27,
    "AutocastIPU": 28,
    "AutocastHPU": 29,
    "AutocastMPS": 31,
    "AutocastCUDA": 32,
    "AutocastPrivateUse1": 33,
    "FuncTorchBatched": 34,
    "FuncTorchVmapMode": 36,
    "FuncTorchGradWrapper": 39,
    "PythonTLSSnapshot": 41,
    "FuncTorchDynamicLayerFrontMode": 42,
    "PreDispatch": 45,
    "PythonDispatcher": 46,
    "Autograd": 150,
    "CompositeImplicitAutograd": 151,
    "FuncTorchBatchedDecomposition": 152,
    "CompositeImplicitAutogradNestedTensor": 153,
    "CompositeExplicitAutograd": 154,
    "CompositeExplicitAutogradNonFunctional": 155,
}
# The number of the first backend of each kind. The CPU has the next number, and the others follow.
_STARTS = {
    "Dense": ("", 48),
    "Quantized": ("Quantized", 65),
    "Sparse": ("Sparse", 82),
    "SparseCsr": ("SparseCsr", 99),
    "NestedTensor": ("NestedTensor", 116),
    "AutogradFunctionality": ("Autograd", 133),
}


def _numbers() -> dict[str, int]:
    found = dict(_SINGLE)
    for kind, (prefix, start) in _STARTS.items():
        found[f"StartOf{kind}Backends"] = start
        found |= {prefix + backend: start + 1 + i for i, backend in enumerate(_BACKENDS)}
        found[f"EndOf{kind}Backends"] = start + len(_BACKENDS)
    return found


DispatchKey = IntEnum("DispatchKey", _numbers(), module="torch._C")  # type: ignore[misc]
DispatchKey.__str__ = DispatchKey.__repr__ = lambda self: f"DispatchKey.{self.name}"


class DispatchKeySet:
    """A set of dispatch keys. Its operations return new sets."""

    def __init__(self, *keys: DispatchKey) -> None:
        wrong = next((key for key in keys if not isinstance(key, DispatchKey)), None)
        if wrong is not None:
            raise TypeError(f"DispatchKeySet takes values of DispatchKey, but got {type(wrong).__name__}")
        self._keys = frozenset(keys)

    def has(self, key: DispatchKey) -> bool:
        """Return whether the key is in the set."""
        return key in self._keys

    def add(self, key: DispatchKey) -> DispatchKeySet:
        """Return the set with this key."""
        return DispatchKeySet(*self._keys, key)

    def remove(self, key: DispatchKey) -> DispatchKeySet:
        """Return the set without this key."""
        return DispatchKeySet(*(self._keys - {key}))

    def highestPriorityTypeId(self) -> DispatchKey:
        """Return the key that the dispatcher takes first, or DispatchKey.Undefined for an empty set."""
        return max(self._keys, default=DispatchKey["Undefined"])

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(*(self._keys | other._keys))

    def __and__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(*(self._keys & other._keys))

    def __sub__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(*(self._keys - other._keys))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DispatchKeySet) and self._keys == other._keys

    def __hash__(self) -> int:
        return hash(self._keys)

    def __iter__(self):
        return iter(sorted(self._keys))

    def __repr__(self) -> str:
        return f"DispatchKeySet({', '.join(key.name for key in self)})"


DispatchKeySet.__module__ = "torch._C"
