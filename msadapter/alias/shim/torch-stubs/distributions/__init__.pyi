# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.distributions import bernoulli as bernoulli
from torch.distributions import beta as beta
from torch.distributions import binomial as binomial
from torch.distributions import categorical as categorical
from torch.distributions import cauchy as cauchy
from torch.distributions import chi2 as chi2
from torch.distributions import constraint_registry as constraint_registry
from torch.distributions import constraints as constraints
from torch.distributions import continuous_bernoulli as continuous_bernoulli
from torch.distributions import dirichlet as dirichlet
from torch.distributions import distribution as distribution
from torch.distributions import exp_family as exp_family
from torch.distributions import exponential as exponential
from torch.distributions import fishersnedecor as fishersnedecor
from torch.distributions import gamma as gamma
from torch.distributions import generalized_pareto as generalized_pareto
from torch.distributions import geometric as geometric
from torch.distributions import gumbel as gumbel
from torch.distributions import half_cauchy as half_cauchy
from torch.distributions import half_normal as half_normal
from torch.distributions import independent as independent
from torch.distributions import inverse_gamma as inverse_gamma
from torch.distributions import kl as kl
from torch.distributions import kumaraswamy as kumaraswamy
from torch.distributions import laplace as laplace
from torch.distributions import lkj_cholesky as lkj_cholesky
from torch.distributions import log_normal as log_normal
from torch.distributions import logistic_normal as logistic_normal
from torch.distributions import lowrank_multivariate_normal as lowrank_multivariate_normal
from torch.distributions import mixture_same_family as mixture_same_family
from torch.distributions import multinomial as multinomial
from torch.distributions import multivariate_normal as multivariate_normal
from torch.distributions import negative_binomial as negative_binomial
from torch.distributions import normal as normal
from torch.distributions import one_hot_categorical as one_hot_categorical
from torch.distributions import pareto as pareto
from torch.distributions import poisson as poisson
from torch.distributions import relaxed_bernoulli as relaxed_bernoulli
from torch.distributions import relaxed_categorical as relaxed_categorical
from torch.distributions import studentT as studentT
from torch.distributions import transformed_distribution as transformed_distribution
from torch.distributions import transforms as transforms
from torch.distributions import uniform as uniform
from torch.distributions import utils as utils
from torch.distributions import von_mises as von_mises
from torch.distributions import weibull as weibull
from torch.distributions import wishart as wishart
from torch.distributions.bernoulli import Bernoulli as Bernoulli
from torch.distributions.beta import Beta as Beta
from torch.distributions.binomial import Binomial as Binomial
from torch.distributions.categorical import Categorical as Categorical
from torch.distributions.cauchy import Cauchy as Cauchy
from torch.distributions.chi2 import Chi2 as Chi2
from torch.distributions.constraint_registry import biject_to as biject_to
from torch.distributions.constraint_registry import transform_to as transform_to
from torch.distributions.continuous_bernoulli import ContinuousBernoulli as ContinuousBernoulli
from torch.distributions.dirichlet import Dirichlet as Dirichlet
from torch.distributions.distribution import Distribution as Distribution
from torch.distributions.exp_family import ExponentialFamily as ExponentialFamily
from torch.distributions.exponential import Exponential as Exponential
from torch.distributions.fishersnedecor import FisherSnedecor as FisherSnedecor
from torch.distributions.gamma import Gamma as Gamma
from torch.distributions.generalized_pareto import GeneralizedPareto as GeneralizedPareto
from torch.distributions.geometric import Geometric as Geometric
from torch.distributions.gumbel import Gumbel as Gumbel
from torch.distributions.half_cauchy import HalfCauchy as HalfCauchy
from torch.distributions.half_normal import HalfNormal as HalfNormal
from torch.distributions.independent import Independent as Independent
from torch.distributions.inverse_gamma import InverseGamma as InverseGamma
from torch.distributions.kl import kl_divergence as kl_divergence
from torch.distributions.kl import register_kl as register_kl
from torch.distributions.kumaraswamy import Kumaraswamy as Kumaraswamy
from torch.distributions.laplace import Laplace as Laplace
from torch.distributions.lkj_cholesky import LKJCholesky as LKJCholesky
from torch.distributions.log_normal import LogNormal as LogNormal
from torch.distributions.logistic_normal import LogisticNormal as LogisticNormal
from torch.distributions.lowrank_multivariate_normal import LowRankMultivariateNormal as LowRankMultivariateNormal
from torch.distributions.mixture_same_family import MixtureSameFamily as MixtureSameFamily
from torch.distributions.multinomial import Multinomial as Multinomial
from torch.distributions.multivariate_normal import MultivariateNormal as MultivariateNormal
from torch.distributions.negative_binomial import NegativeBinomial as NegativeBinomial
from torch.distributions.normal import Normal as Normal
from torch.distributions.one_hot_categorical import OneHotCategorical as OneHotCategorical
from torch.distributions.one_hot_categorical import OneHotCategoricalStraightThrough as OneHotCategoricalStraightThrough
from torch.distributions.pareto import Pareto as Pareto
from torch.distributions.poisson import Poisson as Poisson
from torch.distributions.relaxed_bernoulli import RelaxedBernoulli as RelaxedBernoulli
from torch.distributions.relaxed_categorical import RelaxedOneHotCategorical as RelaxedOneHotCategorical
from torch.distributions.studentT import StudentT as StudentT
from torch.distributions.transformed_distribution import TransformedDistribution as TransformedDistribution
from torch.distributions.uniform import Uniform as Uniform
from torch.distributions.von_mises import VonMises as VonMises
from torch.distributions.weibull import Weibull as Weibull
from torch.distributions.wishart import Wishart as Wishart

