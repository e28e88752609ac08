"""The fused operators of Ascend: each has a mapping onto a MindSpore operator and an exact CPU implementation.

Importing this package declares the operators in the operator table under `torch_npu.`. Programs call them through
msadapter.torch_npu.
"""

from . import (
    activation,
    attention,
    grouped,
    lightning_indexer,
    moe,
    norm,
    optimizer,
    ring,
    routing,
    sparse_attention,
)
from .attention_calls import (
    npu_fusion_attention,
    npu_fusion_attention_grad,
    npu_fusion_attention_grad_v2,
    npu_fusion_attention_v2,
    npu_incre_flash_attention,
    npu_prompt_flash_attention,
)
from .collective import (
    npu_all_gather_base_mm,
    npu_alltoallv_gmm,
    npu_gmm_alltoallv,
    npu_mm_all_reduce_base,
    npu_mm_reduce_scatter_base,
)
from .grouped import (
    npu_grouped_matmul,
    npu_grouped_matmul_add_,
    npu_groupmatmul_add_fp32,
    npu_matmul_add_fp32,
)
from .hans import npu_hans_decode, npu_hans_encode
from .optimizer import npu_apply_adam_w, npu_apply_fused_adamw_v2, npu_apply_fused_ema_adamw
from .routing import (
    npu_moe_distribute_combine,
    npu_moe_distribute_combine_v2,
    npu_moe_distribute_dispatch,
    npu_moe_distribute_dispatch_v2,
)

__all__ = [
    "npu_all_gather_base_mm",
    "npu_alltoallv_gmm",
    "npu_apply_adam_w",
    "npu_apply_fused_adamw_v2",
    "npu_apply_fused_ema_adamw",
    "npu_fusion_attention",
    "npu_fusion_attention_grad",
    "npu_fusion_attention_grad_v2",
    "npu_fusion_attention_v2",
    "npu_gmm_alltoallv",
    "npu_hans_decode",
    "npu_hans_encode",
    "npu_moe_distribute_combine",
    "npu_moe_distribute_combine_v2",
    "npu_moe_distribute_dispatch",
    "npu_moe_distribute_dispatch_v2",
    "npu_grouped_matmul",
    "npu_grouped_matmul_add_",
    "npu_incre_flash_attention",
    "npu_prompt_flash_attention",
    "npu_groupmatmul_add_fp32",
    "npu_matmul_add_fp32",
    "npu_mm_all_reduce_base",
    "npu_mm_reduce_scatter_base",
]
