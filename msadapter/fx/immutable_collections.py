"""Lists and dicts that cannot change: those in the arguments of nodes, whose users the graph counts."""

from __future__ import annotations

from ..utils import _pytree as pytree

__all__ = ["immutable_dict", "immutable_list"]


def _refuse(self, *args, **kwargs):
    """Raise TypeError, because whoever changes an argument in place goes past the graph."""
    raise TypeError(
        f"{type(self).__name__!r} object does not support mutation. If you are attempting to modify the kwargs or args of a "
        "torch.fx.Node object,\ninstead create a new copy of it and assign the copy to the node:\n\n"
        "    new_args = ...  # copy and mutate args\n    node.args = new_args"
    )


class immutable_list(list):
    """A list that cannot change. It has a hash."""

    __delitem__ = __iadd__ = __imul__ = __setitem__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __reduce__(self):
        return type(self), (tuple(self),)


class immutable_dict(dict):
    """A dict that cannot change. It has a hash."""

    __delitem__ = __ior__ = __setitem__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __hash__(self) -> int:
        return hash(frozenset(self.items()))

    def __reduce__(self):
        return type(self), (tuple(self.items()),)


def _register(cls, plain) -> None:
    ordinary = pytree.SUPPORTED_NODES[plain]
    pytree.register_pytree_node(
        cls,
        ordinary.flatten_fn,
        lambda members, context: cls(ordinary.unflatten_fn(members, context)),
        serialized_type_name=f"torch.fx.immutable_collections.{cls.__name__}",
        flatten_with_keys_fn=ordinary.flatten_with_keys_fn,
    )


_register(immutable_list, list)
_register(immutable_dict, dict)
