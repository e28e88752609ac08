"""torch.distributed._composable.fsdp.fully_shard, an older place of what torch.distributed.fsdp has."""

from ...fsdp import FSDPModule, UnshardHandle, fully_shard, register_fsdp_forward_method

__all__ = ["FSDPModule", "UnshardHandle", "fully_shard", "register_fsdp_forward_method"]
