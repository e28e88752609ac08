"""AtbOpBuilder.load gives the functions of kernels_ascend."""

from .._extensions import load_ours
from ..runtime import RuntimePatch

PATCH = RuntimePatch(
    id="op-atb-builder",
    module="mindspeed.op_builder.atb_builder",
    attribute="AtbOpBuilder.load",
    reason="compiles C++ against CANN and PyTorch's C++ API; kernels_ascend has the same functions",
    reason_class="environment",
    replacement=load_ours,
)
