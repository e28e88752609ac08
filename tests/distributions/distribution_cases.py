"""torch.distributions: the methods of every class, samples for fixed seeds, and divergences of all pairs."""

from tests.golden.answers import expressions

SETUP = """
import torch.distributions as D
from torch.distributions import constraints as C, transforms as T
t = torch.tensor
def D_(name, *args, **kwargs):
    return getattr(D, name)(*args, **kwargs)
def asked(*questions):
    made = []
    for q in questions:
        try:
            made.append(q())
        except Exception as error:
            made.append(type(error).__name__)
    return made
def samples(d):
    torch.manual_seed(11)
    one = d.sample()
    many = d.sample((3, 2))
    torch.manual_seed(12)
    return one, many, asked(lambda: d.rsample((2,)))
def values(d):
    torch.manual_seed(13)
    v = d.sample((2,))
    return asked(lambda: d.log_prob(v), lambda: d.cdf(v), lambda: d.icdf(torch.full_like(v, 0.3)), lambda: d.log_prob(v[0]))
def moments(d):
    return asked(lambda: d.mean, lambda: d.variance, lambda: d.stddev, lambda: d.mode, d.entropy, d.perplexity)
def shapes(d):
    e = d.expand((2, *d.batch_shape)) if d.batch_shape else d.expand((2,))
    torch.manual_seed(14)
    s = e.sample()
    return (repr(d), str(d.support), d.batch_shape, d.event_shape, d.has_rsample, d.has_enumerate_support, e.batch_shape, s,
            e.log_prob(s), asked(lambda: d.enumerate_support(), lambda: d.enumerate_support(False)))
def slopes(make, *parameters):
    made = []
    for what in (lambda d: d.log_prob(v), lambda d: d.rsample((2,)), lambda d: d.entropy()):
        own = [p.clone().requires_grad_() for p in parameters]
        torch.manual_seed(15)
        v = make(*parameters).sample((2,))
        try:
            out = what(make(*own))
            weights = torch.arange(1.0, out.numel() + 1).reshape(out.shape)
            grads = torch.autograd.grad((out * weights).sum(), own, allow_unused=True)
            made.append(list(grads))
        except Exception as error:
            made.append(type(error).__name__)
    return made
"""

