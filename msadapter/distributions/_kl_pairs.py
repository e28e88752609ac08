"""Formulas of Kullback-Leibler divergences."""

from __future__ import annotations

import math

from .. import autograd, ops
from ..autograd.grad_mode import enable_grad
from ..nn import functional as F
from .bernoulli import Bernoulli
from .beta import Beta
from .binomial import Binomial
from .categorical import Categorical
from .cauchy import Cauchy
from .continuous_bernoulli import ContinuousBernoulli
from .dirichlet import Dirichlet
from .exp_family import ExponentialFamily
from .exponential import Exponential
from .gamma import Gamma
from .geometric import Geometric
from .gumbel import Gumbel
from .half_normal import HalfNormal
from .independent import Independent
from .kl import kl_divergence, register_kl
from .laplace import Laplace
from .lowrank_multivariate_normal import LowRankMultivariateNormal, log_det, mahalanobis
from .multivariate_normal import MultivariateNormal, _shapes, batch_mahalanobis
from .normal import Normal
from .one_hot_categorical import OneHotCategorical
from .pareto import Pareto
from .poisson import Poisson
from .transformed_distribution import TransformedDistribution
from .uniform import Uniform
from .utils import euler_constant, sum_rightmost

_INF = math.inf


def _infinite(x):
    return ops.full_like(x, _INF)


def _x_log_x(x):
    return ops.xlogy(x, x)


def _trace_of_squares(matrix):
    """tr(M M^T)."""
    return matrix.pow(2).sum((-1, -2))


# ---- of one class
@register_kl(Bernoulli, Bernoulli)
def _(p, q):
    first = p.probs * (F.softplus(-q.logits) - F.softplus(-p.logits))
    first = ops.where(q.probs == 0, _INF, first)
    first = ops.where(p.probs == 0, 0.0, first)
    rest = (1 - p.probs) * (F.softplus(q.logits) - F.softplus(p.logits))
    rest = ops.where(q.probs == 1, _INF, rest)
    return first + ops.where(p.probs == 1, 0.0, rest)


@register_kl(Beta, Beta)
def _(p, q):
    sum_p, sum_q = p.concentration1 + p.concentration0, q.concentration1 + q.concentration0
    sizes = q.concentration1.lgamma() + q.concentration0.lgamma() + sum_p.lgamma()
    sizes = sizes - (p.concentration1.lgamma() + p.concentration0.lgamma() + sum_q.lgamma())
    return (
        sizes
        + (p.concentration1 - q.concentration1) * ops.digamma(p.concentration1)
        + (p.concentration0 - q.concentration0) * ops.digamma(p.concentration0)
        + (sum_q - sum_p) * ops.digamma(sum_p)
    )


@register_kl(Binomial, Binomial)
def _(p, q):
    if bool((p.total_count < q.total_count).any()):
        raise NotImplementedError(
            "KL between Binomials where q.total_count > p.total_count is not implemented"
        )
    found = p.total_count * (p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p())
    more = p.total_count > q.total_count
    return ops.where(more, _infinite(found), found)


@register_kl(Categorical, Categorical)
def _(p, q):
    found = p.probs * (p.logits - q.logits)
    found = ops.where(ops.expand_as(q.probs == 0, found), _INF, found)
    return ops.where(ops.expand_as(p.probs == 0, found), 0.0, found).sum(-1)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _(p, q):
    mean = p.mean * (p.logits - q.logits)
    return mean + p._log_norm() + ops.log1p(-p.probs) - q._log_norm() - ops.log1p(-q.probs)


@register_kl(Dirichlet, Dirichlet)
def _(p, q):
    sum_p, sum_q = p.concentration.sum(-1), q.concentration.sum(-1)
    sizes = sum_p.lgamma() - sum_q.lgamma() - (p.concentration.lgamma() - q.concentration.lgamma()).sum(-1)
    slope = p.concentration.digamma() - sum_p.digamma().unsqueeze(-1)
    return sizes + ((p.concentration - q.concentration) * slope).sum(-1)


@register_kl(Exponential, Exponential)
def _(p, q):
    ratio = q.rate / p.rate
    return -ratio.log() + ratio - 1


