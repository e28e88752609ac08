"""The derivatives of torch.func, computed with the ordinary autograd graph.

A transform makes new tensors from its inputs. If an input requires grad, the new tensor is connected to the
caller's graph, so that transforms can be nested and combined with autograd. Otherwise it is a leaf. Inside
vmap the new tensors are batched, so one graph of the whole batch holds the derivatives of every element.
"""

from __future__ import annotations

import contextlib
import functools

from .. import autograd, ops
from .._host import extensions
from .._host.native import load
from .._values.base import as_leaf
from ..autograd._tangents import is_leaf_of_program, laid_out, overlaps, paused, visible, with_tangent_of
from ..autograd.grad_mode import enable_grad
from ..tensor import Tensor
from ..utils._pytree import tree_flatten, tree_map, tree_unflatten
from ._batched import (
    fully_batched,
    innermost,
    is_batched,
    levels,
    rewrapped,
    tangent_inside,
    tangent_of_each,
)
from ._looped import looped
from ._vmap import over_tangents

_C = load()


_running = 0  # transforms whose function runs now, one inside of the other


@contextlib.contextmanager
def _counted():
    """Count a transform as running."""
    global _running
    _running += 1
    try:
        yield
    finally:
        _running -= 1


def active() -> bool:
    """Return whether the function of a transform runs: of a derivative, or of vmap."""
    return bool(_running) or any(level.is_transform for level in levels)


_INSTEAD = (
    "inside of a function being transformed by a functorch transform. This is unsupported, please attempt to use the functorch "
    "transforms (e.g. grad, vjp, jacrev, jacfwd, hessian) or call {}() outside of a function being transformed instead."
)
_REFUSED = {
    "requires_grad_": "You are attempting to call Tensor.requires_grad_() (or perhaps using torch.autograd.functional.* APIs) "
    + _INSTEAD.format("requires_grad_"),
    "retain_grad": "You are attempting to call Tensor.retain_grad() " + _INSTEAD.format("retain_grad"),
    "backward": "backward() called inside a functorch transform. This is not supported, please use functorch.grad or functorch.vjp "
    "instead or call backward() outside of functorch transforms.",
}
allowed: set[str] = set()  # names of _REFUSED that a program has allowed


def _refuse(name: str) -> None:
    """Raise RuntimeError if the function of a transform runs, because PyTorch refuses this method there."""
    if active() and name not in allowed:
        raise RuntimeError(_REFUSED[name])


extensions.refuse_in_transform.provide(_refuse)


def _own_leaf(x, wanted):
    """Return a tensor that is batched at these levels, whose plain tensor is a leaf with the values and the tangents of x."""
    with paused(*visible()):
        batched = fully_batched(x.detach(), wanted)
    leaf, inside = innermost(batched), innermost(x)
    tangents = [(level, tangent) for level in visible() if (tangent := level.get(inside)) is not None]
    leaf = as_leaf(leaf.clone() if tangents and overlaps(leaf) else leaf.detach())
    for level, tangent in tangents:
        with paused(level):
            level.put(leaf, laid_out(tangent_inside(tangent_of_each(tangent, x), batched), leaf))
            level.kept.append(leaf)
    return rewrapped(leaf, batched)


