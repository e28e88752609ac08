"""Transforms of vectors and matrices."""

from __future__ import annotations

import math

from .. import ops
from ..nn import functional as F
from ..tensor import Size
from . import constraints
from ._limits import eps_of, tiny_of
from ._transform_base import Transform
from ._transform_numbers import _share
from .utils import tril_matrix_to_vec, vec_to_tril_matrix


class SoftmaxTransform(Transform):
    """Maps unconstrained vectors to the simplex by softmax. The inverse takes logarithms. This is not a bijection."""

    domain = constraints.real_vector
    codomain = constraints.simplex

    def __eq__(self, other):
        return isinstance(other, SoftmaxTransform)

    __hash__ = Transform.__hash__

    def _call(self, x):
        weights = (x - x.max(-1, True)[0]).exp()
        return weights / weights.sum(-1, True)

    def _inverse(self, y):
        return y.log()

    def forward_shape(self, shape):
        return _at_least(shape, 1)

    inverse_shape = forward_shape


def _at_least(shape, n: int):
    if len(shape) < n:
        raise ValueError("Too few dimensions on input")
    return shape


class StickBreakingTransform(Transform):
    """Maps vectors of n numbers to the simplex of n + 1 numbers. Each number breaks its share off the rest of a stick."""

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    def __eq__(self, other):
        return isinstance(other, StickBreakingTransform)

    __hash__ = Transform.__hash__

    @staticmethod
    def _offset(x):
        return x.shape[-1] + 1 - x.new_ones([x.shape[-1]]).cumsum(-1)

    def _call(self, x):
        z = _share(x - self._offset(x).log())
        left = (1 - z).cumprod(-1)
        return F.pad(z, [0, 1], value=1) * F.pad(left, [1, 0], value=1)

    def _inverse(self, y):
        kept = y[..., :-1]
        offset = y.shape[-1] - kept.new_ones([kept.shape[-1]]).cumsum(-1)
        left = ops.clamp(1 - kept.cumsum(-1), min=tiny_of(y.dtype))
        return kept.log() - left.log() + offset.log()

    def log_abs_det_jacobian(self, x, y):
        x = x - self._offset(x).log()
        return (-x + F.logsigmoid(x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape):
        _at_least(shape, 1)
        return Size([*shape[:-1], shape[-1] + 1])

    def inverse_shape(self, shape):
        _at_least(shape, 1)
        return Size([*shape[:-1], shape[-1] - 1])


class CorrCholeskyTransform(Transform):
    """Maps vectors of n(n-1)/2 numbers to Cholesky factors of n x n correlation matrices, by tanh and rows of unit norm."""

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x):
        eps = eps_of(x.dtype)
        r = vec_to_tril_matrix(x.tanh().clamp(min=-1 + eps, max=1 - eps), diag=-1)
        left = (1 - r * r).sqrt().cumprod(-1)
        r = r + ops.eye(r.shape[-1], dtype=r.dtype, device=r.device)
        return r * F.pad(left[..., :-1], [1, 0], value=1)

    def _inverse(self, y):
        left = F.pad((1 - (y * y).cumsum(-1))[..., :-1], [1, 0], value=1)
        t = tril_matrix_to_vec(y, diag=-1) / tril_matrix_to_vec(left, diag=-1).sqrt()
        return (t.log1p() - t.neg().log1p()) / 2

    def log_abs_det_jacobian(self, x, y, intermediates=None):
        left = 1 - (y * y).cumsum(-1)
        of_rows = 0.5 * tril_matrix_to_vec(left, diag=-2).log().sum(-1)
        of_tanh = -2 * (x + F.softplus(-2 * x) - math.log(2.0)).sum(-1)
        return of_rows + of_tanh

    def forward_shape(self, shape):
        _at_least(shape, 1)
        n = round((0.25 + 2 * shape[-1]) ** 0.5 + 0.5)
        if n * (n - 1) // 2 != shape[-1]:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return Size([*shape[:-1], n, n])

    def inverse_shape(self, shape):
        _at_least(shape, 2)
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        return Size([*shape[:-2], shape[-1] * (shape[-1] - 1) // 2])


class LowerCholeskyTransform(Transform):
    """Maps square matrices to lower triangular matrices with a positive diagonal."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def __eq__(self, other):
        return isinstance(other, LowerCholeskyTransform)

    __hash__ = Transform.__hash__

    def _call(self, x):
        return x.tril(-1) + ops.diag_embed(x.diagonal(dim1=-2, dim2=-1).exp())

    def _inverse(self, y):
        return y.tril(-1) + ops.diag_embed(y.diagonal(dim1=-2, dim2=-1).log())


class PositiveDefiniteTransform(Transform):
    """Maps square matrices to positive definite matrices."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def __eq__(self, other):
        return isinstance(other, PositiveDefiniteTransform)

    __hash__ = Transform.__hash__

    def _call(self, x):
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y):
        return LowerCholeskyTransform().inv(ops.linalg_cholesky(y))