@register_kl(ExponentialFamily, ExponentialFamily)
def _(p, q):
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot be computed using "
            "Bregman divergences"
        )
    with enable_grad():
        own = [x.detach().requires_grad_() for x in p._natural_params]
        normalizer = p._log_normalizer(*own)
        slopes = autograd.grad(normalizer.sum(), own, create_graph=True)
    result = q._log_normalizer(*q._natural_params) - normalizer
    for a, b, slope in zip(own, q._natural_params, slopes, strict=True):
        result = result - sum_rightmost((b - a) * slope, len(q.event_shape))
    return result


@register_kl(Gamma, Gamma)
def _(p, q):
    return (
        q.concentration * (p.rate / q.rate).log()
        + ops.lgamma(q.concentration)
        - ops.lgamma(p.concentration)
        + (p.concentration - q.concentration) * ops.digamma(p.concentration)
        + (q.rate - p.rate) * (p.concentration / p.rate)
    )


@register_kl(Gumbel, Gumbel)
def _(p, q):
    ratio, shift, place = p.scale / q.scale, q.loc / q.scale, p.loc / q.scale
    first = -ratio.log() - shift + place + ratio * euler_constant
    return first + ops.exp(shift + (1 + ratio).lgamma() - place) - (1 + euler_constant)


@register_kl(Geometric, Geometric)
def _(p, q):
    return -p.entropy() - ops.log1p(-q.probs) / p.probs - q.logits


@register_kl(HalfNormal, HalfNormal)
def _(p, q):
    return _normal_normal(p.base_dist, q.base_dist)


@register_kl(Laplace, Laplace)
def _(p, q):
    ratio, distance = p.scale / q.scale, (p.loc - q.loc).abs()
    far = ratio * ops.exp(-distance / p.scale)
    return -ratio.log() + distance / q.scale + far - 1


@register_kl(Normal, Normal)
def _normal_normal(p, q):
    spread = (p.scale / q.scale).pow(2)
    return 0.5 * (spread + ((p.loc - q.loc) / q.scale).pow(2) - 1 - spread.log())


@register_kl(OneHotCategorical, OneHotCategorical)
def _(p, q):
    return kl_divergence(p._categorical, q._categorical)


@register_kl(Pareto, Pareto)
def _(p, q):
    ratio, shapes = p.scale / q.scale, q.alpha / p.alpha
    found = q.alpha * ratio.log() - shapes.log() + shapes - 1
    return ops.where(p.support.lower_bound < q.support.lower_bound, _INF, found)


@register_kl(Poisson, Poisson)
def _(p, q):
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(TransformedDistribution, TransformedDistribution)
def _(p, q):
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Uniform, Uniform)
def _(p, q):
    found = ((q.high - q.low) / (p.high - p.low)).log()
    return ops.where((q.low > p.low) | (q.high < p.high), _INF, found)


@register_kl(Cauchy, Cauchy)
def _(p, q):
    first = ((p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)).log()
    return first - (4 * p.scale * q.scale).log()


@register_kl(Independent, Independent)
def _(p, q):
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


# ---- normal vectors
def _same_events(p, q, kinds: str) -> None:
    if p.event_shape != q.event_shape:
        raise ValueError(f"KL-divergence between two {kinds} with different event shapes cannot be computed")


def _solved_trace(factor, others, p, q):
    """Sum over ``others`` of tr(L^-1 M M^T L^-T)."""
    n = p.event_shape[0]
    batch = _shapes(q._batch_shape, p._batch_shape)
    total = 0
    for m in others:
        wide = m.expand([*batch, n, m.shape[-1]])
        total = total + _trace_of_squares(
            ops.linalg_solve_triangular(factor.expand([*batch, n, n]), wide, upper=False)
        )
    return total


def _half_log_det(dist):
    return dist._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def _low_log_det(dist):
    return log_det(dist._unbroadcasted_cov_factor, dist._unbroadcasted_cov_diag, dist._capacitance_tril)


