"""torch._C._functorch: what programs ask about the tensors and levels of vmap, under the names of PyTorch's native module.

The derivatives of torch.func have no tensors of their own here (``func/_derivatives.py``), so the names for those are missing.
"""

from __future__ import annotations

from ..func import _derivatives
from ..func._batched import Level, is_batched, levels, wrap
from ..func._looped import Fallback
from ..ops import flatten, movedim, unflatten


def _set_vmap_fallback_enabled(enabled: bool) -> None:
    """Set whether operators without a rule run once for each element of a batch. If not, they raise RuntimeError."""
    Fallback.enabled = bool(enabled)


def _is_vmap_fallback_enabled() -> bool:
    """Return whether operators without a rule run once for each element of a batch."""
    return Fallback.enabled


def _set_vmap_fallback_warning_enabled(enabled: bool) -> None:
    """Set whether operators warn when they run once for each element of a batch."""
    Fallback.warns = bool(enabled)


def set_inplace_requires_grad_allowed(allowed: bool) -> None:
    """Set whether ``requires_grad_`` may be called inside of a function that torch.func transforms."""
    (_derivatives.allowed.add if allowed else _derivatives.allowed.discard)("requires_grad_")


def get_inplace_requires_grad_allowed() -> bool:
    """Return whether ``requires_grad_`` may be called inside of a function that torch.func transforms."""
    return "requires_grad_" in _derivatives.allowed


def is_batchedtensor(tensor) -> bool:
    """Return whether a tensor is that of a function inside of vmap."""
    return is_batched(tensor)


def get_unwrapped(tensor):
    """Return the tensor with the whole batch."""
    if not is_batched(tensor):
        raise RuntimeError("No wrappers present!")
    return tensor._value


def maybe_get_bdim(tensor) -> int:
    """Return the place of the batch dim, which is 0 for every batched tensor, and -1 for others."""
    return 0 if is_batched(tensor) else -1


def maybe_get_level(tensor) -> int:
    """Return the number of the vmap, from 1 for the outermost one; -1 for a tensor that is not batched, or whose vmap has ended."""
    if not is_batched(tensor) or tensor._level not in levels:
        return -1
    return levels.index(tensor._level) + 1


def _vmap_increment_nesting(batch_size: int, randomness: str) -> int:
    """Begin a vmap and return its number."""
    levels.append(Level(int(batch_size), randomness))
    return len(levels)


def _vmap_decrement_nesting() -> int:
    """End the innermost vmap and return its number."""
    levels.pop()
    return len(levels) + 1


def _add_batch_dim(tensor, dim: int, level: int):
    """Return the tensor inside of a vmap whose batch is dim ``dim``."""
    return wrap(movedim(tensor, dim, 0), levels[level - 1])


def _remove_batch_dim(tensor, level: int, batch_size: int, out_dim: int):
    """Return the tensor outside of a vmap, with its batch as dim ``out_dim``. One that is not batched is repeated."""
    if is_batched(tensor, levels[level - 1]):
        return movedim(tensor._value, 0, out_dim)
    sizes = list(tensor.shape)
    sizes.insert(out_dim % (len(sizes) + 1), batch_size)
    return tensor.unsqueeze(out_dim).expand(sizes)


def _unwrap_batched(tensor, level: int):
    """Return the whole batch and the place of its dim; the tensor and None if it is not batched by this vmap."""
    if is_batched(tensor, levels[level - 1]):
        return tensor._value, 0
    return tensor, None


def reshape_dim_into(source: int, target: int, x):
    """Merge dim ``source`` into dim ``target`` of what remains without it."""
    source %= x.ndim
    target %= x.ndim - 1
    return flatten(movedim(x, source, target), target, target + 1)


def reshape_dim_outof(source: int, size: int, x):
    """Split dim ``source`` into one of ``size`` elements and the rest."""
    source %= x.ndim
    if x.shape[source] % size:
        raise RuntimeError(f"dim {source} of size {x.shape[source]} cannot be divided by {size}")
    return unflatten(x, source, [size, x.shape[source] // size])
