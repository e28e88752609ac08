"""Handles that remove registered hooks."""

import warnings

from ..autograd._hooks import RemovableHandle as RemovableHandle


def unserializable_hook(f):
    """Mark a hook that must not be pickled with its tensor."""
    f.__torch_unserializable__ = True
    return f


def warn_if_has_hooks(tensor) -> None:
    """Warn if a tensor that is about to be pickled has hooks."""
    for hook in (getattr(tensor, "_backward_hooks", None) or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            warnings.warn(
                f"backward hook {hook!r} on tensor will not be serialized.  If this is expected, "
                "you can "
                "decorate the function with @torch.utils.hooks.unserializable_hook to suppress "
                "this "
                "warning",
                stacklevel=2,
            )
