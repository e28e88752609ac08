"""torch.autograd.gradcheck: compare gradients with finite differences.

A complex number counts as a pair of real numbers, so all Jacobians that are compared are real. They are float64 on the
CPU whatever the device of the inputs, because an accelerator may not compute in float64.
"""

from __future__ import annotations

import functools
import sys
import types
import warnings
from collections.abc import Iterable

from .. import ops
from .._host import extensions
from .._values.dtype import float64
from ..ops._generator import Generator
from ..tensor import Tensor
from . import forward_ad
from ._functions import UndefinedGrad
from ._passes import grad
from .function import is_sparse
from .grad_mode import enable_grad

__all__ = ["gradcheck", "gradgradcheck", "GradcheckError"]


class GradcheckError(RuntimeError):
    """The gradients are wrong, or differ from run to run."""


def _tuple(x) -> tuple:
    return tuple(x) if isinstance(x, (tuple, list)) else (x,)


def _continuous(x) -> bool:
    return isinstance(x, Tensor) and (x.dtype.is_floating_point or x.dtype.is_complex)


def _reals(x: Tensor) -> Tensor:
    """Return the numbers of a tensor as a float64 vector on the CPU. A complex number gives real and imaginary part.

    Those of a sparse tensor are its stored values.
    """
    x = _stored(x).detach()
    x = ops.view_as_real(x.contiguous()) if x.dtype.is_complex else x
    return x.reshape(-1).to("cpu", float64)


def _stored(x: Tensor) -> Tensor:
    return x._v if is_sparse(x) else x


def _like(vector: Tensor, x: Tensor) -> Tensor:
    """Return a tensor like ``x`` from such a vector. This is the inverse of ``_reals``."""
    if is_sparse(x):
        return x._with(_like(vector, x._v))
    if not x.dtype.is_complex:
        return vector.to(x.device, x.dtype).reshape(x.shape)
    return ops.view_as_complex(vector.to(x.device, x.dtype.to_real()).reshape([*x.shape, 2]))


def _tangent_like(vector: Tensor, x: Tensor) -> Tensor:
    """The same with memory of its own, because functions may ask whether a tangent is a view."""
    return _like(vector, x).clone()


def _moved(func, inputs, index: int, direction) -> list[Tensor]:
    """Return the continuous outputs, after ``direction`` was added to one input.

    The input is written in place and restored, because ``func`` may also use it without being given it.
    """
    x = inputs[index]
    data = _stored(x).data
    before = data.clone()
    data.copy_(_like(_reals(x) + direction, data).detach())
    try:
        with enable_grad():
            outputs = _tuple(func(*inputs))
        return [o.detach().clone() for o in outputs if _continuous(o)]
    finally:
        data.copy_(before)


def _check_alike(a: Tensor, b: Tensor, eps: float) -> None:
    for what, one, other in (("shape", a.shape, b.shape), ("dtype", a.dtype, b.dtype)):
        if one != other:
            raise AssertionError(
                f"Expected `func` to return outputs with the same {what} when inputs are perturbed by {eps}, but got: {what}s "
                f"{one} and {other}."
            )


def _slopes(func, inputs, index: int, direction: Tensor, eps: float, outputs=None) -> list[Tensor]:
    """Return the directional derivatives of all outputs, computed as central differences.

    They must have the shapes and dtypes of ``outputs``, those at the inputs themselves, if these are given.
    """
    ahead = _moved(func, inputs, index, direction * eps)
    behind = _moved(func, inputs, index, direction * -eps)
    for made in (ahead, behind):
        for o, moved in zip(outputs or ahead, made, strict=True):
            _check_alike(o, moved, eps)
    return [(_reals(a) - _reals(b)) / (2 * eps) for a, b in zip(ahead, behind, strict=True)]


def _iter_tensors(x, only_requiring_grad: bool = False):
    """Yield the tensors of nested sequences, in order."""
    if isinstance(x, Tensor):
        if x.requires_grad or not only_requiring_grad:
            yield x
    elif isinstance(x, Iterable) and not isinstance(x, str):
        for element in x:
            yield from _iter_tensors(element, only_requiring_grad)


