"""Imports torchvision, also where its library of operators cannot be loaded: PyPI's needs CUDA, and PyTorch for CPUs has none.

Its Python part then lacks the declarations of operators, which nothing here calls.
"""

import torch

try:
    import torchvision
except RuntimeError as error:
    if "operator torchvision::" not in str(error):
        raise
    for name in ("nms", "qnms"):
        torch.library.define(
            f"torchvision::{name}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
        )
    import torchvision

__all__ = ["torchvision"]