class AbsTransform(Transform):
    codomain: _Any
    domain: _Any
    def __eq__(self, other) -> _Any: ...
class AffineTransform(Transform):
    _event_dim: _Any
    bijective: _Any
    codomain: _Any
    domain: _Any
    event_dim: _Any
    loc: _Any
    scale: _Any
    sign: _Any
    def __eq__(self, other) -> _Any: ...
    def __init__(self, loc, scale, event_dim=..., cache_size=...) -> None: ...
    def forward_shape(self, shape) -> _Any: ...
    def inverse_shape(self, shape) -> _Any: ...
    def log_abs_det_jacobian(self, x, y) -> _Any: ...
    def with_cache(self, cache_size=...) -> _Any: ...
class CatTransform(Transform):
    bijective: _Any
    codomain: _Any
    dim: _Any
    domain: _Any
    event_dim: _Any
    length: _Any
    lengths: _Any
    transforms: _Any
    def __init__(self, tseq, dim=..., lengths=..., cache_size=...) -> None: ...
    def log_abs_det_jacobian(self, x, y) -> _Any: ...
    def with_cache(self, cache_size=...) -> _Any: ...
class ComposeTransform(Transform):
    _inv: _Any
    bijective: _Any
    codomain: _Any
    domain: _Any
    inv: _Any
    parts: _Any
    sign: _Any
    def __call__(self, x) -> _Any: ...
    def __eq__(self, other) -> _Any: ...
    def __init__(self, parts, cache_size=...) -> None: ...
    def __repr__(self) -> _str: ...
    def forward_shape(self, shape) -> _Any: ...
    def inverse_shape(self, shape) -> _Any: ...
    def log_abs_det_jacobian(self, x, y) -> _Any: ...
    def with_cache(self, cache_size=...) -> _Any: ...
class CorrCholeskyTransform(Transform):
    bijective: _Any
    codomain: _Any
    domain: _Any
    def forward_shape(self, shape) -> _Any: ...
    def inverse_shape(self, shape) -> _Any: ...
    def log_abs_det_jacobian(self, x, y, intermediates=...) -> _Any: ...
class CumulativeDistributionTransform(Transform):
    bijective: _Any
    codomain: _Any
    distribution: _Any
    domain: _Any
    sign: _Any
    def __init__(self, distribution, cache_size=...) -> None: ...
    def log_abs_det_jacobian(self, x, y) -> _Any: ...
    def with_cache(self, cache_size=...) -> _Any: ...
class ExpTransform(Transform):
    bijective: _Any
    codomain: _Any
    domain: _Any
    sign: _Any
    def __eq__(self, other) -> _Any: ...
    def log_abs_det_jacobian(self, x, y) -> _Any: ...