def _get_numerical_jacobian(fn, inputs, outputs=None, target=None, eps=1e-3, is_forward_ad=False):
    """Return the numerical Jacobians: a list over the tensors of ``target`` that require grad, by default those of ``inputs``.

    Each element has a matrix (numbers of the tensor, numbers of the output) for each continuous output.
    """
    inputs = _tuple(inputs)
    targets = list(inputs if target is None else _tuple(target))
    found = []
    for i, x in enumerate(targets):
        if not (isinstance(x, Tensor) and x.requires_grad):
            continue
        rows = [_slopes(lambda *_: fn(*inputs), targets, i, unit, eps) for unit in _units(_reals(x).numel())]
        found.append(tuple(ops.stack(column).to(x.device, x.dtype) for column in zip(*rows, strict=True)))
    return found


def get_numerical_jacobian(fn, inputs, target=None, eps=1e-3, grad_out=1.0):
    """Return the numerical Jacobians of a function of one output, for each tensor that requires grad.

    fn: receives the tuple of all inputs as its only argument.
    """
    if grad_out != 1.0:
        raise ValueError(
            "Expected grad_out to be 1.0. get_numerical_jacobian no longer supports values of grad_out != 1.0."
        )
    return tuple(
        jacobians[0] for jacobians in _get_numerical_jacobian(lambda *x: fn(x), inputs, None, target, eps)
    )


def _units(n: int):
    for i in range(n):
        unit = ops.zeros(n, dtype=float64, device="cpu")
        unit[i] = 1.0
        yield unit


def _back(output: Tensor, inputs, vector: Tensor) -> list[Tensor]:
    """Return the gradients of the product vector . output for each input, as vectors."""
    found = grad(output, inputs, _like(vector, output), retain_graph=True, allow_unused=True)
    return [
        _reals(ops.zeros_like(_stored(x)) if g is None else _in_order(g, x))
        for g, x in zip(found, inputs, strict=True)
    ]


def _in_order(gradient: Tensor, x: Tensor) -> Tensor:
    """Return the gradient of ``x``, or the values of a sparse one in the order of those of ``x``."""
    return x._values_of_gradient(gradient) if is_sparse(x) else gradient


def _parts(x: Tensor) -> list[tuple[str, slice]]:
    """Return the parts of a tensor that are compared by themselves, as PyTorch does: a name and the places in ``_reals(x)``."""
    if not x.dtype.is_complex:
        return [("", slice(None))]
    return [("imaginary", slice(1, None, 2)), ("real", slice(0, None, 2))]


def _mismatch(i: int, j: int, numerical, analytical, forward: bool = False, part: str = "") -> GradcheckError:
    kind = "Jacobian computed with forward mode mismatch" if forward else "Jacobian mismatch"
    side = "inputs" if forward else "outputs"
    only = f"While considering the {part} part of complex {side} only, " if part else ""
    return GradcheckError(
        f"{only}{kind} for output {i} with respect to input {j},\nnumerical:{numerical}\nanalytical:{analytical}\n"
    )


