"""Gradients of writes to a view, or to the base of a view.

A view is a window of its base tensor. The C++ graph calls these operators when the gradient itself is
recorded, or when the base is not dense. The sizes and strides are those of the base and of the window, which
starts `offset` elements after the base.
"""

from __future__ import annotations

from ._declare import composite, t
from .slicing import positions
from .view import zeros_of

_GEOMETRY = "int[] base_sizes, int[] base_strides, int[] sizes, int[] strides, int offset"


def _places(base_sizes, base_strides, sizes, strides, offset):
    """Return the memory positions of the base's elements and of the window's, and the size of the memory."""
    low = min(offset, 0)

    def room(n, s, at):
        return 0 if 0 in n else at - low + sum((a - 1) * b for a, b in zip(n, s, strict=True)) + 1

    size = max(room(base_sizes, base_strides, 0), room(sizes, strides, offset), 1)
    base = positions(base_sizes, base_strides) - low if 0 not in base_sizes else None
    window = positions(sizes, strides) + (offset - low) if 0 not in sizes else None
    return base, window, size


def _spread(grad, places, room):
    """Write `grad` to its positions in a flat memory of zeros. Elements with the same position add up."""
    flat = zeros_of(grad, [room])
    return flat if places is None else t.index_add(flat, 0, places, t.reshape(grad, [-1]))


def _collect(flat, places, sizes):
    return zeros_of(flat, sizes) if places is None else t.reshape(t.index_select(flat, 0, places), sizes)


@composite(f"_window_to_base(Tensor grad, Tensor? other, {_GEOMETRY}) -> Tensor", forms="f")
def _window_to_base(grad, other, base_sizes, base_strides, sizes, strides, offset):
    """Return the gradient of a base of which only the window was used."""
    base, window, room = _places(base_sizes, base_strides, sizes, strides, offset)
    return _collect(_spread(grad, window, room), base, base_sizes)


@composite(f"_base_to_window(Tensor grad, Tensor? other, {_GEOMETRY}) -> Tensor", forms="f")
def _base_to_window(grad, other, base_sizes, base_strides, sizes, strides, offset):
    """Return the part of the base's gradient that belongs to the window."""
    base, window, room = _places(base_sizes, base_strides, sizes, strides, offset)
    return _collect(_spread(grad, base, room), window, sizes)


@composite(f"_replace_window(Tensor grad, Tensor? other, {_GEOMETRY}) -> Tensor", forms="f")
def _replace_window(grad, other, base_sizes, base_strides, sizes, strides, offset):
    """Return the base's gradient with the window replaced by `other` (zeros if None)."""
    base, window, room = _places(base_sizes, base_strides, sizes, strides, offset)
    flat = _spread(grad, base, room)
    if window is not None:
        flat = t.index_fill(flat, 0, window, 0)
        if other is not None:
            flat = t.index_add(flat, 0, window, t.reshape(other, [-1]))
    return _collect(flat, base, base_sizes)
