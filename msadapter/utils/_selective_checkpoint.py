"""Selective activation checkpointing: a policy decides which results a checkpointed region keeps."""

from __future__ import annotations

import enum

from .. import ops
from .._aten import OpOverload, OpOverloadPacket
from ..tensor import Tensor
from ._python_dispatch import TorchDispatchMode


class CheckpointPolicy(enum.Enum):
    """What happens to the results of an operator in a checkpointed region.

    The first two keep them, and the last two compute them again. Without torch.compile, MUST and PREFER are the same.
    """

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3


class SelectiveCheckpointContext:
    """The first argument of a policy: whether the region runs for the second time, and what the operator returned."""

    def __init__(self, *, is_recompute: bool, op_output=None):
        self.is_recompute, self.op_output = is_recompute, op_output


class _Kept:
    """A kept value, and the version that its memory had then."""

    def __init__(self, val):
        self.val = val.detach() if isinstance(val, Tensor) else val
        self.version = self.val._version if isinstance(val, Tensor) else None

    def get(self, allow_mutation: bool):
        if self.version is not None and self.val._version != self.version and not allow_mutation:
            raise RuntimeError(
                "Tensor cached during selective activation checkpoint has been mutated. Give "
                "allow_cache_entry_mutation=True to allow this."
            )
        return self.val


_USED = object()  # stands for a result that a backward pass has taken


# What a policy is not asked about. The checkpoint itself detaches what it saves.
_IGNORED = frozenset({ops.aten.detach.default})


class _CachingTorchDispatchMode(TorchDispatchMode):
    """Asks the policy in the first run, and keeps results.

    ``storage`` has an entry for every call of an operator: the kept result, a list of several, or None if they are recomputed.
    """

    def __init__(self, policy_fn, storage: dict[OpOverload, list]):
        self.policy_fn, self.storage = policy_fn, storage

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        if func in _IGNORED:
            return out
        context = SelectiveCheckpointContext(is_recompute=False, op_output=out)
        policy = self.policy_fn(context, func, *args, **kwargs)
        kept = policy in (True, CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE)
        one = [_Kept(v) for v in out] if isinstance(out, (tuple, list)) else _Kept(out)
        self.storage.setdefault(func, []).append(one if kept else None)
        return out


class _CachedTorchDispatchMode(TorchDispatchMode):
    """Uses the kept results in the second run. The operators are recorded as if they had computed them.

    The policy is an argument because it is one in PyTorch; its decisions are in the storage.
    """

    def __init__(self, policy_fn, storage: dict[OpOverload, list], allow_cache_entry_mutation: bool = False):
        self.storage, self.allow_cache_entry_mutation = storage, allow_cache_entry_mutation
        self.calls: dict[OpOverload, int] = {}

    def __enter__(self):
        self.calls.clear()
        return super().__enter__()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func in _IGNORED:
            return func(*args, **kwargs)
        number = self.calls[func] = self.calls.get(func, -1) + 1
        entries = self.storage.get(func, [])
        if number >= len(entries):
            raise RuntimeError(
                f"{func} invocation index {number} encountered during backward but not found in storage. This can happen "
                "if the operations in the checkpointed region are nondeterministic or depend on global state that "
                "changed between forward and backward."
            )
        kept = entries[number]
        if kept is None:
            return func(*args, **kwargs)
        if kept is _USED:
            raise RuntimeError(
                "Trying to backward an extra time. You are only allowed to backward once on any region computed under "
                "selective activation checkpoint."
            )
        entries[number] = _USED
        if isinstance(kept, list):
            return tuple(v.get(self.allow_cache_entry_mutation) for v in kept)
        return kept.get(self.allow_cache_entry_mutation)


def _policy_of(ops: list):
    """Return the policy that keeps the results of these operators. ValueError for what is not an operator."""
    for op in ops:
        if isinstance(op, OpOverload):
            continue
        hint = (
            "Please update the OpOverloadPacket to a specific OpOverload. For example, use "
            "torch.ops.aten.mm.default instead of torch.ops.aten.mm."
            if isinstance(op, OpOverloadPacket)
            else ""
        )
        raise ValueError(
            f"Expected op in `op_list` to be an OpOverload but got: {op} of type {type(op)}. {hint}"
        )

    def policy(context, op, *args, **kwargs):
        return CheckpointPolicy.MUST_SAVE if op in ops else CheckpointPolicy.PREFER_RECOMPUTE

    return policy


def create_selective_checkpoint_contexts(policy_fn_or_list, allow_cache_entry_mutation: bool = False):
    """Return the two contexts of a selective checkpoint, for ``checkpoint(..., context_fn=...)``.

    ``policy_fn_or_list`` is a function ``(context, op, *args, **kwargs) -> CheckpointPolicy``, or the list of operators
    whose results are kept. A kept result that is written later is an error unless ``allow_cache_entry_mutation``.
    """
    if isinstance(policy_fn_or_list, list):
        policy_fn = _policy_of(policy_fn_or_list)
    elif callable(policy_fn_or_list):
        policy_fn = policy_fn_or_list
    else:
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    storage: dict[OpOverload, list] = {}
    return (
        _CachingTorchDispatchMode(policy_fn, storage),
        _CachedTorchDispatchMode(policy_fn, storage, allow_cache_entry_mutation),
    )
