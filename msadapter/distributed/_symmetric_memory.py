"""torch.distributed._symmetric_memory: memory that processes map from each other. It is not supported."""

from .._errors import unsupported_function

empty, enable_symm_mem_for_group, get_symm_mem_workspace, rendezvous, get_mem_pool, set_backend = (
    unsupported_function(f"torch.distributed._symmetric_memory.{name}")
    for name in (
        "empty",
        "enable_symm_mem_for_group",
        "get_symm_mem_workspace",
        "rendezvous",
        "get_mem_pool",
        "set_backend",
    )
)


def is_symm_mem_enabled_for_group(group_name: str) -> bool:
    """Returns False, because symmetric memory is not supported."""
    return False