class _Start:
    """The inputs of one transform."""

    def __init__(self, tensors):
        self.outer = _C.is_grad_enabled()
        self.levels = [level for level in levels if not level.of_tangents]
        self.batched, self.plain = [], []
        for x in tensors:
            with enable_grad():
                batched = fully_batched(x, self.levels) if x.requires_grad else _own_leaf(x, self.levels)
                plain = innermost(batched)
                self.plain.append(plain.view_as(plain) if x.requires_grad else plain)
            self.batched.append(batched)
        self.inputs = [rewrapped(p, b) for p, b in zip(self.plain, self.batched, strict=True)]
        self._own = {_C.gradient_edge(p)[0] for p in self.plain if p.is_leaf}

    @contextlib.contextmanager
    def function_runs(self):
        """Record gradients, and count the transform as running."""
        with _counted(), enable_grad():
            yield

    def leads_outside(self, outputs) -> bool:
        """Return whether the graph of outputs reaches leaves of the program other than this transform's inputs."""
        todo = [x.grad_fn for x in outputs if x.grad_fn is not None]
        todo += [_C.gradient_edge(x)[0] for x in outputs if x.grad_fn is None and x.requires_grad]
        seen = set()
        while todo:
            node = todo.pop()
            if node is None or node in seen:
                continue
            seen.add(node)
            following = [n for n, _ in node.next_functions if n is not None]
            if not following and node not in self._own and is_leaf_of_program(node):
                return True
            todo.extend(following)
        return False

    def gradients(self, outputs, vectors, keep=False, recorded=None):
        """Return the gradients of the inputs.

        They are connected to the caller's graph if `recorded`, which is whether the caller records gradients.
        """
        recorded = self.outer if recorded is None else recorded
        pairs = [
            (innermost(o), innermost(v)) for o, v in zip(outputs, vectors, strict=True) if o.requires_grad
        ]
        if not pairs:
            return [ops.zeros_like(x) for x in self.batched]
        outs, vecs = zip(*pairs, strict=True)
        linked = recorded and (self.leads_outside(outs) or any(v.requires_grad for v in vecs))
        found = autograd.grad(
            outs, self.plain, vecs, retain_graph=keep or linked, create_graph=linked, allow_unused=True
        )
        made = [ops.zeros_like(p) if g is None else g for g, p in zip(found, self.plain, strict=True)]
        return [rewrapped(g, b) for g, b in zip(made, self.batched, strict=True)]

    def left(self, tree, recorded=None):
        """Return results for the caller.

        They are detached, unless their graph reaches tensors of the caller, and the caller records gradients.
        """
        recorded = self.outer if recorded is None else recorded

        def leave(x):
            if not isinstance(x, Tensor) or not x.requires_grad:
                return x
            plain = innermost(x)
            if recorded and self.leads_outside([plain]):
                return x
            return rewrapped(with_tangent_of(plain, plain.detach()), x)

        return tree_map(leave, tree)


def _differentiable(tree, where: str):
    leaves, spec = tree_flatten(tree)
    for x in leaves:
        if not isinstance(x, Tensor):
            raise ValueError(f"Thing passed to transform API must be Tensor, got {type(x)}")
        if not (x.dtype.is_floating_point or x.dtype.is_complex):
            raise RuntimeError("only Tensors of floating point dtype can require gradients")
    return leaves, spec


def _chosen(args, argnums):
    """Return the positions of the chosen arguments, after checking them."""
    numbers = (argnums,) if isinstance(argnums, int) else argnums
    if not isinstance(numbers, tuple):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    if not numbers:
        raise RuntimeError("argnums must be non-empty")
    for n in numbers:
        if not isinstance(n, int):
            raise RuntimeError(f"argnum must be int, got: {type(n)}")
        if not -len(args) <= n < len(args):
            raise RuntimeError(f"Got argnum={n}, but only {len(args)} positional inputs")
    numbers = [n % len(args) for n in numbers]
    if len(set(numbers)) != len(numbers):
        raise RuntimeError(f"argnums elements must be unique, got {tuple(numbers)}")
    return numbers


def _put(args, numbers, values) -> list:
    args = list(args)
    for n, v in zip(numbers, values, strict=True):
        args[n] = v
    return args


def grad_and_value(func, argnums=0, has_aux=False):
    """Return a function that computes (gradient with respect to the arguments ``argnums``, value) of
    ``func``.

    The value of ``func`` is a single number. With ``has_aux``, ``func`` returns (value, anything), and the
    result is (gradient, (value, anything)).
    """

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        numbers = _chosen(args, argnums)
        leaves, spec = _differentiable([args[n] for n in numbers], "grad")
        start = _Start(leaves)
        with start.function_runs():
            own = _put(args, numbers, tree_unflatten(start.inputs, spec))
            output = func(*own, **kwargs)
            output, aux = _split_aux(output, has_aux, "grad_and_value(f)(*args)")
            if not isinstance(output, Tensor):
                raise RuntimeError(
                    f"grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got {type(output)}"
                )
            if output.ndim:
                raise RuntimeError(
                    "grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got tensor with "
                    f"{output.ndim} dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
                )
            value = fully_batched(output, start.levels)
            found = start.gradients([value], [ops.ones_like(innermost(value))], keep=has_aux)
        found = tree_unflatten(start.left(found), spec)
        found = found[0] if isinstance(argnums, int) else tuple(found)
        output = start.left(output)
        return found, ((output, start.left(aux)) if has_aux else output)

    return wrapper