MADE = {
    "Normal": "D.Normal(t([0.5, -1.0]), t([1.0, 2.5]))",
    "Uniform": "D.Uniform(t([0.5, -1.0]), t([1.0, 2.5]))",
    "Bernoulli": "D.Bernoulli(t([0.3, 0.9, 0.5]))",
    "BernoulliLogits": "D.Bernoulli(logits=t([-1.0, 0.4]))",
    "Beta": "D.Beta(t([0.5, 2.0]), t([3.0, 1.5]))",
    "BetaNumbers": "D.Beta(2.0, 3.0)",
    "Binomial": "D.Binomial(5, t([0.3, 0.8]))",
    "BinomialLogits": "D.Binomial(t([3.0, 4.0]), logits=t([0.3, -0.8]))",
    "Categorical": "D.Categorical(t([[0.3, 0.5, 0.2], [1.0, 2.0, 1.0]]))",
    "CategoricalLogits": "D.Categorical(logits=t([0.3, 0.5, -0.2]))",
    "OneHotCategorical": "D.OneHotCategorical(t([0.3, 0.5, 0.2]))",
    "StraightThrough": "D.OneHotCategoricalStraightThrough(t([[0.3, 0.5, 0.2]]))",
    "Cauchy": "D.Cauchy(t([0.5, -1.0]), t([1.0, 2.5]))",
    "Chi2": "D.Chi2(t([1.0, 4.5]))",
    "ContinuousBernoulli": "D.ContinuousBernoulli(t([0.3, 0.5, 0.9]))",
    "ContinuousBernoulliLogits": "D.ContinuousBernoulli(logits=t([0.3, 0.0, -2.0]))",
    "Dirichlet": "D.Dirichlet(t([[0.5, 2.0, 1.0], [3.0, 1.5, 2.0]]))",
    "Exponential": "D.Exponential(t([0.5, 2.0]))",
    "FisherSnedecor": "D.FisherSnedecor(t([3.0, 5.0]), t([4.5, 2.0]))",
    "Gamma": "D.Gamma(t([0.5, 2.0]), t([3.0, 1.5]))",
    "GeneralizedPareto": "D.GeneralizedPareto(t([0.0, 1.0, -1.0]), t([1.0, 2.0, 1.5]), t([0.25, 0.0, -0.3]))",
    "Geometric": "D.Geometric(t([0.3, 0.8]))",
    "Gumbel": "D.Gumbel(t([0.5, -1.0]), t([1.0, 2.5]))",
    "GumbelNumbers": "D.Gumbel(0.5, 2.0)",
    "HalfCauchy": "D.HalfCauchy(t([1.0, 2.5]))",
    "HalfNormal": "D.HalfNormal(t([1.0, 2.5]))",
    "Independent": "D.Independent(D.Normal(torch.zeros(2, 3), torch.ones(3)), 1)",
    "InverseGamma": "D.InverseGamma(t([1.5, 3.0]), t([3.0, 1.5]))",
    "Kumaraswamy": "D.Kumaraswamy(t([0.5, 2.0]), t([3.0, 1.5]))",
    "LKJCholesky": "D.LKJCholesky(3, t([0.7, 1.5]))",
    "Laplace": "D.Laplace(t([0.5, -1.0]), t([1.0, 2.5]))",
    "LogNormal": "D.LogNormal(t([0.5, -1.0]), t([1.0, 0.5]))",
    "LogisticNormal": "D.LogisticNormal(t([0.5, -1.0]), t([1.0, 0.5]))",
    "LowRank": "D.LowRankMultivariateNormal(t([0.5, -1.0]), t([[1.0], [0.5]]), t([1.0, 2.0]))",
    "Mixture": "D.MixtureSameFamily(D.Categorical(t([0.3, 0.7])), D.Normal(t([0.0, 3.0]), t([1.0, 0.5])))",
    "MixtureOfVectors": "D.MixtureSameFamily(D.Categorical(t([0.3, 0.7])), "
    "D.Independent(D.Normal(torch.arange(6.0).reshape(2, 3), torch.ones(3)), 1))",
    "Multinomial": "D.Multinomial(4, t([[0.3, 0.5, 0.2], [1.0, 2.0, 1.0]]))",
    "MultivariateNormal": "D.MultivariateNormal(t([0.5, -1.0]), t([[2.0, 0.5], [0.5, 1.0]]))",
    "MultivariateNormalPrecision": "D.MultivariateNormal(torch.zeros(3, 2), precision_matrix=t([[2.0, 0.5], [0.5, 1.0]]))",
    "MultivariateNormalFactor": "D.MultivariateNormal(t([0.5, -1.0]), scale_tril=t([[2.0, 0.0], [0.5, 1.0]]))",
    "NegativeBinomial": "D.NegativeBinomial(t([3.0, 5.0]), t([0.3, 0.8]))",
    "Pareto": "D.Pareto(t([1.0, 2.0]), t([3.0, 1.5]))",
    "Poisson": "D.Poisson(t([0.5, 12.0]))",
    "RelaxedBernoulli": "D.RelaxedBernoulli(t(0.7), t([0.3, 0.8]))",
    "RelaxedOneHotCategorical": "D.RelaxedOneHotCategorical(t(0.7), t([0.3, 0.5, 0.2]))",
    "StudentT": "D.StudentT(t([3.0, 1.5]), t([0.5, -1.0]), t([1.0, 2.0]))",
    "Transformed": "D.TransformedDistribution(D.Normal(t([0.5, -1.0]), 1.0), "
    "[T.ExpTransform(), T.AffineTransform(1.0, -2.0)])",
    "TransformedVectors": "D.TransformedDistribution(D.Normal(torch.zeros(2, 3), 1.0), [T.StickBreakingTransform()])",
    "VonMises": "D.VonMises(t([0.5, -1.0]), t([1.0, 6.5]))",
    "Weibull": "D.Weibull(t([1.0, 2.0]), t([3.0, 1.5]))",
    "Wishart": "D.Wishart(t([3.5]), t([[2.0, 0.5], [0.5, 1.0]]))",
    "Doubles": "D.Gamma(t([0.5, 2.0], dtype=torch.float64), t([3.0, 1.5], dtype=torch.float64))",
}
_answers = [f"{q}({made})" for made in MADE.values() for q in ("samples", "values", "moments", "shapes")]