@register_kl(MultivariateNormal, MultivariateNormal)
def _(p, q):
    _same_events(p, q, "Multivariate Normals")
    size = _half_log_det(q) - _half_log_det(p)
    trace = _solved_trace(q._unbroadcasted_scale_tril, [p._unbroadcasted_scale_tril], p, q)
    distance = batch_mahalanobis(q._unbroadcasted_scale_tril, q.loc - p.loc)
    return size + 0.5 * (trace + distance - p.event_shape[0])


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _(p, q):
    _same_events(p, q, "(Low Rank) Multivariate Normals")
    size = _low_log_det(q) - 2 * _half_log_det(p)
    distance = mahalanobis(
        q._unbroadcasted_cov_factor, q._unbroadcasted_cov_diag, q.loc - p.loc, q._capacitance_tril
    )
    scaled = q._unbroadcasted_cov_factor.mT / q._unbroadcasted_cov_diag.unsqueeze(-2)
    inner = ops.linalg_solve_triangular(q._capacitance_tril, scaled, upper=False)
    own = _trace_of_squares(p._unbroadcasted_scale_tril * q._unbroadcasted_cov_diag.rsqrt().unsqueeze(-1))
    trace = own - _trace_of_squares(inner.matmul(p._unbroadcasted_scale_tril))
    return 0.5 * (size + trace + distance - p.event_shape[0])


@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _(p, q):
    _same_events(p, q, "(Low Rank) Multivariate Normals")
    size = 2 * _half_log_det(q) - _low_log_det(p)
    distance = batch_mahalanobis(q._unbroadcasted_scale_tril, q.loc - p.loc)
    parts = [p._unbroadcasted_cov_factor, ops.diag_embed(p._unbroadcasted_cov_diag.sqrt())]
    trace = _solved_trace(q._unbroadcasted_scale_tril, parts, p, q)
    return 0.5 * (size + trace + distance - p.event_shape[0])


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _(p, q):
    _same_events(p, q, "Low Rank Multivariate Normals")
    size = _low_log_det(q) - _low_log_det(p)
    distance = mahalanobis(
        q._unbroadcasted_cov_factor, q._unbroadcasted_cov_diag, q.loc - p.loc, q._capacitance_tril
    )
    scaled = q._unbroadcasted_cov_factor.mT / q._unbroadcasted_cov_diag.unsqueeze(-2)
    inner = ops.linalg_solve_triangular(q._capacitance_tril, scaled, upper=False)
    trace = (p._unbroadcasted_cov_diag / q._unbroadcasted_cov_diag).sum(-1)
    trace = trace + _trace_of_squares(
        p._unbroadcasted_cov_factor * q._unbroadcasted_cov_diag.rsqrt().unsqueeze(-1)
    )
    trace = trace - _trace_of_squares(inner * p._unbroadcasted_cov_diag.sqrt().unsqueeze(-2))
    trace = trace - _trace_of_squares(inner.matmul(p._unbroadcasted_cov_factor))
    return 0.5 * (size + trace + distance - p.event_shape[0])


# ---- of two classes: where q has no mass that p has, infinity
def _never(*pairs):
    for p_class, q_class, like in pairs:
        register_kl(p_class, q_class)(lambda p, q, like=like: _infinite(like(p)))


_of = {
    Bernoulli: lambda p: p.probs, Beta: lambda p: p.concentration1, Exponential: lambda p: p.rate,
    ContinuousBernoulli: lambda p: p.probs, Gamma: lambda p: p.concentration, Gumbel: lambda p: p.loc,
    Laplace: lambda p: p.loc, Normal: lambda p: p.loc, Pareto: lambda p: p.scale, Poisson: lambda p: p.rate,
}  # fmt: skip
_never(
    (Beta, Pareto, _of[Beta]), (ContinuousBernoulli, Pareto, _of[ContinuousBernoulli]),
    *((Exponential, q, _of[Exponential]) for q in (Beta, ContinuousBernoulli, Pareto, Uniform)),
    *((Gamma, q, _of[Gamma]) for q in (Beta, ContinuousBernoulli, Pareto, Uniform)),
    *((Gumbel, q, _of[Gumbel]) for q in (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)),
    *((Laplace, q, _of[Laplace]) for q in (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)),
    *((Normal, q, _of[Normal]) for q in (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)),
    *((Pareto, q, _of[Pareto]) for q in (Beta, ContinuousBernoulli, Uniform)),
    *((Poisson, q, _of[Poisson]) for q in (Bernoulli, Binomial)),
)  # fmt: skip


@register_kl(Bernoulli, Poisson)
def _(p, q):
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


@register_kl(Beta, ContinuousBernoulli)
def _(p, q):
    return -p.entropy() - p.mean * q.logits - ops.log1p(-q.probs) - q._log_norm()