def grad(func, argnums=0, has_aux=False):
    """Return a function that computes the gradient of ``func``, which returns one number, for ``argnums``."""
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        found, value = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return wrapper


def _outputs(output, where: str):
    leaves, spec = tree_flatten(output)
    if not leaves or output is None:
        raise RuntimeError(
            f"{where}: Expected f to be a function that has non-empty output (got output = {output})"
        )
    for x in leaves:
        if not isinstance(x, Tensor):
            raise RuntimeError(
                f"{where}: expected f(*primals) to return only tensors, got unsupported type {type(x)}"
            )
    return leaves, spec


def _check_tensors(leaves, name: str) -> None:
    """Check the primals or tangents of a jvp.

    Raises:
        RuntimeError: there are none, or something else than tensors.
    """
    where = "jvp(f, primals, tangents)"
    if not leaves:
        raise RuntimeError(f"{where}: Expected {name} to contain at least one Tensor.")
    for x in leaves:
        if not isinstance(x, Tensor):
            raise RuntimeError(f"{where}: Expected {name} to only contain Tensors, got {type(x)}")


class _Star:
    def __repr__(self) -> str:
        return "*"


def _drawn(spec) -> str:
    """Return a tree structure as text, with a star for each leaf."""
    return repr(tree_unflatten([_Star()] * spec.num_leaves, spec))


def _split_aux(output, has_aux: bool, where: str):
    if not has_aux:
        return output, None
    if not (isinstance(output, tuple) and len(output) == 2):
        raise RuntimeError(
            f"{where}: output of function f should be a tuple: (output, aux) if has_aux is True"
        )
    _check_aux(output[1])
    return output


def _check_aux(aux) -> None:
    """Raise RuntimeError if what a function returns beside its output contains something else than tensors."""
    for x in tree_flatten(aux)[0]:
        if not isinstance(x, Tensor):
            raise RuntimeError(f"Expected tensors, got unsupported type {type(x)}")


def vjp(func, *primals, has_aux=False):
    """Return (func(*primals), vjp_fn).

    ``vjp_fn`` takes a cotangent with the structure of the output and returns its product with the Jacobian,
    one tensor for each input.
    """
    leaves, spec = _differentiable(primals, "vjp")
    start = _Start(leaves)
    with start.function_runs():
        output, aux = _split_aux(func(*tree_unflatten(start.inputs, spec)), has_aux, "vjp(f, *primals)")
        flat, out_spec = _outputs(output, "vjp(f, *primals)")
        values = [fully_batched(x, start.levels) for x in flat]

    def vjp_fn(*cotangents, retain_graph=True, create_graph=None):
        given = cotangents[0] if len(cotangents) == 1 else cotangents
        vectors, given_spec = tree_flatten(given)
        if given_spec != out_spec:
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of outputs "
                "to the function. "
                f"cotangents: {_drawn(given_spec)}, primal output: {_drawn(out_spec)}"
            )
        for v, x in zip(vectors, flat, strict=True):
            if v.shape != x.shape:
                raise RuntimeError(
                    f"Mismatch in shape: grad_output[0] has a shape of {v.shape} and output[0] has a "
                    f"shape of {x.shape}."
                )
        # A vmap that began later runs over cotangents only, and the graph has no such batch.
        for level in [level for level in reversed(levels) if level not in start.levels]:
            if any(is_batched(v, level) for v in vectors):
                return looped(vjp_fn, cotangents, {}, level, False)
        recorded = _C.is_grad_enabled()
        with enable_grad():
            own = [fully_batched(v, start.levels) for v in vectors]
            found = start.gradients(values, own, keep=True, recorded=recorded)
        made = tree_unflatten(start.left(found, recorded), spec)
        return tuple(made)

    output = start.left(output)
    return (output, vjp_fn, start.left(aux)) if has_aux else (output, vjp_fn)


