"""Flattens nested state_dicts and restores them."""

from ._traverse import OBJ_PATH, set_element, traverse_state_dict

FLATTEN_MAPPING = dict
__all__ = ["FLATTEN_MAPPING", "OBJ_PATH", "flatten_state_dict", "unflatten_state_dict"]


def flatten_state_dict(state_dict):
    """(flat dict with dotted names, {name: path})."""
    flat, paths = {}, {}

    def visit(path, value):
        name = ".".join(map(str, path))
        if name in flat:
            raise ValueError(f"duplicated flatten key {name}")
        flat[name] = value
        paths[name] = path

    traverse_state_dict(state_dict, visit)
    return flat, paths


def unflatten_state_dict(state_dict, mapping) -> dict:
    """The nested dict of a flat one, by {name: path}."""
    nested = {}
    for name, value in state_dict.items():
        set_element(nested, mapping[name], value)
    return nested
