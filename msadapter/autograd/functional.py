"""torch.autograd.functional: Jacobians and Hessians, and their products with vectors."""

from __future__ import annotations

from .. import ops
from ..tensor import Tensor
from ._passes import grad
from .grad_mode import enable_grad

__all__ = ["vjp", "jvp", "vhp", "hvp", "jacobian", "hessian"]
_STRICT = (
    "The outputs must be computed in a differentiable manner from the input when running in strict mode."
)


def _tuple(value, name: str, where: str) -> tuple:
    """Return tensors as a tuple. TypeError for any other value."""
    if isinstance(value, Tensor):
        return (value,)
    given = f"The {'inputs' if name == 'inputs' else name} given to {where}"
    if name == "outputs of the user-provided function":
        given = f"The outputs of the user-provided function given to {where}"
    if not isinstance(value, tuple):
        raise TypeError(
            f"{given} must be either a Tensor or a tuple of Tensors but the given {name} has type {type(value)}."
        )
    for i, x in enumerate(value):
        if not isinstance(x, Tensor):
            raise TypeError(
                f"{given} must be either a Tensor or a tuple of Tensors but the value at index {i} has type "
                f"{type(x)}."
            )
    return value


def _inputs(inputs, create_graph: bool, needs_graph: bool = True) -> tuple:
    """Return inputs for a computation with a graph of its own.

    They are connected to the caller's graph only if ``create_graph`` is set.
    """
    made = []
    for x in inputs:
        if create_graph and x.requires_grad:
            made.append(x.view_as(x))
        else:
            made.append(x.detach().requires_grad_(needs_graph))
    return tuple(made)


def _run(func, inputs, where: str):
    outputs = func(*inputs)
    alone = isinstance(outputs, Tensor)
    return _tuple(outputs, "outputs of the user-provided function", where), alone


def _result(tensors: tuple, create_graph: bool) -> tuple:
    return tensors if create_graph else tuple(x.detach() for x in tensors)


def _check_outputs(outputs, strict: bool, what: str = "outputs") -> None:
    if not strict:
        return
    for i, out in enumerate(outputs):
        if not out.requires_grad:
            if what == "jacobian":
                raise RuntimeError(_independent_hessian(i))
            if what == "gradients":
                raise RuntimeError(
                    f"The gradient with respect to input {i} is independent of the inputs of the user-provided "
                    "function. This is not allowed in strict mode."
                )
            raise RuntimeError(
                f"Output {i} of the user-provided function does not require gradients. {_STRICT}"
            )


def _check_vector(v, others, empty_text: str) -> tuple:
    """Return the vector of a product, checked against the shapes of ``others``.

    It may be left out if ``others`` is one tensor with one element; it is then 1.
    """
    if v is None:
        if len(others) != 1 or others[0].numel() != 1:
            raise RuntimeError(f"The vector v can only be None if {empty_text}.")
        return (ops.ones_like(others[0].detach()),)
    if len(v) != len(others):
        if len(others) == 1:
            raise RuntimeError("The given v should contain a single Tensor.")
        raise RuntimeError(f"v is a tuple of invalid length: should be {len(others)} but got {len(v)}.")
    for i, (a, b) in enumerate(zip(v, others, strict=True)):
        if a.shape != b.shape:
            entry = f"Entry {i} in " if len(others) > 1 else ""
            raise RuntimeError(f"{entry}v has invalid size: should be {b.shape} but got {a.shape}.")
    return v


def _grads(outputs, inputs, vectors=None, *, create_graph: bool) -> tuple:
    """Return the gradients of outputs that have a graph. Inputs that do not matter get None."""
    if vectors is None:
        vectors = (None,) * len(outputs)
    pairs = [(o, v) for o, v in zip(outputs, vectors, strict=True) if o is not None and o.requires_grad]
    if not pairs:
        return (None,) * len(inputs)
    outs, vecs = zip(*pairs, strict=True)
    return grad(outs, inputs, vecs, allow_unused=True, create_graph=create_graph, retain_graph=True)


def _independent_jacobian(i: int) -> str:
    return (
        f"The jacobian of the user-provided function is independent of input {i}. This is not allowed in strict mode "
        "when create_graph=True."
    )


def _independent_hessian(i: int) -> str:
    return (
        "While computing the hessian, found that the jacobian of the user-provided function with respect to input "
        f"{i} is independent of the input. This is not allowed in strict mode. You should ensure that your function "
        "is twice differentiable and that the jacobian depends on the inputs (this would be violated by a linear "
        "function for example)."
    )