def _primals_and_tangents(primals, tangents):
    """Return the tensors in the primals and in the tangents of a jvp, and the structure that they have in common."""
    if not isinstance(primals, tuple):
        raise RuntimeError(
            "jvp(f, primals, tangents): Expected primals to be a tuple. E.g. it should be valid to call f(*primals)."
        )
    leaves, spec = tree_flatten(primals)
    directions, tangent_spec = tree_flatten(tangents)
    if tangent_spec != spec:
        raise RuntimeError(
            "jvp(f, primals, tangents): Expected primals and tangents to have the same python structure. "
            "For example, if primals "
            "is a tuple of 3 tensors, tangents also must be. Got primals with structure "
            f"{spec} and tangents with structure {tangent_spec}"
        )
    _check_tensors(leaves, "primals")
    _check_tensors(directions, "tangents")
    return leaves, directions, spec


_INDEPENDENT = (
    "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. "
    "This is not allowed with strict=True."
)


def jvp(func, primals, tangents, *, strict=False, has_aux=False):
    """Return (func(*primals), J v) for the Jacobian J and the ``tangents`` v.

    It computes with dual tensors at a level of their own, so that ``no_grad`` does not stop a tangent, as in PyTorch.
    """
    leaves, directions, spec = _primals_and_tangents(primals, tangents)
    from ..autograd import forward_ad  # here: most programs have no dual tensors

    with forward_ad._level(), forward_ad._set_fwd_grad_enabled(True), _counted():
        inputs = [_dual(forward_ad.make_dual, x, v) for x, v in zip(leaves, directions, strict=True)]
        output, aux = _split_aux(func(*tree_unflatten(inputs, spec)), has_aux, "jvp(f, primals, tangents)")
        flat, out_spec = _outputs(output, "jvp(f, primals, tangents)")
        pairs = [forward_ad.unpack_dual(x) for x in flat]
        if strict and any(tangent is None for _, tangent in pairs):
            raise RuntimeError(_INDEPENDENT)
        made = [ops.zeros_like(primal) if tangent is None else tangent for primal, tangent in pairs]
        aux = tree_map(lambda x: forward_ad.unpack_dual(x)[0] if isinstance(x, Tensor) else x, aux)
    output = tree_unflatten([primal for primal, _ in pairs], out_spec)
    made = tree_unflatten(made, out_spec)
    return (output, made, aux) if has_aux else (output, made)


def _dual(make_dual, primal, tangent):
    """Return ``primal`` with a tangent.

    Inside of vmap the tensor of the whole batch gets that of the whole batch. At levels at which only the tangent is batched, the
    plain tensor inside has a batched tangent, so that a function can write to other tensors that are not batched.
    """
    whole = innermost(primal)
    if overlaps(whole):  # elements of one place have tangents of their own
        whole = whole.clone()
    return rewrapped(make_dual(whole, tangent_inside(tangent, primal)), primal)


def _refuse_complex(name: str, tree, what: str) -> None:
    """Raise RuntimeError if the inputs or outputs of a function contain a complex tensor, because a Jacobian is of real numbers."""
    for i, x in enumerate(tree_flatten(tree)[0]):
        if isinstance(x, Tensor) and x.is_complex():
            raise RuntimeError(
                f"{name}: Expected all {what} to be real but received complex tensor at flattened input idx: {i}"
            )


