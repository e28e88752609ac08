"""torch._C._dynamo: switches of PyTorch's compiler, which programs set. msadapter does not have that compiler."""

from types import SimpleNamespace


def _set_lru_cache(enabled: bool) -> None:
    """Do nothing: there is no cache of compiled code."""


eval_frame = SimpleNamespace(_set_lru_cache=_set_lru_cache)
