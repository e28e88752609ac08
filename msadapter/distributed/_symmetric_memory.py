"""torch.distributed._symmetric_memory: memory that processes map from each other. It is not supported."""


def _absent(name: str):
    def function(*args, **kwargs):
        raise NotImplementedError(
            f"torch.distributed._symmetric_memory.{name} is not supported (docs/coverage.md)"
        )

    function.__name__ = name
    return function


empty, enable_symm_mem_for_group, get_symm_mem_workspace, rendezvous = map(
    _absent, ("empty", "enable_symm_mem_for_group", "get_symm_mem_workspace", "rendezvous")
)
get_mem_pool, set_backend = map(_absent, ("get_mem_pool", "set_backend"))


def is_symm_mem_enabled_for_group(group_name: str) -> bool:
    """Returns False, because symmetric memory is not supported."""
    return False