@register_kl(Beta, Exponential)
def _(p, q):
    return -p.entropy() - q.rate.log() + q.rate * p.mean


@register_kl(Beta, Gamma)
def _(p, q):
    logs = p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma()
    return -p.entropy() - (
        q.concentration * q.rate.log()
        - q.concentration.lgamma()
        + (q.concentration - 1) * logs
        - q.rate * p.mean
    )


def _against_normal(p, q):
    """-H(p) - E_p[log q] of a normal q, by p's mean and variance."""
    square = q.scale.pow(2) * 2
    second = p.variance + (p.mean - q.loc).pow(2)
    return -p.entropy() + 0.5 * (square * math.pi).log() + second / square


register_kl(Beta, Normal)(_against_normal)
register_kl(Uniform, Normal)(_against_normal)
register_kl(Laplace, Normal)(_against_normal)
register_kl(ContinuousBernoulli, Normal)(_against_normal)


@register_kl(Beta, Uniform)
def _(p, q):
    found = -p.entropy() + (q.high - q.low).log()
    return ops.where((q.low > p.support.lower_bound) | (q.high < p.support.upper_bound), _INF, found)


@register_kl(ContinuousBernoulli, Exponential)
def _(p, q):
    return -p.entropy() - ops.log(q.rate) + q.rate * p.mean


@register_kl(ContinuousBernoulli, Uniform)
def _(p, q):
    found = -p.entropy() + (q.high - q.low).log()
    outside = ops.max(
        ops.stack([ops.ge(q.low, p.support.lower_bound), ops.le(q.high, p.support.upper_bound)]).to(
            found.dtype
        ),
        0,
    )[0]
    return ops.where(outside.bool(), ops.ones_like(found) * _INF, found)


@register_kl(Exponential, Gamma)
def _(p, q):
    ratio = q.rate / p.rate
    return (
        -q.concentration * ops.log(ratio) + ratio + q.concentration.lgamma()
        + q.concentration * euler_constant - (1 + euler_constant)
    )  # fmt: skip


@register_kl(Exponential, Gumbel)
def _(p, q):
    product, shift = p.rate * q.scale, q.loc / q.scale
    return product.log() - 1 + product.reciprocal() + ops.exp(shift) * product / (product + 1) - shift


@register_kl(Exponential, Normal)
def _(p, q):
    square, inverse = q.scale.pow(2), p.rate.pow(-2)
    first = 0.5 * ops.log(p.rate.pow(2) * square * 2 * math.pi)
    return first - 1 + (inverse - q.loc / p.rate + q.loc.pow(2) / 2) / square


@register_kl(Gamma, Exponential)
def _(p, q):
    return -p.entropy() - q.rate.log() + q.rate * p.concentration / p.rate


@register_kl(Gamma, Gumbel)
def _(p, q):
    product, shift = p.rate * q.scale, q.loc / q.scale
    first = (p.concentration - 1) * p.concentration.digamma() - p.concentration.lgamma() - p.concentration
    second = product.log() + p.concentration / product
    return first + second + shift.exp() * (1 + product.reciprocal()).pow(-p.concentration) - shift


@register_kl(Gamma, Normal)
def _(p, q):
    square, inverse = q.scale.pow(2), p.rate.pow(-2)
    first = (
        0.5 * ops.log(inverse.reciprocal() * square * 2 * math.pi)
        - p.concentration
        - p.concentration.lgamma()
    )
    second = (p.concentration - 1) * p.concentration.digamma()
    moments = 0.5 * (p.concentration.pow(2) + p.concentration) * inverse - q.loc * p.concentration / p.rate
    return first + second + (moments + 0.5 * q.loc.pow(2)) / square


@register_kl(Gumbel, Normal)
def _(p, q):
    ratio = p.scale / q.scale
    first = (ratio / math.sqrt(2 * math.pi)).log()
    second = (math.pi * ratio * 0.5).pow(2) / 3
    third = ((p.loc + p.scale * euler_constant - q.loc) / q.scale).pow(2) * 0.5
    return -first + second + third - (euler_constant + 1)