def _filled(grads, like, strict: bool, create_graph: bool, stage: str) -> tuple:
    """Replace missing gradients by zeros. In strict mode they raise RuntimeError."""
    made = []
    for i, (g, x) in enumerate(zip(grads, like, strict=True)):
        if g is None:
            if strict and stage == "back":
                raise RuntimeError(
                    f"The output of the user-provided function is independent of input {i}. This is not allowed in "
                    "strict mode."
                )
            if strict and stage == "back_trick":
                raise RuntimeError(
                    f"The gradient with respect to the input is independent of entry {i} in the grad_outputs when "
                    "using the double backward trick to compute forward mode gradients. This is not allowed in "
                    "strict mode."
                )
            if strict:
                raise RuntimeError(_independent_hessian(i))
            g = ops.zeros_like(x)
        elif strict and create_graph and not g.requires_grad:
            if "double" in stage:
                raise RuntimeError(
                    f"The hessian of the user-provided function is independent of input {i}. This is not allowed in "
                    "strict mode when create_graph=True."
                )
            raise RuntimeError(_independent_jacobian(i))
        made.append(g)
    return tuple(made)


def _unpacked(alone: bool, tensors: tuple):
    return tensors[0] if alone else tensors


def vjp(func, inputs, v=None, create_graph=False, strict=False):
    """Return (func(inputs), v^T J) for the Jacobian J. ``v`` has the shapes of the outputs.

    Inputs without influence get zeros, or raise RuntimeError under ``strict``. The result can be
    differentiated with ``create_graph``.
    """
    with enable_grad():
        one = isinstance(inputs, Tensor)
        own = _inputs(_tuple(inputs, "inputs", "vjp"), create_graph)
        outputs, alone = _run(func, own, "vjp")
        _check_outputs(outputs, strict)
        v = None if v is None else _inputs(_tuple(v, "v", "vjp"), create_graph, False)
        v = _check_vector(
            v, outputs, "the user-provided function returns a single Tensor with a single element"
        )
    found = _grads(outputs, own, v, create_graph=create_graph)
    found = _filled(found, own, strict, create_graph, "back")
    outputs, found = _result(outputs, create_graph), _result(found, create_graph)
    return _unpacked(alone, outputs), _unpacked(one, found)


def jvp(func, inputs, v=None, create_graph=False, strict=False):
    """Return (func(inputs), J v) for the Jacobian J. ``v`` has the shapes of the inputs.

    The product is computed by differentiating u -> J^T u.
    """
    with enable_grad():
        own = _inputs(_tuple(inputs, "inputs", "jvp"), create_graph)
        v = None if v is None else _inputs(_tuple(v, "v", "jvp"), create_graph, False)
        v = _check_vector(
            v, own, "the input to the user-provided function is a single Tensor with a single element"
        )
        outputs, alone = _run(func, own, "jvp")
        _check_outputs(outputs, strict)
        dummies = tuple(ops.zeros_like(o.detach()).requires_grad_() for o in outputs)
        back = _filled(_grads(outputs, own, dummies, create_graph=True), own, strict, create_graph, "back")
        _check_outputs(back, strict, "gradients")
    found = _grads(back, dummies, v, create_graph=create_graph)
    found = _filled(found, outputs, strict, create_graph, "back_trick")
    outputs, found = _result(outputs, create_graph), _result(found, create_graph)
    return _unpacked(alone, outputs), _unpacked(alone, found)


def _check_scalar(outputs, alone: bool, where: str) -> None:
    if not alone:
        raise RuntimeError(f"The function given to {where} should return a single Tensor")
    if outputs[0].numel() != 1:
        raise RuntimeError(
            f"The Tensor returned by the function given to {where} should contain a single element"
        )


def _second(func, inputs, v, create_graph, strict, where: str):
    """Return the value, the inputs, the vector and the first gradient with its graph, for vhp and hvp."""
    one = isinstance(inputs, Tensor)
    own = _inputs(_tuple(inputs, "inputs", where), create_graph)
    v = None if v is None else _inputs(_tuple(v, "v", where), create_graph, False)
    v = _check_vector(
        v, own, "the input to the user-provided function is a single Tensor with a single element"
    )
    outputs, alone = _run(func, own, where)
    _check_scalar(outputs, alone, where)
    _check_outputs(outputs, strict)
    first = _filled(_grads(outputs, own, create_graph=True), own, strict, False, "back")
    _check_outputs(first, strict, "jacobian")
    return one, own, v, outputs, first


def vhp(func, inputs, v=None, create_graph=False, strict=False):
    """Return (func(inputs), v^T H) for the Hessian H of a function that returns a single number."""
    with enable_grad():
        one, own, v, outputs, first = _second(func, inputs, v, create_graph, strict, "vhp")
    found = _grads(first, own, v, create_graph=create_graph)
    found = _filled(found, own, strict, create_graph, "double_back")
    return _result(outputs, create_graph)[0], _unpacked(one, _result(found, create_graph))