class _Check:
    """One comparison: the function, its inputs and the tolerances."""

    def __init__(self, func, inputs, eps, atol, rtol, nondet_tol):
        self.func, self.inputs = func, inputs
        self.eps, self.atol, self.rtol, self.nondet_tol = eps, atol, rtol, nondet_tol
        self.places = [i for i, x in enumerate(inputs) if _continuous(x) and x.requires_grad]
        self.wanted = [inputs[i] for i in self.places]
        self.expected: list[Tensor] | None = (
            None  # the outputs, whose shapes and dtypes moved inputs must give too
        )
        # The directions come from a generator of their own, so that a function that restores the global one draws the same
        # numbers in every call.
        self.generator = Generator("cpu")

    def direction(self, count: int) -> Tensor:
        return ops.rand(count, dtype=float64, device="cpu", generator=self.generator)

    def outputs(self) -> list[Tensor]:
        with enable_grad():
            return [o for o in _tuple(self.func(*self.inputs)) if _continuous(o)]

    def close(self, a: Tensor, b: Tensor) -> bool:
        return bool(ops.allclose(a, b, self.rtol, self.atol))

    def slopes(self, i: int, direction: Tensor) -> list[Tensor]:
        return _slopes(self.func, self.inputs, i, direction, self.eps, self.expected)

    @functools.cached_property
    def numerical(self) -> list[list[Tensor]]:
        """Return the numerical Jacobian (input numbers, output numbers) for each input and output."""
        made = []
        for i in self.places:
            rows = [self.slopes(i, unit) for unit in _units(_reals(self.inputs[i]).numel())]
            if rows:
                made.append([ops.stack(column) for column in zip(*rows, strict=True)])
            else:  # an input without numbers
                made.append(
                    [ops.zeros(0, _reals(o).numel(), dtype=float64, device="cpu") for o in self.outputs()]
                )
        return made

    def flat(self) -> None:
        """Check that a function whose outputs do not require grad is constant."""
        for matrices in self.numerical:
            if any(bool((m != 0).any()) for m in matrices):
                raise GradcheckError("Numerical gradient for function expected to be zero")

    def slow(self, outputs) -> None:
        numerical = self.numerical
        for o, output in enumerate(outputs):
            if not output.requires_grad:
                continue
            rows = [_back(output, self.wanted, unit) for unit in _units(_reals(output).numel())]
            again = [_back(output, self.wanted, unit) for unit in _units(_reals(output).numel())]
            for j in range(len(self.wanted)):
                if not rows:
                    continue
                matrix = ops.stack([r[j] for r in rows], 1)
                for part, places in _parts(output):
                    here, there = matrix[:, places], numerical[j][o][:, places]
                    if not self.close(here, there):
                        raise _mismatch(o, j, there, here, part=part)
                self.repeated(matrix, ops.stack([r[j] for r in again], 1))

    def fast(self, outputs) -> None:
        """Compare one random projection of each Jacobian instead of the whole matrix."""
        for o, output in enumerate(outputs):
            if not output.requires_grad:
                continue
            whole: Tensor = self.direction(_reals(output).numel()).add(0.1)
            for part, places in _parts(output):
                vector = ops.zeros_like(whole)
                vector[places] = whole[places]
                self.project(o, output, vector, part)

    def project(self, o: int, output: Tensor, vector: Tensor, part: str) -> None:
        found, again = _back(output, self.wanted, vector), _back(output, self.wanted, vector)
        for j, i in enumerate(self.places):
            direction = self.direction(_reals(self.inputs[i]).numel())
            size = direction.norm()
            direction = direction / size if bool(size) else direction
            there = (self.slopes(i, direction)[o] * vector).sum()
            here = (found[j] * direction).sum()
            if not self.close(here, there):
                raise _mismatch(o, j, there, here, part=part)
            self.repeated(found[j], again[j])

    def forward(self, fast: bool) -> None:
        """Compare the tangents of forward-mode differentiation with finite differences."""
        for place, i in enumerate(self.places):
            count = _reals(self.inputs[i]).numel()
            if fast:
                direction = self.direction(count)
                self.compare_tangents(place, direction, self.slopes(i, direction))
                continue
            for part, places in _parts(self.inputs[i]):
                for row, unit in list(enumerate(_units(count)))[places]:
                    self.compare_tangents(
                        place, unit, [matrix[row] for matrix in self.numerical[place]], part
                    )

    def undefined_tangents(self) -> None:
        """Check that an input without a tangent counts as one whose tangent is zero."""
        with forward_ad.dual_level(), enable_grad():
            arguments = list(self.inputs)
            for i in self.places:
                x = self.inputs[i].detach()
                arguments[i] = forward_ad.make_dual(x, _tangent_like(self.direction(_reals(x).numel()), x))
            for i in self.places:
                own, x = arguments[i], self.inputs[i].detach()
                found = []
                for given in (forward_ad.make_dual(x, ops.zeros_like(x)), x):
                    arguments[i] = given
                    outputs = [o for o in _tuple(self.func(*arguments)) if _continuous(o)]
                    found.append([forward_ad.unpack_dual(o).tangent for o in outputs])
                arguments[i] = own
                for o, (a, b) in enumerate(zip(*found, strict=True)):
                    if a is not None and b is not None and not ops.allclose(a, b):
                        raise GradcheckError(
                            f"Mismatch in tangent values for output with index: {o} when input {i} has an undefined tangent "
                            f"value. Got: {a} but expected: {b}"
                        )

    def compare_tangents(self, place: int, direction: Tensor, slopes: list[Tensor], part: str = "") -> None:
        for o, (tangent, slope) in enumerate(
            zip(self.tangents(self.places[place], direction), slopes, strict=True)
        ):
            if not self.close(tangent, slope):
                raise _mismatch(o, place, slope, tangent, forward=True, part=part)

    def tangents(self, index: int, direction: Tensor) -> list[Tensor]:
        """Return the tangents of the outputs for a tangent of one input, as vectors."""
        x = self.inputs[index]
        arguments = list(self.inputs)
        with forward_ad.dual_level(), enable_grad():
            for i in self.places:
                own = self.inputs[i]
                tangent = _tangent_like(direction, x) if i == index else ops.zeros_like(own.detach())
                arguments[i] = forward_ad.make_dual(own.detach(), tangent)
            outputs = [o for o in _tuple(self.func(*arguments)) if _continuous(o)]
            found = [forward_ad.unpack_dual(o).tangent for o in outputs]
        return [_reals(ops.zeros_like(o) if t is None else t) for o, t in zip(outputs, found, strict=True)]

    def batched_tangents(self) -> None:
        """Check that the tangents for a batch of tangents of one input are those for each of them."""
        for i in self.places:
            vectors = [ops.randn_like(self.inputs[i].detach()) for _ in range(2)]

            def products(tangent, i=i):
                with forward_ad.dual_level():
                    arguments = [x.detach() if isinstance(x, Tensor) else x for x in self.inputs]
                    arguments[i] = forward_ad.make_dual(arguments[i], tangent)
                    pairs = [
                        forward_ad.unpack_dual(o) for o in _tuple(self.func(*arguments)) if _continuous(o)
                    ]
                    return tuple(ops.zeros_like(o) if found is None else found for o, found in pairs)

            alone = [ops.stack(column) for column in zip(*map(products, vectors), strict=True)]
            try:
                together = extensions.vmap.value(products)(ops.stack(vectors))
            except RuntimeError as error:
                raise GradcheckError(f"While computing batched gradients, got: {error}") from error
            for a, b in zip(alone, together, strict=True):
                if not ops.allclose(a, b):
                    raise GradcheckError(
                        f"gradcheck failed while testing batched tangents of forward mode for input {i}: those for each tangent "
                        f"alone are {a}, and together {b}"
                    )

    def batched(self, outputs) -> None:
        """Check that gradients for a batch of output gradients are the gradients for each of them."""
        for output in outputs:
            if not output.requires_grad:
                continue
            vectors = ops.stack([ops.randn_like(output) for _ in range(2)])
            together = grad(
                output, self.wanted, vectors, retain_graph=True, allow_unused=True, is_grads_batched=True
            )
            for i, vector in enumerate(vectors):
                alone = grad(output, self.wanted, vector, retain_graph=True, allow_unused=True)
                for a, b in zip(alone, together, strict=True):
                    if a is not None and not self.close(_reals(a), _reals(b[i])):
                        raise GradcheckError(
                            "gradcheck or gradgradcheck failed while testing batched gradient"
                        )

    def repeated(self, a: Tensor, b: Tensor) -> None:
        if a.numel() and float((a - b).abs().max()) > self.nondet_tol:
            raise GradcheckError(
                "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times "
                "gives different values, although analytical gradient matches numerical gradient.The tolerance for "
                f"nondeterminism was {self.nondet_tol}."
            )

    def linear(self, outputs) -> None:
        """Check that zero gradients of the outputs give zero gradients of the inputs."""
        recorded = [o for o in outputs if o.requires_grad]
        zeros = [ops.zeros_like(o) for o in recorded]
        found = grad(recorded, self.wanted, zeros, retain_graph=True, allow_unused=True)
        for g, x in zip(found, self.wanted, strict=True):
            if g is None:
                continue
            if bool((_reals(g) != 0).any()):
                raise GradcheckError("backward not multiplied by grad_output")
            if g.shape != x.shape:
                raise GradcheckError("grad is incorrect size")
            if g.device != x.device:
                raise GradcheckError("grad is incorrect device")

    def undefined(self) -> None:
        """Check that backward treats missing gradients of the outputs as zeros."""
        outputs = [o for o in self.outputs() if o.requires_grad]
        text = "Expected backward function to handle undefined output grads."
        choices = [[o] for o in range(len(outputs))] if len(outputs) > 1 else []
        for absent in [list(range(len(outputs))), *choices]:
            hidden = _tuple(UndefinedGrad()(*(outputs[i] for i in absent)))
            shown = list(outputs)
            for i, h in zip(absent, hidden, strict=True):
                shown[i] = h
            grads = [ops.zeros_like(o) for o in outputs]
            try:
                found = grad(shown, self.wanted, grads, retain_graph=True, allow_unused=True)
            except RuntimeError as error:
                _warn_of_undefined()
                raise GradcheckError(f"{text} Please look at the function's backward.") from error
            if any(g is not None and bool((_reals(g) != 0).any()) for g in found):
                _warn_of_undefined()
                raise GradcheckError(f"{text} They count as zeros, and the gradients of inputs are not zero.")