@register_kl(Normal, Gumbel)
def _(p, q):
    shift, ratio, place = p.loc / q.scale, (p.scale / q.scale).pow(2), q.loc / q.scale
    return (
        -0.5 * (ratio * 2 * math.pi).log() - 0.5 + shift - place + ops.exp(-shift + 0.5 * ratio + place)
    )  # fmt: skip


@register_kl(Normal, Laplace)
def _(p, q):
    distance = p.loc - q.loc
    ratio, standard = p.scale / q.scale, distance / p.scale
    mean = math.sqrt(2 / math.pi) * p.scale * ops.exp(-0.5 * standard.pow(2))
    mean = mean + distance * ops.erf(math.sqrt(0.5) * standard)
    return -ratio.log() + mean / q.scale - (0.5 + 0.5 * math.log(0.5 * math.pi))


@register_kl(Pareto, Exponential)
def _(p, q):
    product = p.scale * q.rate
    found = (p.alpha / product).log() - p.alpha.reciprocal() + p.alpha * product / (p.alpha - 1) - 1
    return ops.where(p.alpha <= 1, _INF, found)


@register_kl(Pareto, Gamma)
def _(p, q):
    logs = p.scale.log() + p.alpha.reciprocal()
    found = (
        p.alpha.log() - logs + q.concentration.lgamma() - q.concentration * q.rate.log()
        + (1 - q.concentration) * logs + q.rate * p.alpha * p.scale / (p.alpha - 1) - 1
    )  # fmt: skip
    return ops.where(p.alpha <= 1, _INF, found)


@register_kl(Pareto, Normal)
def _(p, q):
    square, less = 2 * q.scale.pow(2), p.alpha - 1
    first = (math.sqrt(2 * math.pi) * q.scale * p.alpha / p.scale).log() - p.alpha.reciprocal()
    second = p.alpha * p.scale.pow(2) / (p.alpha - 2)
    third = q.loc.pow(2) - 2 * q.loc * p.alpha * p.scale / less
    return ops.where(p.alpha <= 2, _INF, first + (second + third) / square - 1)


@register_kl(Uniform, Beta)
def _(p, q):
    width = p.high - p.low
    first = -width.log() + q.concentration1.lgamma() + q.concentration0.lgamma()
    first = first - (q.concentration1 + q.concentration0).lgamma()
    second = (q.concentration1 - 1) * (_x_log_x(p.high) - _x_log_x(p.low) - width) / width
    third = (q.concentration0 - 1) * (_x_log_x(1 - p.high) - _x_log_x(1 - p.low) + width) / width
    outside = (p.high > q.support.upper_bound) | (p.low < q.support.lower_bound)
    return ops.where(outside, _INF, first - second + third)


@register_kl(Uniform, ContinuousBernoulli)
def _(p, q):
    found = -p.entropy() - p.mean * q.logits - ops.log1p(-q.probs) - q._log_norm()
    outside = (p.high >= q.support.upper_bound) | (p.low <= q.support.lower_bound)
    return ops.where(outside, ops.ones_like(found) * _INF, found)


@register_kl(Uniform, Exponential)
def _(p, q):
    found = q.rate * (p.high + p.low) / 2 - ((p.high - p.low) * q.rate).log()
    return ops.where(p.low < q.support.lower_bound, _INF, found)


@register_kl(Uniform, Gamma)
def _(p, q):
    width = p.high - p.low
    first = q.concentration.lgamma() - q.concentration * q.rate.log() - width.log()
    second = (1 - q.concentration) * (_x_log_x(p.high) - _x_log_x(p.low) - width) / width
    found = first + second + q.rate * (p.high + p.low) / 2
    return ops.where(p.low < q.support.lower_bound, _INF, found)


@register_kl(Uniform, Gumbel)
def _(p, q):
    ratio = q.scale / (p.high - p.low)
    high, low = (p.high - q.loc) / q.scale, (p.low - q.loc) / q.scale
    return ratio.log() + 0.5 * (high + low) - ratio * (ops.exp(-high) - ops.exp(-low))


@register_kl(Uniform, Pareto)
def _(p, q):
    width = p.high - p.low
    first = (q.alpha * q.scale.pow(q.alpha) * width).log()
    second = (_x_log_x(p.high) - _x_log_x(p.low) - width) / width
    return ops.where(p.low < q.support.lower_bound, _INF, second * (q.alpha + 1) - first)
