"""Walking through nested dicts and lists of a state_dict."""
from ...tensor import Tensor

OBJ_PATH = tuple
STATE_DICT_ITEM = object
__all__ = ["get_element", "set_element", "traverse_state_dict"]


def _has_tensor(value) -> bool:
    if isinstance(value, dict):
        return any(map(_has_tensor, value.values()))
    if isinstance(value, (list, tuple)):
        return any(map(_has_tensor, value))
    return isinstance(value, Tensor)


def traverse_state_dict(state_dict, visitor, keep_traversing=_has_tensor) -> None:
    """Call visitor(path, value) for every leaf. Dicts are always entered; lists only if keep_traversing says
    so."""

    def walk(path, value):
        if isinstance(value, dict) and value:
            for key, inner in value.items():
                walk((*path, str(key)), inner)
        elif isinstance(value, (list, tuple)) and value and keep_traversing(value):
            for i, inner in enumerate(value):
                walk((*path, i), inner)
        else:
            visitor(path, value)

    for key, value in state_dict.items():
        walk((str(key),), value)


def set_element(root_dict, path, value) -> None:
    """Put a value at a path; dicts and lists on the way are made."""
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
        inside = key < len(place) if isinstance(key, int) and isinstance(place, list) else (
            isinstance(place, dict) and key in place)
        if not inside:
            return default_value
        place = place[key]
    return place
