"""Calls of a module with parameters and buffers that are not its own."""

import contextlib
import warnings

from ...tensor import Tensor

__all__ = ["functional_call"]


def _owner(module, path):
    """Return (the module that holds ``path``, the last part of the path)."""
    parent, _, name = path.rpartition(".")
    return module.get_submodule(parent), name


def _tied(module):
    """Return all names of each tensor in ``module``, by the identity of the tensor."""
    names = {}
    for named in (
        module.named_parameters(remove_duplicate=False),
        module.named_buffers(remove_duplicate=False),
    ):
        for name, tensor in named:
            names.setdefault(id(tensor), []).append(name)
    return {name: group for group in names.values() for name in group}


def _with_tied(module, given):
    """Return ``given``, extended by the other names of tensors that the module shares."""
    groups = _tied(module)
    extended = dict(given)
    for name, value in given.items():
        for other in groups.get(name, ()):
            if other not in given:
                extended[other] = value
            elif given[other] is not value:
                raise ValueError(
                    f"functional_call got multiple values for keys {sorted(groups[name])}, which are "
                    "tied. Consider using tie_weights=False"
                )
    return extended


@contextlib.contextmanager
def _reparametrize_module(module, parameters_and_buffers, *, tie_weights=False, strict=False):
    """Replace parameters and buffers of the module by the given tensors inside this block."""
    given = _with_tied(module, parameters_and_buffers) if tie_weights else dict(parameters_and_buffers)
    if strict:
        own = {name for name, _ in module.named_parameters(remove_duplicate=False)}
        own |= {name for name, _ in module.named_buffers(remove_duplicate=False)}
        _check_keys(module, own, given)
    replaced = []
    try:
        for name, value in given.items():
            holder, leaf = _owner(module, name)
            replaced.append((name, holder, leaf, _swap(holder, leaf, value)))
        yield
    finally:
        for name, holder, leaf, value in reversed(replaced):
            present = _swap(holder, leaf, value)
            # The module may have replaced a buffer during the call. The new tensor goes back to the caller's
            # dict.
            if name in parameters_and_buffers and present is not _ABSENT:
                parameters_and_buffers[name] = present


_ABSENT = object()


def _swap(holder, leaf, value):
    """Set ``holder.leaf`` to ``value`` (or remove it).

    Returns the former value, or _ABSENT if there was none.

    Raises:
        TypeError: one of the two is neither a tensor nor None.
    """
    if not leaf:
        raise KeyError('tensor name can\'t be empty string ""')
    _check_tensor(value)
    for store in (holder._parameters, holder._buffers):
        if leaf in store:
            before = store[leaf]
            if value is _ABSENT:
                del store[leaf]
            else:
                store[leaf] = value
            return before
    before = getattr(holder, leaf, _ABSENT)
    _check_tensor(before, f"attribute `{leaf}`: ")
    if value is _ABSENT:
        delattr(holder, leaf)
    else:
        setattr(holder, leaf, value)
    return before


def _check_tensor(value, text=""):
    if value is not None and value is not _ABSENT and not isinstance(value, Tensor):
        raise TypeError(f"{text}{value} is not an instance of torch.Tensor")


def _check_keys(module, own, given):
    """Check that the given names are exactly those of the module. RuntimeError otherwise."""
    lines = []
    for what, names in (("Unexpected", set(given) - own), ("Missing", own - set(given))):
        if names:
            lines.append(f"{what} key(s): {', '.join(repr(n) for n in sorted(names))}.")
    if lines:
        raise RuntimeError(
            "Error(s) in reparametrizing for {}:\n\t{}".format(module._get_name(), "\n\t".join(lines))
        )


def _functional_call(
    module, parameters_and_buffers, args=None, kwargs=None, *, tie_weights=True, strict=False
):
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    with _reparametrize_module(module, parameters_and_buffers, tie_weights=tie_weights, strict=strict):
        return module(*args, **(kwargs or {}))


def functional_call(
    module, parameters_and_buffers, args=None, kwargs=None, *, tie_weights=True, strict=False
):
    """Deprecated name of ``torch.func.functional_call``."""
    warnings.warn(
        "`torch.nn.utils.stateless.functional_call` is deprecated as of PyTorch 2.0 and will be removed in "
        "a future version of PyTorch. Please use `torch.func.functional_call` instead which is a drop-in "
        "replacement.",
        FutureWarning,
        stacklevel=2,
    )
    return _functional_call(
        module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict
    )