def _warn_of_undefined() -> None:
    warnings.warn(
        "Backwards compatibility: New undefined gradient support checking feature is enabled by default, but it may break existing "
        'callers of this function. If this is true for you, you can call this function with "check_undefined_grad=False" to '
        "disable the feature",
        stacklevel=6,
    )


def _check_input(i: int, x: Tensor) -> None:
    if x.dtype.to_real() is not float64:
        warnings.warn(
            f"Input #{i} requires gradient and is not a double precision floating point or complex. This check "
            "will likely fail if all the inputs are not of double precision floating point or complex. ",
            stacklevel=5,
        )
    stored = _stored(x)
    if any(stride == 0 and size > 1 for stride, size in zip(stored.stride(), stored.shape, strict=True)):
        raise RuntimeError(
            f"The {i}th input has a dimension with stride 0. gradcheck only supports inputs that are non-overlapping to be able to "
            "compute the numerical gradients correctly. You should call .contiguous on the input before passing it to gradcheck."
        )


def _check_types(check: _Check, outputs) -> None:
    found = grad([o for o in outputs if o.requires_grad], check.wanted,
                 [ops.ones_like(o) for o in outputs if o.requires_grad], retain_graph=True, allow_unused=True)  # fmt: skip
    for g, x in zip(found, check.wanted, strict=True):
        if g is not None and g.dtype is not x.dtype:
            raise GradcheckError("grad is incorrect type")


