"""Dictionaries keyed by the identity of tensors that do not keep them alive."""

import copy
import weakref
from collections.abc import Mapping, MutableMapping

__all__ = ["TensorWeakRef", "WeakIdKeyDictionary", "WeakIdRef", "WeakTensorKeyDictionary"]


class WeakIdRef(weakref.ref):
    """A weak reference that compares by identity."""

    __slots__ = ["_id"]

    def __init__(self, key, callback=None):
        self._id = id(key)
        super().__init__(key, callback)

    def __hash__(self):
        return self._id

    def __eq__(self, other):
        a, b = self(), other()
        return a is b if a is not None and b is not None else self is other


class WeakIdKeyDictionary(MutableMapping):
    """A dictionary that loses an entry when the key is no longer referenced elsewhere."""

    def __init__(self, dict=None, ref_type=WeakIdRef):
        self.data = {}
        self.ref_type = ref_type
        if dict is not None:
            self.update(dict)

    def _ref(self, key, watch=False):
        if not watch:
            return self.ref_type(key)
        owner = weakref.ref(self)

        def gone(reference):
            alive = owner()
            if alive is not None:
                alive.data.pop(reference, None)

        return self.ref_type(key, gone)

    def __getitem__(self, key):
        return self.data[self._ref(key)]

    def __setitem__(self, key, value):
        self.data[self._ref(key, watch=True)] = value

    def __delitem__(self, key):
        del self.data[self._ref(key)]

    def __contains__(self, key):
        return self._ref(key) in self.data

    def __len__(self):
        return len(self.data)

    def __iter__(self):
        for reference in list(self.data):
            key = reference()
            if key is not None:
                yield key

    def __repr__(self):
        return f"<{type(self).__name__} at {id(self):#x}>"

    def _with(self, change):
        """Return a new dictionary with the same keys, and ``change(value)`` of each value."""
        made = type(self)(ref_type=self.ref_type)
        for key in self:
            made[key] = change(self[key])
        return made

    def copy(self):
        """Return a new dictionary with the same entries."""
        return self._with(lambda value: value)

    __copy__ = copy

    def __deepcopy__(self, memo):
        # The keys stay the same objects: a copy of a key would be referenced by nobody, and its entry would be lost at once.
        return self._with(lambda value: copy.deepcopy(value, memo))

    def keyrefs(self):
        """Return the weak references to the keys. Their objects may be gone when they are asked."""
        return list(self.data)

    def update(self, dict=None, **kwargs):
        """Add the entries of another dictionary, or of a sequence of pairs."""
        other = {} if dict is None else dict if hasattr(dict, "items") else type({})(dict)
        for key, value in [*other.items(), *kwargs.items()]:
            self[key] = value

    def __or__(self, other):
        if not isinstance(other, Mapping):
            return NotImplemented
        made = self.copy()
        made.update(other)
        return made

    def __ror__(self, other):
        if not isinstance(other, Mapping):
            return NotImplemented
        made = type(self)(ref_type=self.ref_type)
        made.update(other)
        made.update(self)
        return made

    def __ior__(self, other):
        self.update(other)
        return self


WeakTensorKeyDictionary = WeakIdKeyDictionary


class TensorWeakRef:
    """A weak reference to a tensor."""

    def __init__(self, tensor):
        self.ref = WeakIdRef(tensor)

    def __call__(self):
        return self.ref()
