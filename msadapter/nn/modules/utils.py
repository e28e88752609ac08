"""Small helpers that several module families share."""

from ...ops._sizes import _ntuple, _pair, _quadruple, _single, _triple  # noqa: F401  torch.nn.modules.utils has them

__all__ = ["consume_prefix_in_state_dict_if_present"]


def _reverse_repeat_tuple(t, n):
    """Repeat each element ``n`` times, starting with the last element.

    This is the order that ``pad`` takes.
    """
    return tuple(x for x in reversed(t) for _ in range(n))


def _list_with_default(out_size, defaults):
    """Replace each None in ``out_size`` by the value at the same position from the end of ``defaults``."""
    if isinstance(out_size, int):
        return out_size
    if len(defaults) <= len(out_size):
        raise ValueError(f"Input dimension should be at least {len(out_size) + 1}")
    tail = defaults[-len(out_size) :]
    return [d if v is None else v for v, d in zip(out_size, tail, strict=True)]


def consume_prefix_in_state_dict_if_present(state_dict, prefix):
    """Remove ``prefix`` from the keys of ``state_dict`` and of its metadata, in place. The order stays."""
    for key in list(state_dict.keys()):
        value = state_dict.pop(key)
        state_dict[key.removeprefix(prefix)] = value
    metadata = getattr(state_dict, "_metadata", None)
    if metadata is not None:
        for key in list(metadata.keys()):
            if key and (key == prefix.replace(".", "") or key.startswith(prefix)):
                metadata[key[len(prefix) :]] = metadata.pop(key)
