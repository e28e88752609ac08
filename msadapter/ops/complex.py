"""Complex tensors: their parts, conjugates, polar form and construction."""

from .._values.dtype import ALL
from . import _on_npu
from ._declare import composite, op, raw_view, t
from .pointwise import conj as conjugated


# ---- views of the parts
def _parts_view(self, shift):
    """Return a view of the real (shift 0) or imaginary (shift 1) parts of a complex tensor."""
    return raw_view(
        self,
        list(self.shape),
        [2 * s for s in self.stride()],
        2 * self.storage_offset() + shift,
        self.dtype.to_real(),
    )


@op(
    "_real_view(Tensor self) -> Tensor",
    forms="f",
    view=True,
    grad={"self": lambda g: t.complex(g, t.zeros_like(g))},
    pointwise=True,
)
def _real_view(self):
    return _parts_view(self, 0)


@composite(
    "real(Tensor self) -> Tensor",
    forms="f",
    pointwise=True,
)
def real(self):
    """Return a view of the real parts. A real tensor is returned as it is."""
    return t._real_view(self) if self.is_complex() else self


@op(
    "imag(Tensor self) -> Tensor",
    forms="f",
    view=True,
    grad={"self": lambda g: t.complex(t.zeros_like(g), g)},
    pointwise=True,
    linear=("self",),
)
def imag(self):
    """Return a view of the imaginary parts."""
    if not self.is_complex():
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    return _parts_view(self, 1)


@op(
    "view_as_real(Tensor self) -> Tensor",
    forms="f",
    view=True,
    grad={"self": lambda g: t.view_as_complex(g.contiguous())},
    whole=True,
)
def view_as_real(self):
    """Return a view with an additional last dimension of size two: real and imaginary part."""
    if not self.is_complex():
        raise RuntimeError("view_as_real is only supported for complex tensors")
    return raw_view(
        self,
        [*self.shape, 2],
        [*(2 * s for s in self.stride()), 1],
        2 * self.storage_offset(),
        self.dtype.to_real(),
    )


@op(
    "view_as_complex(Tensor self) -> Tensor",
    forms="f",
    view=True,
    grad={"self": lambda g: t.view_as_real(g)},
    autocast={"cpu": "float32"},
    whole=True,
)
def view_as_complex(self):
    """Return a complex view of pairs of numbers. This is the inverse of `view_as_real`."""
    if not self.is_floating_point() or self.dtype is ALL["bfloat16"]:
        raise RuntimeError(
            f"view_as_complex is only supported for half, float and double tensors, but got a tensor "
            f"of scalar type: {self.dtype.scalar_name}"
        )
    shape, stride, offset = list(self.shape), list(self.stride()), self.storage_offset()
    if not shape:
        raise RuntimeError("Input tensor must have one or more dimensions")
    if shape[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    if stride[-1] != 1:
        raise RuntimeError("Tensor must have a last dimension with stride 1")
    if any(s % 2 for s in stride[:-1]):
        raise RuntimeError("Tensor must have a stride divisible by 2 for all but last dimension")
    if offset % 2:
        raise RuntimeError("Tensor must have a storage_offset divisible by 2")
    return raw_view(self, shape[:-1], [s // 2 for s in stride[:-1]], offset // 2, self.dtype.to_complex())


# ---- conjugation and the rest
op(
    "_conj_physical(Tensor self) -> Tensor",
    ms="Conj",
    forms="fi",
    grad={"self": lambda g: conjugated(g)},
    pointwise=True,
    complex32=True,
    node="ConjPhysicalBackward0",
)


@composite(
    "conj_physical(Tensor self) -> Tensor",
    forms="fmino",
    pointwise=True,
    complex32=True,
)
def conj_physical(self):
    """Return the conjugate. A real tensor is returned as it is."""
    return t._conj_physical(self) if self.is_complex() else self


@composite(
    "conj(Tensor self) -> Tensor",
    forms="fm",
    pointwise=True,
)
def conj(self):
    """Return the conjugate. A real tensor is returned as it is."""
    return t.conj_physical(self) if self.is_complex() else self


@composite(
    "resolve_conj(Tensor self) -> Tensor",
    forms="fm",
    pointwise=True,
)
def resolve_conj(self):
    """Return `self`, because conjugation is never deferred here."""
    return self


@composite(
    "resolve_neg(Tensor self) -> Tensor",
    forms="fm",
    pointwise=True,
)
def resolve_neg(self):
    """Return `self`, because negation is never deferred here."""
    return self


def _angle_grad(g, self):
    if not self.is_complex():
        return t.zeros_like(g)
    size = self.abs()
    turn = t.complex(-t.imag(self), t.real(self)) / (size * size)
    return t.where(size == 0, t.zeros_like(turn), g * turn)


op(
    "angle(Tensor self) -> Tensor",
    out_dtype="cast",
    ms="Angle",
    npu=_on_npu.angle,
    forms="fmo",
    grad={"self": _angle_grad},
    pointwise=True,
)
op(
    "complex(Tensor real, Tensor imag) -> Tensor",
    ms="Complex",
    forms="fo",
    grad={"real": lambda g: t.real(g), "imag": lambda g: t.imag(g)},
    pointwise=True,
)


def _polar_grad(g, angle, result, needs):
    direction = t.polar(t.ones_like(angle), angle)
    size = t.real(t.conj(g) * direction) if needs[0] else None
    turn = t.real(t.conj(g) * result * 1j) if needs[1] else None
    return size, turn


op(
    "polar(Tensor abs, Tensor angle) -> Tensor",
    ms="Polar",
    forms="fo",
    grad={("abs", "angle"): _polar_grad},
    pointwise=True,
    autocast={"cpu": "float32"},
)
