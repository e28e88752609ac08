"""Boxes: non-maximum suppression, and the overlap of rotated boxes."""

from __future__ import annotations

import numpy

from .._values.dtype import float32, float64, int64
from ..ops._declare import t
from ..ops._functional import without_grad
from ._checks import need, need_dtype

_ROWS = 1024  # boxes whose overlaps with all others are computed at a time


def _check(dets, scores) -> None:
    need(dets.dim() == 2, f"boxes should be a 2d tensor, got {dets.dim()}D")
    need(dets.size(1) == 4, f"boxes should have 4 elements in dimension 1, got {dets.size(1)}")
    need(scores.dim() == 1, f"scores should be a 1d tensor, got {scores.dim()}D")
    need(
        dets.size(0) == scores.size(0),
        "boxes and scores should have same number of elements in dimension 0, got "
        f"{dets.size(0)} and {scores.size(0)}",
    )
    need(dets.dtype is scores.dtype, "dets should have the same type as scores")
    need_dtype("nms_kernel", dets.dtype, (float32, float64))


def _overlaps(first, second):
    """Return the intersection over union of boxes (R, 4) and (N, 4): (R, N)."""
    low = t.maximum(first[:, None, :2], second[None, :, :2])
    high = t.minimum(first[:, None, 2:], second[None, :, 2:])
    width, height = (high - low).clamp(min=0).unbind(2)
    common = width * height
    areas = [(box[:, 2] - box[:, 0]) * (box[:, 3] - box[:, 1]) for box in (first, second)]
    return common / (areas[0][:, None] + areas[1][None, :] - common)


def nms(dets, scores, iou_threshold):
    """Return the indices of the boxes that no better box covers, best first, as int64 (K,).

    A box is dropped when its intersection over union with a better box that is kept is above ``iou_threshold``. Boxes
    (N, 4) are two corners, scores (N,). Equal scores keep their order.
    """
    _check(dets, scores)
    if dets.numel() == 0:
        return dets.new_empty((0,), dtype=int64)
    with without_grad():
        order = t.sort(scores, stable=True, descending=True)[1]
        boxes = dets.index_select(0, order)
        n = boxes.size(0)
        dropped = numpy.zeros(n, bool)
        for start in range(0, n, _ROWS):
            rows = numpy.flatnonzero(~dropped[start : start + _ROWS]) + start
            if not rows.size:
                continue
            chosen = boxes.index_select(0, t.tensor(rows.tolist(), device=boxes.device))
            covers = (_overlaps(chosen, boxes[start:]) > iou_threshold).cpu().numpy()
            for row, covered in zip(rows, covers, strict=True):
                if not dropped[row]:  # a box of the same rows may have dropped it
                    dropped[row + 1 :] |= covered[row + 1 - start :]
        kept = numpy.flatnonzero(~dropped)
        return order.index_select(0, t.tensor(kept.tolist(), device=order.device))


def qnms(dets, scores, iou_threshold):
    """Not supported: there are no quantised tensors."""
    raise NotImplementedError(
        "torchvision::qnms needs quantised tensors, which are not supported (docs/coverage.md)"
    )


def _corners(boxes):
    """Return the corners (..., 4, 2) of boxes (..., 5): centre, width, height, angle in degrees."""
    x, y, width, height, angle = boxes.unbind(-1)
    angle = angle * (numpy.pi / 180)
    cos, sin = angle.cos() * 0.5, angle.sin() * 0.5
    first = x + sin * height + cos * width, y + cos * height - sin * width
    second = x - sin * height + cos * width, y - cos * height - sin * width
    points = [first, second, (2 * x - first[0], 2 * y - first[1]), (2 * x - second[0], 2 * y - second[1])]
    return t.stack([t.stack(point, -1) for point in points], -2)


def _cross(a, b):
    return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]


def _inside(points, corners):
    """Return which of the points (..., P, 2) lie in a rectangle that is given by its corners (..., 4, 2)."""
    origin = corners[..., None, 0, :]
    side, other = corners[..., None, 1, :] - origin, corners[..., None, 3, :] - origin
    along = ((points - origin) * side).sum(-1), ((points - origin) * other).sum(-1)
    slack = 1e-6
    result = None
    for value, edge in zip(along, (side, other), strict=True):
        within = (value > -slack) & (value < (edge * edge).sum(-1) + slack)
        result = within if result is None else result & within
    return result


def _common_area(first, second):
    """Return the area that rectangles with corners (..., 4, 2) have in common.

    The corners of the common polygon are the crossings of the sides, and the corners of one rectangle that lie in the other.
    The polygon is convex, so going round its centre by angle gives its outline.
    """
    starts, others = first[..., :, None, :], second[..., None, :, :]
    edges = (first.roll(-1, -2) - first)[..., :, None, :], (second.roll(-1, -2) - second)[..., None, :, :]
    slope = _cross(*edges)
    gap = others - starts
    crossing = slope.abs() > 1e-14
    slope = t.where(crossing, slope, t.ones_like(slope))
    at = _cross(gap, edges[1]) / slope, _cross(gap, edges[0]) / slope
    slack = 1e-12
    for place in at:
        crossing = crossing & (place > -slack) & (place < 1 + slack)
    crossings = (starts + edges[0] * at[0][..., None]).flatten(-3, -2)
    points = t.cat([crossings, first, second], -2)
    valid = t.cat([crossing.flatten(-2), _inside(first, second), _inside(second, first)], -1)
    count = valid.sum(-1)
    weight = valid[..., None].to(points.dtype)
    centre = (points * weight).sum(-2, keepdim=True) / count.clamp(min=1)[..., None, None]
    around = (points - centre) * weight
    angle = t.atan2(around[..., 1], around[..., 0])
    # points that do not count go to the end of the round, to the place of its first point, and add no area
    order = t.where(valid, angle, t.full_like(angle, 4.0)).argsort(-1)
    around = around.gather(-2, order[..., None].expand(around.shape))
    ranks = t.arange(around.size(-2), device=around.device)
    around = t.where((ranks < count[..., None])[..., None], around, around[..., :1, :])
    area = _cross(around, around.roll(-1, -2)).sum(-1).abs() / 2
    return t.where(count > 2, area, t.zeros_like(area))


def box_iou_rotated(boxes1, boxes2):
    """Return the intersection over union of rotated boxes (N, 5) and (M, 5) as (N, M).

    A box is its centre's x and y, its width and height, and its angle in degrees, counted against the clock.
    """
    for name, boxes in (("boxes1", boxes1), ("boxes2", boxes2)):
        need(boxes.dim() == 2 and boxes.size(1) == 5, f"{name} must have shape as Tensor[N, 5]")
    shape = boxes1.size(0), boxes2.size(0)
    if 0 in shape:
        return boxes1.new_zeros(shape, dtype=float32)
    with without_grad():
        first = boxes1.double()[:, None, :].expand(*shape, 5)
        second = boxes2.double()[None, :, :].expand(*shape, 5)
        middle = (first[..., :2] + second[..., :2]) / 2  # near 0, coordinates keep their digits
        moved = [t.cat([box[..., :2] - middle, box[..., 2:]], -1) for box in (first, second)]
        areas = [box[..., 2] * box[..., 3] for box in (first, second)]
        common = _common_area(*(_corners(box) for box in moved))
        union = areas[0] + areas[1] - common
        real = (areas[0] >= 1e-14) & (areas[1] >= 1e-14)
        return t.where(real, common / union, t.zeros_like(common)).float()