_VECTORS = "t([0.5, 2.0]), t([3.0, 1.5])"
_slopes = [
    *(
        f"slopes(D.{n}, {_VECTORS})"
        for n in (
            "Normal",
            "Beta",
            "Cauchy",
            "Gamma",
            "Gumbel",
            "InverseGamma",
            "Kumaraswamy",
            "Laplace",
            "LogNormal",
            "Pareto",
            "Weibull",
            "FisherSnedecor",
        )
    ),
    *(
        f"slopes(D.{n}, t([0.5, 0.8]))"
        for n in (
            "Bernoulli",
            "Chi2",
            "ContinuousBernoulli",
            "Exponential",
            "Geometric",
            "HalfCauchy",
            "HalfNormal",
            "Poisson",
            "StudentT",
        )
    ),
    "slopes(D.Dirichlet, t([0.5, 2.0, 1.0]))",
    "slopes(D.Categorical, t([0.5, 2.0, 1.0]))",
    "slopes(lambda a, b: D.MultivariateNormal(a, b @ b.mT + torch.eye(2)), t([0.5, 2.0]), t([[1.0, 0.5], [0.2, 1.5]]))",
    "slopes(lambda a, b: D.LowRankMultivariateNormal(a, b, torch.ones(2)), t([0.5, 2.0]), t([[1.0], [0.2]]))",
    "slopes(lambda a: D.RelaxedBernoulli(t(0.5), a), t([0.5, 0.2]))",
    "slopes(lambda a: D.RelaxedOneHotCategorical(t(0.5), a), t([0.5, 0.2, 0.1]))",
]