class IndependentTransform(Transform):
    base_transform: _Any
    bijective: _Any
    codomain: _Any
    domain: _Any
    reinterpreted_batch_ndims: _Any
    sign: _Any
    def __init__(self, base_transform, reinterpreted_batch_ndims, cache_size=...) -> None: ...
    def __repr__(self) -> _str: ...
    def forward_shape(self, shape) -> _Any: ...
    def inverse_shape(self, shape) -> _Any: ...
    def log_abs_det_jacobian(self, x, y) -> _Any: ...
    def with_cache(self, cache_size=...) -> _Any: ...
class LowerCholeskyTransform(Transform):
    codomain: _Any
    domain: _Any
    def __eq__(self, other) -> _Any: ...
class PositiveDefiniteTransform(Transform):
    codomain: _Any
    domain: _Any
    def __eq__(self, other) -> _Any: ...
class PowerTransform(Transform):
    bijective: _Any
    codomain: _Any
    domain: _Any
    exponent: _Any
    sign: _Any
    def __eq__(self, other) -> _Any: ...
    def __init__(self, exponent, cache_size=...) -> None: ...
    def forward_shape(self, shape) -> _Any: ...
    def inverse_shape(self, shape) -> _Any: ...
    def log_abs_det_jacobian(self, x, y) -> _Any: ...
    def with_cache(self, cache_size=...) -> _Any: ...
class ReshapeTransform(Transform):
    bijective: _Any
    codomain: _Any
    domain: _Any
    in_shape: _Any
    out_shape: _Any
    def __init__(self, in_shape, out_shape, cache_size=...) -> None: ...
    def forward_shape(self, shape) -> _Any: ...
    def inverse_shape(self, shape) -> _Any: ...
    def log_abs_det_jacobian(self, x, y) -> _Any: ...
    def with_cache(self, cache_size=...) -> _Any: ...
class SigmoidTransform(Transform):
    bijective: _Any
    codomain: _Any
    domain: _Any
    sign: _Any
    def __eq__(self, other) -> _Any: ...
    def log_abs_det_jacobian(self, x, y) -> _Any: ...
class SoftmaxTransform(Transform):
    codomain: _Any
    domain: _Any
    def __eq__(self, other) -> _Any: ...
    def forward_shape(self, shape) -> _Any: ...
    def inverse_shape(self, shape) -> _Any: ...
class SoftplusTransform(Transform):
    bijective: _Any
    codomain: _Any
    domain: _Any
    sign: _Any
    def __eq__(self, other) -> _Any: ...
    def log_abs_det_jacobian(self, x, y) -> _Any: ...
class StackTransform(Transform):
    bijective: _Any
    codomain: _Any
    dim: _Any
    domain: _Any
    transforms: _Any
    def __init__(self, tseq, dim=..., cache_size=...) -> None: ...
    def log_abs_det_jacobian(self, x, y) -> _Any: ...
    def with_cache(self, cache_size=...) -> _Any: ...
class StickBreakingTransform(Transform):
    bijective: _Any
    codomain: _Any
    domain: _Any
    def __eq__(self, other) -> _Any: ...
    def forward_shape(self, shape) -> _Any: ...
    def inverse_shape(self, shape) -> _Any: ...
    def log_abs_det_jacobian(self, x, y) -> _Any: ...
class TanhTransform(Transform):
    bijective: _Any
    codomain: _Any
    domain: _Any
    sign: _Any
    def __eq__(self, other) -> _Any: ...
    def log_abs_det_jacobian(self, x, y) -> _Any: ...
class Transform:
    _cache_size: _Any
    _cached_x_y: _Any
    _inv: _Any
    bijective: _Any
    codomain: _Any
    domain: _Any
    event_dim: _Any
    inv: _Any
    sign: _Any
    def __call__(self, x) -> _Any: ...
    def __eq__(self, other) -> _Any: ...
    def __init__(self, cache_size=...) -> None: ...
    def __ne__(self, other) -> _Any: ...
    def __repr__(self) -> _str: ...
    def forward_shape(self, shape) -> _Any: ...
    def inverse_shape(self, shape) -> _Any: ...
    def log_abs_det_jacobian(self, x, y) -> _Any: ...
    def with_cache(self, cache_size=...) -> _Any: ...
identity_transform: _Any
