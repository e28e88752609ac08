"""The operators of torchvision's C++ library, as torch.ops.torchvision.

torchvision is written in Python but for some operators, which it loads with ``torch.ops.load_library``. That library is
compiled against PyTorch's C++ interface, so it cannot be loaded here. These functions take its place. They consist of
operators of the table, so they run on every device.
"""

from __future__ import annotations

from . import boxes, deformable, regions
from .gradients import FORMULAS as FORMULAS

_BINS = "float spatial_scale, SymInt pooled_height, SymInt pooled_width"
_ROI = f"Tensor input, Tensor rois, {_BINS}"
_GRAD = "Tensor grad, Tensor rois"
_SHAPE = "SymInt batch_size, SymInt channels, SymInt height, SymInt width"
_PAIR = "(Tensor, Tensor)"
_DEFORM = (
    "Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, SymInt stride_h, SymInt stride_w, "
    "SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, SymInt groups, SymInt offset_groups, bool use_mask"
)

# name -> (schema without the name, function)
OPERATORS = {
    "nms": ("(Tensor dets, Tensor scores, float iou_threshold) -> Tensor", boxes.nms),
    "box_iou_rotated": ("(Tensor boxes1, Tensor boxes2) -> Tensor", boxes.box_iou_rotated),
    "qnms": ("(Tensor dets, Tensor scores, float iou_threshold) -> Tensor", boxes.qnms),
    "roi_align": (f"({_ROI}, int sampling_ratio, bool aligned) -> Tensor", regions.roi_align),
    "_roi_align_backward": (
        f"({_GRAD}, {_BINS}, {_SHAPE}, int sampling_ratio, bool aligned) -> Tensor",
        regions.roi_align_backward,
    ),
    "qroi_align": (
        "(Tensor input, Tensor rois, float input_scale, int input_zero_point, float rois_scale, int rois_zero_point, "
        "float spatial_scale, SymInt pooled_height, SymInt pooled_width, int sampling_ratio, bool aligned) -> Tensor",
        regions.qroi_align,
    ),
    "ps_roi_align": (f"({_ROI}, int sampling_ratio) -> {_PAIR}", regions.ps_roi_align),
    "_ps_roi_align_backward": (
        f"({_GRAD}, Tensor channel_mapping, {_BINS}, int sampling_ratio, {_SHAPE}) -> Tensor",
        regions.ps_roi_align_backward,
    ),
    "roi_pool": (f"({_ROI}) -> {_PAIR}", regions.roi_pool),
    "_roi_pool_backward": (
        f"({_GRAD}, Tensor argmax, {_BINS}, {_SHAPE}) -> Tensor",
        regions.roi_pool_backward,
    ),
    "ps_roi_pool": (f"({_ROI}) -> {_PAIR}", regions.ps_roi_pool),
    "_ps_roi_pool_backward": (
        f"({_GRAD}, Tensor channel_mapping, {_BINS}, {_SHAPE}) -> Tensor",
        regions.ps_roi_pool_backward,
    ),
    "deform_conv2d": (f"({_DEFORM}) -> Tensor", deformable.deform_conv2d),
    "_deform_conv2d_backward": (
        f"(Tensor grad, {_DEFORM}) -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
        deformable.deform_conv2d_backward,
    ),
    "_cuda_version": ("() -> int", lambda: -1),  # torchvision's own answer when it is built without CUDA
}
