"""Makes MindSpeedOpBuilder.load return the functions of kernels_ascend."""

from .._extensions import load_ours
from ..runtime import RuntimePatch

PATCH = RuntimePatch(
    id="op-builder",
    module="mindspeed.op_builder.builder",
    attribute="MindSpeedOpBuilder.load",
    reason="MindSpeed compiles C++ code against CANN and PyTorch's C++ API; kernels_ascend provides the same functions",
    reason_class="environment",
    replacement=load_ours,
    # the same in 2.3.0_core_r0.12.1 and 26.1.0_core_r0.12.1
    fingerprints=("2f96888e51f5230c7b444c7066df147af17dc91dfbbaeabdf9122c6cc29bee19",),
)