def hvp(func, inputs, v=None, create_graph=False, strict=False):
    """Return (func(inputs), H v) for the Hessian H of a function that returns a single number."""
    with enable_grad():
        one, own, v, outputs, first = _second(func, inputs, v, create_graph, strict, "hvp")
        dummies = tuple(ops.zeros_like(x.detach()).requires_grad_() for x in own)
        double = _filled(
            _grads(first, own, dummies, create_graph=True), own, strict, create_graph, "double_back"
        )
        _check_outputs(double, strict, "gradients")
    found = _grads(double, dummies, v, create_graph=create_graph)
    found = _filled(found, own, strict, create_graph, "double_back_trick")
    return _result(outputs, create_graph)[0], _unpacked(one, _result(found, create_graph))


def _check_strategy(name, create_graph, strict, vectorize, strategy) -> None:
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your function has more '
            'outputs than inputs, "forward-mode" tends to be more performant. Otherwise, prefer to use '
            '"reverse-mode".'
        )
    both = "are not supported together"
    if strategy == "forward-mode":
        if create_graph:
            raise NotImplementedError(
                f'torch.autograd.functional.jacobian: `create_graph=True` and `strategy="forward-mode"` {both} '
                '(yet). Please either set `create_graph=False` or `strategy="reverse-mode"`.'
            )
        if strict:
            raise RuntimeError(
                f'torch.autograd.functional.jacobian: `strict=True` and `strategy="forward-mode"` {both} (yet). '
                'Please either set `strict=False` or `strategy="reverse-mode"`.'
            )
        if not vectorize:
            raise NotImplementedError(
                "Computing Jacobian using forward-AD or forward-over-reverse Hessian isonly implemented for "
                "`vectorize=True`."
            )
    if strict and vectorize:
        raise RuntimeError(
            f"torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` {both}. Please either set "
            "`strict=False` or `vectorize=False`."
        )


def _rows(out, i: int, inputs, strict: bool, create_graph: bool) -> tuple:
    """Return the Jacobian of one output: a tensor of shape out.shape + input.shape for each input."""
    rows: list[list[Tensor]] = [[] for _ in inputs]
    flat = out.reshape(-1)
    for j in range(out.numel()):
        found = _grads((flat[j],), inputs, create_graph=create_graph)
        for k, (g, x) in enumerate(zip(found, inputs, strict=True)):
            if g is None:
                if strict:
                    raise RuntimeError(
                        f"Output {i} of the user-provided function is independent of input {k}. This is not allowed "
                        "in strict mode."
                    )
                g = ops.zeros_like(x)
            elif strict and create_graph and not g.requires_grad:
                raise RuntimeError(_independent_jacobian(k))
            rows[k].append(g)
    return tuple(ops.stack(r).reshape([*out.shape, *x.shape]) for r, x in zip(rows, inputs, strict=True))


def jacobian(func, inputs, create_graph=False, strict=False, vectorize=False, strategy="reverse-mode"):
    """Return the Jacobian of ``func``.

    One output and one input give a tensor of shape output.shape + input.shape. Several outputs give a tuple,
    and several inputs a tuple inside of it. ``vectorize`` and ``strategy`` have no effect: the rows are
    computed one after the other in reverse mode.
    """
    _check_strategy("jacobian", create_graph, strict, vectorize, strategy)
    with enable_grad():
        one = isinstance(inputs, Tensor)
        own = _inputs(_tuple(inputs, "inputs", "jacobian"), create_graph)
        outputs, alone = _run(func, own, "jacobian")
        _check_outputs(outputs, strict)
        made = tuple(_rows(out, i, own, strict, create_graph) for i, out in enumerate(outputs))
    made = tuple(_unpacked(one, _result(row, create_graph)) for row in made)
    return _unpacked(alone, made)


def hessian(
    func, inputs, create_graph=False, strict=False, vectorize=False, outer_jacobian_strategy="reverse-mode"
):
    """Return the Hessian of a function that returns a single number.

    One input gives a tensor of shape input.shape + input.shape; several inputs give a tuple of tuples.
    """
    one = isinstance(inputs, Tensor)
    inputs = _tuple(inputs, "inputs", "hessian")
    if outer_jacobian_strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')

    def gradient(*own):
        outputs, alone = _run(func, own, "hessian")
        _check_scalar(outputs, alone, "hessian")
        _check_outputs(outputs, strict)
        first = _filled(_grads(outputs, own, create_graph=True), own, False, True, "back")
        _check_outputs(first, strict, "jacobian")
        return first

    made = jacobian(
        gradient, inputs, create_graph=create_graph, strict=strict, vectorize=vectorize,
        strategy=outer_jacobian_strategy,
    )  # fmt: skip
    return made[0][0] if one else made
