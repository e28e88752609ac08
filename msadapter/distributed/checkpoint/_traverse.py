"""Traverses nested dicts and lists of a state_dict."""

from collections.abc import Mapping

from ...tensor import Tensor

OBJ_PATH = tuple
STATE_DICT_ITEM = object
__all__ = ["get_element", "set_element", "traverse_state_dict"]


def _is_tensor(value) -> bool:
    return isinstance(value, Tensor)


def traverse_state_dict(state_dict, visitor, keep_traversing=_is_tensor) -> None:
    """Calls visitor(path, value) for every leaf.

    Dicts are entered. A list is entered if an element, at any depth of nested lists, is a dict or satisfies keep_traversing.
    Anything else is a leaf.
    """

    def entered(values) -> bool:
        return any(
            isinstance(v, Mapping) or (isinstance(v, list) and entered(v)) or keep_traversing(v)
            for v in values
        )

    def walk(path, value):
        if isinstance(value, Mapping):
            for key, inner in value.items():
                walk((*path, str(key)), inner)
        elif isinstance(value, list) and entered(value):
            for i, inner in enumerate(value):
                walk((*path, i), inner)
        else:
            visitor(path, value)

    walk((), state_dict)


def set_element(root_dict, path, value) -> None:
    """Sets the value at a path, and creates missing dicts and lists on the way."""
    place = root_dict
    for key, following in zip(path[:-1], path[1:], strict=True):
        fresh = [] if isinstance(following, int) else {}
        if isinstance(key, int):
            place.extend([None] * (key + 1 - len(place)))
            place[key] = fresh if place[key] is None else place[key]
            place = place[key]
        else:
            place = place.setdefault(key, fresh)
    last = path[-1]
    if isinstance(last, int):
        place.extend([None] * (last + 1 - len(place)))
    place[last] = value


def get_element(root_dict, path, default_value=None):
    """The value at a path."""
    place = root_dict
    for key in path:
        inside = (
            key < len(place)
            if isinstance(key, int) and isinstance(place, list)
            else (isinstance(place, dict) and key in place)
        )
        if not inside:
            return default_value
        place = place[key]
    return place
