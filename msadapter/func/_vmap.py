"""torch.func.vmap."""

from __future__ import annotations

import functools

from .. import ops
from ..ops._generator import Generator
from ..overrides import TorchFunctionMode
from ..random import default_generator
from ..tensor import Tensor
from ..utils._pytree import _broadcast_to_and_flatten, tree_flatten, tree_unflatten
from ._batched import BatchedTensor, Level, batch_of, is_batched, levels, wrap
from ._binding import bind, declaration_of
from ._looped import IN_PLACE, looped, tensors_in

_ERROR = (
    "vmap: called random operation while in randomness error mode. Please either use the 'same' or "
    "'different' randomness "
    "flags on vmap or perform the randomness operation out of vmap"
)


_SAME = "Vmap does not currently support same randomness with a batched tensor input. Please file an issue with functorch"
_OUT = (
    "vmap: We do not support calling out variants of random operations inside of vmap. Please use non-out variants as a "
    "workaround"
)
_IN_PLACE = (
    "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This will appear like same randomness. If this "
    "is necessary for your usage, please file an issue with functorch."
)


class _Randomness(TorchFunctionMode):
    """Random operators inside a vmap follow its argument ``randomness``."""

    def __init__(self, level: Level):
        self.level = level

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        declaration, inplace = declaration_of(function)
        if declaration is None or declaration.facts.random is None or not _draws(declaration, args, kwargs):
            return function(*args, **kwargs)
        if kwargs.get("out") is not None:
            raise RuntimeError(_OUT)
        if self.level.randomness == "error":
            raise RuntimeError(_ERROR)
        if self.level.randomness == "same":
            return self._same(declaration.facts.random, function, args, kwargs, inplace)
        return self._different(declaration.facts.random, function, args, kwargs, inplace)

    def _same(self, how, function, args, kwargs, inplace):
        """Draw the same numbers for all elements. RuntimeError if each element has a distribution of its own."""
        batched = [x for x in tensors_in((args, kwargs)) if is_batched(x, self.level)]
        if not batched:
            return function(*args, **kwargs)
        parameters = [x for x in batched if not (inplace and x is args[0])]
        if how in ("values", "parameters") or (inplace and parameters):
            raise RuntimeError(_SAME)
        generator = next(
            (x for x in (*args, *kwargs.values()) if isinstance(x, Generator)), default_generator
        )
        start = generator.get_state()

        def again(*a, **k):
            generator.set_state(start)
            return function(*a, **k)

        return looped(again, args, kwargs, self.level, inplace)

    def _different(self, how, function, args, kwargs, inplace):
        """Draw different numbers for each element: for the whole batch at once where numbers are drawn one by one."""
        level = self.level
        batched = [x for x in tensors_in((args, kwargs)) if is_batched(x, level)]
        if how == "sizes":
            sizes = (
                list(args[0])
                if args and not isinstance(args[0], int)
                else list(args) or list(kwargs.pop("size"))
            )
            return wrap(function([level.size, *sizes], **kwargs), level)
        if how in ("each", "values") and len(batched) == 1 and args and args[0] is batched[0]:
            result = function(args[0]._value, *args[1:], **kwargs)
            return args[0] if inplace else wrap(result, level)
        if inplace and not is_batched(args[0], level):
            raise RuntimeError(
                IN_PLACE.replace("arithmetic", function.__name__.rstrip("_")) if batched else _IN_PLACE
            )
        if batched:
            return looped(function, args, kwargs, level, inplace)
        return wrap(ops.stack([function(*args, **kwargs) for _ in range(level.size)]), level)


def _draws(declaration, args, kwargs) -> bool:
    """Return whether this call of a random operator draws numbers (see ``random`` in the docstring of ``op``)."""
    if not {"training", "train", "dropout_p", "_random_samples"} & {
        p.name for p in declaration.schema.parameters
    }:
        return True
    try:
        bound = bind(declaration, args, kwargs)
    except TypeError:
        return False  # the call will raise an error about its arguments
    training = bound.get("training", bound.get("train"))
    probability = bound.get("p", bound.get("dropout_p"))
    return (training is None or bool(training)) and probability != 0 and bound.get("_random_samples") is None


def _name(func) -> str:
    return getattr(func, "__name__", None) or repr(func)


def _checked_inputs(func, in_dims, args):
    """Return (leaves, mapped dim of each leaf, tree structure, batch size)."""
    where = f"vmap({_name(func)}, in_dims={in_dims}, ...)(<inputs>)"
    if not isinstance(in_dims, (int, tuple)) or isinstance(in_dims, bool):
        raise ValueError(
            f"{where}: expected `in_dims` to be int or a (potentially nested) tuple matching the "
            "structure of inputs, got: "
            f"{type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({_name(func)})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to "
            "vmap over a function with no inputs. The latter is unsupported."
        )
    leaves, spec = tree_flatten(tuple(args))
    dims = _broadcast_to_and_flatten(in_dims, spec)
    if dims is None:
        raise ValueError(
            f"{where}: in_dims is not compatible with the structure of `inputs`. in_dims has structure "
            f"{tree_flatten(in_dims)[1]} but inputs has structure {spec}."
        )
    dims = [_checked_dim(where, x, d) for x, d in zip(leaves, dims, strict=True)]
    sizes = [x.shape[d] for x, d in zip(leaves, dims, strict=True) if d is not None]
    if not sizes:
        raise ValueError(
            f"{where}: Expected at least one input to be mapped over, got in_dims that are all None."
        )
    if any(s != sizes[0] for s in sizes):
        raise ValueError(
            f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} "
            "for the mapped dimension"
        )
    return leaves, dims, spec, sizes[0]


