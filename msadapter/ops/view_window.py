"""Gradients through a window of a base tensor: what a write through a view, or to a view's base, does to the graph.

The C++ graph calls these where the gradient itself is recorded, or where the base has holes. Geometries are those of the base
(relative to its own start) and of the window, `offset` elements after the base's first.
"""

from __future__ import annotations

from ._declare import composite, t
from .slicing import positions
from .view import zeros_of

_GEOMETRY = "int[] base_sizes, int[] base_strides, int[] sizes, int[] strides, int offset"


def _places(base_sizes, base_strides, sizes, strides, offset):
    """Flat memory positions of the base's and the window's elements, and how much memory there is."""
    low = min(offset, 0)

    def room(n, s, at):
        return 0 if 0 in n else at - low + sum((a - 1) * b for a, b in zip(n, s, strict=True)) + 1

    size = max(room(base_sizes, base_strides, 0), room(sizes, strides, offset), 1)
    base = positions(base_sizes, base_strides) - low if 0 not in base_sizes else None
    window = positions(sizes, strides) + (offset - low) if 0 not in sizes else None
    return base, window, size


def _spread(grad, places, room):
    """`grad` at its places of a flat memory, zeros elsewhere; elements of the same place add up."""
    flat = zeros_of(grad, [room])
    return flat if places is None else t.index_add(flat, 0, places, t.reshape(grad, [-1]))


def _collect(flat, places, sizes):
    return zeros_of(flat, sizes) if places is None else t.reshape(t.index_select(flat, 0, places), sizes)


@composite(f"_window_to_base(Tensor grad, Tensor? other, {_GEOMETRY}) -> Tensor", forms="f")
def _window_to_base(grad, other, base_sizes, base_strides, sizes, strides, offset):
    """Gradient of the base that only the window was read of."""
    base, window, room = _places(base_sizes, base_strides, sizes, strides, offset)
    return _collect(_spread(grad, window, room), base, base_sizes)


@composite(f"_base_to_window(Tensor grad, Tensor? other, {_GEOMETRY}) -> Tensor", forms="f")
def _base_to_window(grad, other, base_sizes, base_strides, sizes, strides, offset):
    """The window's part of the base's gradient."""
    base, window, room = _places(base_sizes, base_strides, sizes, strides, offset)
    return _collect(_spread(grad, base, room), window, sizes)


@composite(f"_replace_window(Tensor grad, Tensor? other, {_GEOMETRY}) -> Tensor", forms="f")
def _replace_window(grad, other, base_sizes, base_strides, sizes, strides, offset):
    """The base's gradient with `other` (zeros if None) in the window."""
    base, window, room = _places(base_sizes, base_strides, sizes, strides, offset)
    flat = _spread(grad, base, room)
    if window is not None:
        flat = t.index_fill(flat, 0, window, 0)
        if other is not None:
            flat = t.index_add(flat, 0, window, t.reshape(other, [-1]))
    return _collect(flat, base, base_sizes)
