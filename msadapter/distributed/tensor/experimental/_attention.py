"""Names of attention over a sharded sequence (context parallelism), which is not supported.

Programs import them before they know whether they will need them. Each raises NotImplementedError when it is used.
"""

from __future__ import annotations

from ...._errors import unsupported


def _refuse(name: str):
    raise unsupported(
        f"torch.distributed.tensor.experimental._attention.{name}",
        "attention over a sharded sequence is not supported",
    )


class _ContextParallel:
    """Not supported: creating an instance raises NotImplementedError."""

    def __init__(self, *args, **kwargs):
        _refuse(type(self).__name__)


class _HeadTailLoadBalancer(_ContextParallel):
    """Not supported: creating an instance raises NotImplementedError."""


class _PTRRLoadBalancer(_ContextParallel):
    """Not supported: creating an instance raises NotImplementedError."""


def _context_parallel_shard(*args, **kwargs):
    """Not supported: raises NotImplementedError."""
    _refuse("_context_parallel_shard")


def _enable_context_parallel_dispatcher():
    """Not supported: raises NotImplementedError."""
    _refuse("_enable_context_parallel_dispatcher")


def _disable_context_parallel_dispatcher():
    """Not supported: raises NotImplementedError."""
    _refuse("_disable_context_parallel_dispatcher")


def set_rotate_method(rotate_method: str) -> None:
    """Not supported: raises NotImplementedError."""
    _refuse("set_rotate_method")
