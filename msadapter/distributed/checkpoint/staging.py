"""How async_save copies a state dict before the training goes on."""

from __future__ import annotations

import copy
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from ... import accelerator
from ...tensor import Tensor
from .._shard.sharded_tensor import ShardedTensor

__all__ = ["AsyncStager", "BlockingAsyncStager", "DefaultStager", "StagingOptions"]


@runtime_checkable
class AsyncStager(Protocol):
    """What async_save calls: `stage` returns a copy that later changes of the tensors do not reach, or a future of it."""

    _synchronize_after_execute: bool = True

    @property
    def should_synchronize_after_execute(self) -> bool:
        """Whether async_save calls `synchronize_staging` before it returns."""
        return self._synchronize_after_execute

    def stage(self, state_dict: dict):
        """Return a copy of the state dict, or a future of it."""
        raise NotImplementedError(f"{self.__class__.__name__} must implement stage method")

    def synchronize_staging(self) -> None:
        """Wait until the copy exists."""

    def close(self) -> None:
        """Release what the stager holds."""


@dataclass
class StagingOptions:
    """What DefaultStager does.

    use_pinned_memory, use_shared_memory: PyTorch's kinds of memory for the copy; here it is in ordinary memory. use_async_staging:
    copy in a thread. use_non_blocking_copy: needs an accelerator.
    """

    use_pinned_memory: bool = True
    use_shared_memory: bool = True
    use_async_staging: bool = True
    use_non_blocking_copy: bool = True


class DefaultStager(AsyncStager):
    """Copies to the memory of the host, in a thread if the options say so.

    Raises:
        AssertionError: the options ask for copies that do not block, and there is no accelerator.
    """

    def __init__(self, config: StagingOptions = StagingOptions()):  # noqa: B008 (never changed)
        if config.use_non_blocking_copy and not accelerator.is_available():
            raise AssertionError("Non-blocking copy requires that the current accelerator is available.")
        self._executor = ThreadPoolExecutor(1, "staging") if config.use_async_staging else None
        self._last: Future | None = None

    def stage(self, state_dict: dict, **kwargs):
        """Return the copy, or with `use_async_staging` a future of it."""
        if self._executor is None:
            return staged(state_dict)
        self._last = self._executor.submit(staged, state_dict)
        return self._last

    def synchronize_staging(self) -> None:
        """Wait until the last copy exists."""
        if self._last is not None:
            self._last.result()

    def close(self) -> None:
        """End the thread."""
        if self._executor is not None:
            self._executor.shutdown(wait=True)


class BlockingAsyncStager(AsyncStager):
    """Copies to the memory of the host before it returns.

    cache_staged_state_dict: write into the copy that was made before, if all is of the same shape. type_check: not used.
    """

    _synchronize_after_execute: bool = False

    def __init__(self, cache_staged_state_dict: bool = False, type_check: bool = False):
        self.cache_staged_state_dict, self.type_check = cache_staged_state_dict, type_check
        self.state_dict_cache: dict | None = None

    def stage(self, state_dict: dict) -> dict:
        """Return the copy."""
        if not self.cache_staged_state_dict:
            return staged(state_dict)
        self.state_dict_cache = staged(state_dict, self.state_dict_cache)
        return self.state_dict_cache


def staged(value, into=None):
    """Return a copy in the host's memory of tensors in dicts, lists and tuples; other objects are copied by deepcopy.

    into: an earlier copy. Its tensors of the same shape and dtype are written to, and are those of the result.
    """
    if isinstance(value, Tensor):
        return _copied(value.detach(), into)
    if isinstance(value, ShardedTensor):
        shards = [type(shard)(staged(shard.tensor), shard.metadata) for shard in value.local_shards()]
        return ShardedTensor(value.metadata(), shards, value._process_group)
    if isinstance(value, dict):
        known = into if isinstance(into, dict) else {}
        return {key: staged(inner, known.get(key)) for key, inner in value.items()}
    if type(value) in (list, tuple):
        known = into if isinstance(into, (list, tuple)) and len(into) == len(value) else [None] * len(value)
        return type(value)(staged(inner, before) for inner, before in zip(value, known, strict=True))
    return copy.deepcopy(value)


def _copied(tensor: Tensor, into):
    plain = type(into) is type(tensor) is Tensor
    if plain and into.shape == tensor.shape and into.dtype == tensor.dtype:
        return into.copy_(tensor)
    return tensor.cpu().clone()