def jacrev(func, argnums=0, *, has_aux=False, chunk_size=None, _preallocate_and_copy=False):
    """Return a function that computes the Jacobian of ``func``, output.shape + input.shape for each pair.

    It takes positional arguments alone, as in PyTorch. The rows are computed one after the other. ``chunk_size`` has no effect.
    """
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func)
    def wrapper(*args):
        numbers = _chosen(args, argnums)

        def of_chosen(*values):
            return func(*_put(args, numbers, values))

        _refuse_complex("jacrev", args, "inputs")
        result = vjp(of_chosen, *(args[n] for n in numbers), has_aux=has_aux)
        output, pull = result[:2]
        _refuse_complex("jacrev", output, "outputs")
        flat, out_spec = tree_flatten(output)
        jacobians = [_rows(pull, flat, i, out_spec) for i in range(len(flat))]
        jacobians = [j[0] if isinstance(argnums, int) else j for j in jacobians]
        made = tree_unflatten(jacobians, out_spec)
        return (made, result[2]) if has_aux else made

    return wrapper


def _rows(pull, flat, i, out_spec):
    """Return the Jacobian of one output with respect to every input."""
    out, rows = flat[i], []
    for j in range(out.numel()):
        one = ops.zeros(out.shape, dtype=out.dtype, device=out.device)
        one.reshape(-1)[j] = 1
        vectors = [
            one if k == i else ops.zeros(x.shape, dtype=x.dtype, device=x.device) for k, x in enumerate(flat)
        ]
        leaves, spec = tree_flatten(pull(tree_unflatten(vectors, out_spec)))
        rows.append(leaves)
    if not rows:
        raise RuntimeError("jacrev: an output has no elements")
    made = []
    for column in zip(*rows, strict=True):
        made.append(ops.reshape(ops.stack(list(column)), [*out.shape, *column[0].shape]))
    return tree_unflatten(made, spec)


def jacfwd(func, argnums=0, has_aux=False, *, randomness="error"):
    """Return a function that computes what that of ``jacrev`` does, with the forward mode: a jvp in each direction, in one vmap.

    Args:
        argnums: as in ``jacrev``; None stands for all arguments.
        randomness: as in ``vmap``, for functions that draw random numbers.
    """

    @functools.wraps(func)
    def wrapper(*args):
        numbers = range(len(args)) if argnums is None else _chosen(args, argnums)

        def of_chosen(*values):
            return func(*_put(args, numbers, values))

        _refuse_complex("jacfwd", args, "inputs")
        primals = tuple(args[n] for n in numbers)
        leaves, spec = tree_flatten(primals)

        def push(basis):
            output, *rest = jvp(of_chosen, primals, tree_unflatten(basis, spec), has_aux=has_aux)
            _refuse_complex("jacfwd", output, "outputs")
            return rest

        pushed, *aux = over_tangents(push, _standard_basis(leaves), randomness)
        flat, out_spec = tree_flatten(pushed)
        jacobians = [tree_unflatten(_by_input(columns, leaves), spec) for columns in flat]
        made = tree_unflatten([j[0] if isinstance(argnums, int) else j for j in jacobians], out_spec)
        return (made, tree_map(lambda x: x[0], aux[0])) if has_aux else made

    return wrapper


def _standard_basis(leaves) -> list:
    """Return, for each tensor, its part of all unit vectors of the tensors together: n x its shape, for n numbers in all."""
    sizes = [x.numel() for x in leaves]
    made, start = [], 0
    for x, size in zip(leaves, sizes, strict=True):
        rows = ops.zeros(sum(sizes), size, dtype=x.dtype, device=x.device)
        rows[start : start + size].fill_diagonal_(1)
        made.append(rows.view(sum(sizes), *x.shape))
        start += size
    return made


def _by_input(columns, leaves) -> list:
    """Return the derivatives of one output by each input: output.shape + input.shape, from n x output.shape for all of them."""
    parts = ops.split(ops.movedim(columns, 0, -1), [x.numel() for x in leaves], -1)
    return [part.reshape([*part.shape[:-1], *x.shape]) for part, x in zip(parts, leaves, strict=True)]


def hessian(func, argnums=0):
    """Return a function that computes the Hessian of ``func``."""
    return jacfwd(jacrev(func, argnums), argnums)


def linearize(func, *primals):
    """Return (func(*primals), a function that multiplies tangents by the Jacobian at ``primals``)."""
    output = func(*primals)

    def jvp_fn(*tangents):
        return jvp(func, primals, tangents)[1]

    return output, jvp_fn
