"""The gradients of the operators, in the form that torch.library.register_autograd takes.

As in torchvision, regions have no gradient, and there is no gradient of a gradient.
"""

from __future__ import annotations

from . import deformable, regions


def _save_regions(ctx, inputs, output):
    input, rois, *options = inputs
    ctx.shape, ctx.options = input.shape, options
    ctx.save_for_backward(rois, *(output[1:] if isinstance(output, tuple) else ()))


def _roi_align(ctx, grad):
    (rois,) = ctx.saved_tensors
    scale, height, width, *sampling = ctx.options
    return regions.roi_align_backward(grad, rois, scale, height, width, *ctx.shape, *sampling), *[None] * 6


def _with_positions(backward):
    """Return the formula of an operator whose second output tells where the elements of the first come from."""

    def formula(ctx, grad, unused):
        rois, positions = ctx.saved_tensors
        return backward(grad, rois, positions, *ctx.options, *ctx.shape), *[None] * (1 + len(ctx.options))

    return formula


def _save_all(ctx, inputs, output):
    ctx.save_for_backward(*inputs[:5])
    ctx.options = inputs[5:]


def _deform_conv2d(ctx, grad):
    found = deformable.deform_conv2d_backward(grad, *ctx.saved_tensors, *ctx.options)
    return *found, *[None] * len(ctx.options)


# operator -> (formula, what saves its inputs)
FORMULAS = {
    "roi_align": (_roi_align, _save_regions),
    "ps_roi_align": (_with_positions(regions.ps_roi_align_backward), _save_regions),
    "roi_pool": (_with_positions(regions.roi_pool_backward), _save_regions),
    "ps_roi_pool": (_with_positions(regions.ps_roi_pool_backward), _save_regions),
    "deform_conv2d": (_deform_conv2d, _save_all),
}