def _run(
    check: _Check,
    undefined: bool,
    types: bool,
    fast: bool,
    *,
    forward: bool,
    backward: bool,
    batched: bool,
    batched_forward: bool,
) -> None:
    if not check.wanted:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them have "
            "requires_grad=True."
        )
    for i, x in enumerate(check.inputs):
        if isinstance(x, Tensor) and x.requires_grad:
            _check_input(i, x)
    if forward and any(isinstance(x, Tensor) and x.is_mkldnn for x in check.inputs):
        raise ValueError("MKLDNN inputs are not support for forward AD gradcheck.")
    outputs = check.outputs()
    check.expected = [o.detach() for o in outputs]
    if any(o.is_mkldnn for o in outputs):
        raise ValueError(
            "MKLDNN output is not supported at gradcheck yet. Please call to_dense(masked_grad=...) on the output of fn for "
            "gradcheck."
        )
    if any(map(is_sparse, outputs)):
        raise ValueError(
            "Sparse output is not supported at gradcheck yet. Please call to_dense(masked_grad=...) on the output of fn "
            "for gradcheck."
        )
    if not outputs:
        return
    if not any(o.requires_grad for o in outputs):
        check.flat()
        return
    if backward:
        (check.fast if fast else check.slow)(outputs)
    if forward:
        check.forward(fast)
        if undefined:
            check.undefined_tangents()
    if batched_forward:
        check.batched_tangents()
    if not backward:
        return
    if batched:
        check.batched(outputs)
    check.linear(outputs)
    if undefined:
        check.undefined()
    if types:
        _check_types(check, outputs)


