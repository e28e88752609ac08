"""Makes AtbOpBuilder.load return the functions of kernels_ascend."""

from .._extensions import load_ours
from ..runtime import RuntimePatch

PATCH = RuntimePatch(
    id="op-atb-builder",
    module="mindspeed.op_builder.atb_builder",
    attribute="AtbOpBuilder.load",
    reason="MindSpeed compiles C++ code against CANN and PyTorch's C++ API; kernels_ascend provides the same functions",
    reason_class="environment",
    replacement=load_ours,
    # the same in 2.3.0_core_r0.12.1 and 26.1.0_core_r0.12.1
    fingerprints=("8487d28605c8823c55769e476679a092f89383d98dd6fda6efd2d8f98d011a63",),
)