_SINGLE = {
    "Bernoulli": ("t([0.3, 0.9])", "t([0.6, 0.2])"),
    "Binomial": ("3, t([0.3, 0.9])", "3, t([0.6, 0.2])"),
    "Beta": ("t([0.5, 2.0]), t([3.0, 1.5])", "t([1.5, 1.0]), t([2.0, 2.5])"),
    "Categorical": ("t([0.3, 0.5, 0.2])", "t([0.1, 0.5, 0.4])"),
    "Cauchy": ("t([0.5, 2.0]), t([3.0, 1.5])", "0.0, 1.0"),
    "ContinuousBernoulli": ("t([0.3, 0.9])", "t([0.6, 0.2])"),
    "Dirichlet": ("t([0.5, 2.0])", "t([1.5, 1.0])"),
    "Exponential": ("t([0.5, 2.0])", "t([1.5, 1.0])"),
    "Gamma": ("t([0.5, 2.0]), t([3.0, 1.5])", "t([1.5, 1.0]), t([2.0, 2.5])"),
    "Geometric": ("t([0.3, 0.9])", "t([0.6, 0.2])"),
    "Gumbel": ("t([0.5, 2.0]), t([3.0, 1.5])", "t([1.5, 1.0]), t([2.0, 2.5])"),
    "HalfNormal": ("t([0.5, 2.0])", "t([1.5, 1.0])"),
    "Laplace": ("t([0.5, 2.0]), t([3.0, 1.5])", "t([1.5, 1.0]), t([2.0, 2.5])"),
    "LogNormal": ("t([0.5, 2.0]), t([3.0, 1.5])", "t([1.5, 1.0]), t([2.0, 2.5])"),
    "Normal": ("t([0.5, 2.0]), t([3.0, 1.5])", "t([1.5, 1.0]), t([2.0, 2.5])"),
    "OneHotCategorical": ("t([0.3, 0.5, 0.2])", "t([0.1, 0.5, 0.4])"),
    "Pareto": ("t([1.5, 2.0]), t([3.0, 2.5])", "t([1.0, 2.5]), t([2.0, 2.5])"),
    "Poisson": ("t([0.5, 2.0])", "t([1.5, 1.0])"),
    "Uniform": ("t([0.5, 0.2]), t([1.0, 0.7])", "t([0.1, 0.1]), t([2.0, 0.5])"),
    "Chi2": ("t([0.5, 2.0])", "t([1.5, 1.0])"),
    "StudentT": ("t([0.5, 2.0])", "t([1.5, 1.0])"),
    "VonMises": ("t(0.5), t(1.0)", "t(0.5), t(2.0)"),
}
_pairs = [
    f"D.kl_divergence(D.{p}({_SINGLE[p][0]}), D.{q}({_SINGLE[q][1]}))"
    for p in _SINGLE
    for q in _SINGLE
    if len({"Categorical", "OneHotCategorical", "Dirichlet"} & {p, q}) == 0 or p == q
]
_M = "D.MultivariateNormal(t([0.5, -1.0]), t([[2.0, 0.5], [0.5, 1.0]]))"
_L = "D.LowRankMultivariateNormal(t([0.1, 0.0]), t([[1.0], [0.5]]), t([1.0, 2.0]))"
_pairs += [
    *(
        f"D.kl_divergence({p}, {q})"
        for p in (_M, _L)
        for q in (_M.replace("0.5, -1.0", "1.0, 1.0"), _L.replace("1.0, 2.0", "3.0, 2.0"))
    ),
    "D.kl_divergence(D.Independent(D.Normal(torch.zeros(2, 3), 1.0), 1), D.Independent(D.Normal(torch.ones(2, 3), 2.0), 1))",
    "D.kl_divergence(D.Independent(D.Normal(torch.zeros(2, 3), 1.0), 1), D.Independent(D.Normal(torch.ones(2, 3), 2.0), 2))",
    "D.kl_divergence(D.Bernoulli(t([0.0, 1.0, 0.5])), D.Bernoulli(t([0.0, 0.0, 1.0])))",
]
_registered = [
    "class A(D.Normal): pass; D.kl.register_kl(A, D.Normal)(lambda p, q: t(7.0)); "
    "D.kl_divergence(A(0.0, 1.0), D.Normal(0.0, 1.0))",
]
_refusals = [
    "D.Normal(0.0, -1.0)",
    "D.Normal(t([0.0, 1.0]), t([1.0, -1.0]))",
    "D.Normal(0.0, -1.0, validate_args=False)",
    "D.Normal(0.0, 1.0).log_prob(t(float('nan')))",
    "D.Beta(1.0, 1.0).log_prob(t(2.0))",
    "D.Normal(0.0, 1.0).log_prob(1.0)",
    "D.Normal(t([0.0, 1.0]), 1.0).log_prob(t([1.0, 2, 3]))",
    "D.Dirichlet(t([1.0, 1.0])).log_prob(t([1.0, 0, 0]))",
    "D.Bernoulli(probs=0.5, logits=1.0)",
    "D.Bernoulli()",
    "D.Bernoulli(2.0)",
    "D.Categorical(t(1.0))",
    "D.Categorical(t([-1.0, 2]))",
    "D.Categorical(t([1.0, 1])).log_prob(t(2))",
    "D.Uniform(1.0, 0.0)",
    "D.Uniform(0.0, 1.0).log_prob(t(1.0))",
    "D.MultivariateNormal(t([0.0, 0]), t([[1.0, 2], [2, 1]]))",
    "D.MultivariateNormal(t(0.0), torch.eye(2))",
    "D.MultivariateNormal(t([0.0, 0.0]))",
    "D.MixtureSameFamily(D.Normal(0.0, 1.0), D.Normal(0.0, 1.0))",
    "D.Independent(D.Normal(0.0, 1.0), 1)",
    "D.LKJCholesky(1)",
    "D.Multinomial(t(3), t([0.5, 0.5]))",
    "D.Distribution.set_default_validate_args(3)",
    "D.Normal('a', 1.0)",
    "D.Geometric(t([0.0, 0.5]))",
    "D.Wishart(t(0.5), torch.eye(2))",
    "D.Poisson(1.0).rsample()",
    "from torch.distributions.normal import Normal; Normal is D.Normal",
    "from torch.distributions.studentT import StudentT; StudentT is D.StudentT",
    "sorted(n for n in D.__all__)",
]
CASES = expressions(SETUP, [*_answers, *_slopes, *_pairs, *_registered, *_refusals])