def gradcheck(
    func, inputs, *, eps=1e-6, atol=1e-5, rtol=1e-3, raise_exception=True, nondet_tol=0.0, check_undefined_grad=True,
    check_grad_dtypes=False, check_batched_grad=False, check_batched_forward_grad=False, check_forward_ad=False,
    check_backward_ad=True, fast_mode=False, masked=None,
) -> bool:  # fmt: skip
    """Return whether the gradients of ``func`` at ``inputs`` agree with finite differences of width ``eps``.

    Inputs that require grad should be float64 or complex128. A difference raises GradcheckError, or gives
    False with ``raise_exception=False``. ``fast_mode`` compares one random projection instead of whole
    Jacobians. ``check_forward_ad`` checks forward-mode differentiation too.
    """
    if not check_forward_ad and not check_backward_ad:
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if check_batched_grad and not check_backward_ad:
        raise AssertionError("Setting check_batched_grad=True requires check_backward_ad to be True")
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError("Setting check_batched_forward_grad=True requires check_forward_ad to be True")
    check = _Check(func, _tuple(inputs), eps, atol, rtol, nondet_tol)
    try:
        _run(
            check,
            check_undefined_grad,
            check_grad_dtypes,
            fast_mode,
            forward=check_forward_ad,
            backward=check_backward_ad,
            batched=check_batched_grad,
            batched_forward=check_batched_forward_grad,
        )
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func, inputs, grad_outputs=None, *, eps=1e-6, atol=1e-5, rtol=1e-3, gen_non_contig_grad_outputs=False,
    raise_exception=True, nondet_tol=0.0, check_undefined_grad=True, check_grad_dtypes=False,
    check_batched_grad=False, check_fwd_over_rev=False, check_rev_over_rev=True, fast_mode=False, masked=False,
) -> bool:  # fmt: skip
    """Apply gradcheck to the gradients of ``func``, that is, check its second derivatives.

    The gradients of the outputs are random unless ``grad_outputs`` is given.
    """
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise AssertionError("Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True")
    for name, wished in (
        ("check_undefined_grad", check_undefined_grad),
        ("check_batched_grad", check_batched_grad),
    ):
        if wished and not check_rev_over_rev:
            raise AssertionError(f"Setting {name}=True requires check_rev_over_rev to be True")
    inputs = _tuple(inputs)
    if grad_outputs is None:
        outputs = [o.detach() for o in _tuple(func(*inputs)) if _continuous(o) and o.requires_grad]
        grad_outputs = [_random_like(o, gen_non_contig_grad_outputs) for o in outputs]
    grad_outputs = _tuple(grad_outputs)
    count = len(grad_outputs)

    wished = [isinstance(x, Tensor) and x.requires_grad for x in (*inputs, *grad_outputs)]

    def first(*arguments):
        for x, wish in zip(arguments, wished, strict=True):
            if wish and not x.requires_grad:  # dual tensors of the forward mode do not
                x.requires_grad_()
        own, vectors = arguments[: len(arguments) - count], arguments[len(arguments) - count :]
        outputs = [o for o in _tuple(func(*own)) if _continuous(o) and o.requires_grad]
        wanted = [x for x in own if isinstance(x, Tensor) and x.requires_grad]
        found = grad(outputs, wanted, vectors, create_graph=True, allow_unused=True)
        return tuple(g for g in found if g is not None)

    return gradcheck(
        first, (*inputs, *grad_outputs), eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception,
        nondet_tol=nondet_tol, check_undefined_grad=check_undefined_grad, check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad, check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev, fast_mode=fast_mode,
    )  # fmt: skip


def _random_like(o: Tensor, strided: bool) -> Tensor:
    shape = [*o.shape, 2] if strided else o.shape
    made = ops.randn(shape, dtype=o.dtype, device=o.device)
    return (made[..., 0] if strided else made).detach().requires_grad_()


class _CallableModule(types.ModuleType):
    """Makes the module callable.

    torch.autograd.gradcheck is a function, but an import of this module sets the attribute to the module.
    """

    def __call__(self, *args, **kwargs) -> bool:
        return gradcheck(*args, **kwargs)


sys.modules[__name__].__class__ = _CallableModule