def _checked_dim(where, x, d):
    if d is None:
        return None
    if not isinstance(d, int):
        raise ValueError(
            f"{where}: Got in_dim={d} for an input but in_dim must be either an integer dimension or None."
        )
    if not isinstance(x, Tensor):
        raise ValueError(
            f"{where}: Got in_dim={d} for an input but the input is of type {type(x)}. We cannot vmap "
            "over non-Tensor arguments, "
            "please use None as the respective in_dim"
        )
    if d < -x.ndim or d >= x.ndim:
        raise ValueError(
            f"{where}: Got in_dim={d} for some input, but that input is a Tensor of dimensionality "
            f"{x.ndim} so expected in_dim "
            f"to satisfy -{x.ndim} <= in_dim < {x.ndim}."
        )
    return d % x.ndim


def _results(func, outputs, out_dims, level):
    """Return the outputs of a batched run, with the batch dim where ``out_dims`` wants it."""
    leaves, spec = tree_flatten(outputs)
    dims = _broadcast_to_and_flatten(out_dims, spec)
    if dims is None:
        raise ValueError(
            f"vmap({_name(func)}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with "
            "the structure of `outputs`. "
            f"out_dims has structure {tree_flatten(out_dims)[1]} but outputs has structure {spec}."
        )
    made = []
    for out, d in zip(leaves, dims, strict=True):
        if not isinstance(out, Tensor):
            if d is not None:
                raise ValueError(
                    f"vmap({_name(func)}, ...): `{_name(func)}` must only return Tensors, got type "
                    f"{type(out)}. Did you mean to set "
                    "out_dims= to None for output?"
                )
            made.append(out)
        elif d is None:
            if is_batched(out, level):
                raise ValueError(
                    f"vmap({_name(func)}, ...): `{_name(func)}` can not return a BatchedTensor when out_dim is None"
                )
            made.append(out)
        else:
            made.append(_moved(batch_of(out, level), 0, d))
    return tree_unflatten(made, spec)


def _moved(x, source: int, target: int):
    """Return the tensor with a dim moved: the tensor itself if it is there already."""
    return x if source == target else ops.movedim(x, source, target)


def _check_randomness(randomness: str) -> None:
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(
            f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}"
        )


def over_tangents(func, basis: list, randomness: str):
    """Return ``func(basis)`` of each row of these tensors, which ``func`` takes as tangents only (see ``Level.of_tangents``)."""
    _check_randomness(randomness)
    leaves, dims, spec, size = _checked_inputs(func, 0, (basis,))
    level = Level(size, randomness, of_tangents=randomness != "different")
    return _run_at(level, func, leaves, dims, spec, 0, {})


def _run(func, leaves, dims, spec, size, out_dims, randomness, kwargs):
    return _run_at(Level(size, randomness), func, leaves, dims, spec, out_dims, kwargs)


def _run_at(level, func, leaves, dims, spec, out_dims, kwargs):
    levels.append(level)
    try:
        inside = [x if d is None else wrap(_moved(x, d, 0), level) for x, d in zip(leaves, dims, strict=True)]
        with _Randomness(level):
            outputs = func(*tree_unflatten(inside, spec), **kwargs)
    finally:
        levels.pop()
    return _results(func, outputs, out_dims, level)


def vmap(func, in_dims=0, out_dims=0, randomness="error", *, chunk_size=None):
    """Return a function that maps ``func`` over a dimension of its inputs.

    Args:
        in_dims: dimension of each input to map over (None: the input is the same for all), nested like the
        inputs.
        out_dims: position of the mapped dimension in the outputs.
        randomness: "error", "different" (every element draws its own numbers) or "same".
        chunk_size: the largest part of the batch that runs at once.
    """
    _check_randomness(randomness)
    if chunk_size is not None and not chunk_size > 0:
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def wrapped(*args, **kwargs):
        leaves, dims, spec, size = _checked_inputs(func, in_dims, args)
        if chunk_size is None or size <= chunk_size:
            return _run(func, leaves, dims, spec, size, out_dims, randomness, kwargs)
        parts = []
        for start in range(0, size, chunk_size):
            count = min(chunk_size, size - start)
            chunk = [
                x if d is None else ops.narrow(x, d, start, count) for x, d in zip(leaves, dims, strict=True)
            ]
            parts.append(_run(func, chunk, dims, spec, count, out_dims, randomness, kwargs))
        return _joined(parts, out_dims)

    return wrapped


def _joined(parts, out_dims):
    flat = [tree_flatten(p) for p in parts]
    spec = flat[0][1]
    dims = _broadcast_to_and_flatten(out_dims, spec)
    columns = zip(*(leaves for leaves, _ in flat), strict=True)
    return tree_unflatten(
        [c[0] if d is None else ops.cat(list(c), d) for c, d in zip(columns, dims, strict=True)], spec
    )


def inside() -> bool:
    """Return whether a vmap is running."""
    return bool(levels)


__all__ = ["BatchedTensor", "inside", "vmap"]
