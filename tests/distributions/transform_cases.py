"""torch.distributions' transforms and constraints."""

from tests.golden.answers import expressions

SETUP = """
import torch.distributions as D
from torch.distributions import constraints as C, transforms as T
t = torch.tensor
def whole(f, x):
    y = f(x)
    back = f.inv(y)
    try:
        size = f.log_abs_det_jacobian(x, y)
    except NotImplementedError:
        size = "none"
    return y, back, size, f.codomain.check(y), f.domain.check(x), f.forward_shape(x.shape), f.inverse_shape(y.shape)
def about(f):
    made = [repr(f), str(f.domain), str(f.codomain), f.bijective]
    for q in ("event_dim", "sign"):
        try:
            made.append(getattr(f, q))
        except Exception as error:
            made.append(type(error).__name__)
    return made
v = t([0.3, -1.2, 0.7])
m = t([[0.4, 0.8, -0.7], [-0.4, -0.6, 0.2], [-0.9, 1.1, -1.1]])
"""
_MAPS = {
    "T.ExpTransform()": "v",
    "T.AbsTransform()": "v",
    "T.AffineTransform(1.0, -2.0)": "v",
    "T.AffineTransform(v, v, 1)": "m",
    "T.AffineTransform(v, 2.0, event_dim=1)": "m",
    "T.SigmoidTransform()": "v",
    "T.SoftplusTransform()": "v",
    "T.TanhTransform()": "v",
    "T.PowerTransform(t(2.0))": "v.abs()",
    "T.PowerTransform(t([-1.0, 0.5, 3.0]))": "v.abs()",
    "T.SoftmaxTransform()": "m",
    "T.StickBreakingTransform()": "m",
    "T.CorrCholeskyTransform()": "m",
    "T.LowerCholeskyTransform()": "m",
    "T.PositiveDefiniteTransform()": "m",
    "T.ReshapeTransform((3,), (3, 1))": "m",
    "T.IndependentTransform(T.ExpTransform(), 1)": "m",
    "T.identity_transform": "v",
    "T.ComposeTransform([T.ExpTransform(), T.AffineTransform(1.0, 3.0)])": "v",
    "T.ComposeTransform([T.AffineTransform(0.0, 2.0), T.StickBreakingTransform()])": "m",
    "T.ComposeTransform([T.ExpTransform(), T.AffineTransform(1.0, 3.0)]).inv": "v.abs() + 2",
    "T.StackTransform([T.ExpTransform(), T.TanhTransform(), T.AbsTransform()], 0)": "v",
    "T.StackTransform([T.ExpTransform(), T.TanhTransform(), T.SigmoidTransform()], 1)": "m",
    "T.CatTransform([T.ExpTransform(), T.TanhTransform()], 0, [1, 2])": "m",
    "T.CatTransform([T.ExpTransform(), T.TanhTransform()], 1, [1, 2])": "m",
    "T.CumulativeDistributionTransform(D.Normal(0.0, 1.0))": "v",
    "T.ExpTransform().inv": "v.abs()",
}
_SETS = {
    "C.real": "v",
    "C.positive": "v",
    "C.nonnegative": "v",
    "C.boolean": "t([0.0, 1.0, 2.0])",
    "C.unit_interval": "v",
    "C.interval(-1.0, 0.5)": "v",
    "C.half_open_interval(0.3, 1.0)": "v",
    "C.greater_than(0.3)": "v",
    "C.greater_than_eq(0.3)": "v",
    "C.less_than(0.5)": "v",
    "C.integer_interval(0, 2)": "t([0.0, 1.5, 2.0, 3.0])",
    "C.nonnegative_integer": "t([0.0, -1.0, 2.5])",
    "C.positive_integer": "t([0.0, 1.0])",
    "C.simplex": "m.softmax(-1)",
    "C.one_hot": "t([[0.0, 1.0], [1.0, 1.0]])",
    "C.lower_triangular": "m.tril()",
    "C.lower_cholesky": "m.tril()",
    "C.positive_definite": "m @ m.mT + torch.eye(3)",
    "C.positive_semidefinite": "m @ m.mT",
    "C.symmetric": "m",
    "C.square": "m",
    "C.real_vector": "m",
    "C.corr_cholesky": "T.CorrCholeskyTransform()(v)",
    "C.multinomial(3)": "t([[1.0, 2.0], [2.0, 2.0]])",
    "C.independent(C.positive, 1)": "m",
    "C.cat([C.positive, C.real], 0, [1, 2])": "v",
    "C.stack([C.positive, C.real, C.positive])": "m",
}
_TARGETS = (
    "C.real",
    "C.positive",
    "C.nonnegative",
    "C.less_than(1.0)",
    "C.half_open_interval(0.0, 2.0)",
    "C.unit_interval",
    "C.interval(t(1.0), t(2.0))",
    "C.positive_definite",
    "C.corr_cholesky",
    "C.independent(C.positive, 1)",
    "C.simplex",
    "C.cat([C.positive, C.real])",
    "C.stack([C.positive, C.real])",
    "C.lower_cholesky",
    "C.boolean",
    "C.real_vector",
)
_errors = (
    "T.AbsTransform().log_abs_det_jacobian(v, v)",
    "T.Transform(cache_size=2)",
    "D.TransformedDistribution(D.Normal(0.0, 1.0), [3])",
    "D.TransformedDistribution(D.Normal(0.0, 1.0), T.StickBreakingTransform())",
    "T.ReshapeTransform((2,), (3,))",
    "T.StickBreakingTransform().forward_shape(())",
    "T.CorrCholeskyTransform().forward_shape((4,))",
    "C.dependent.check(v)",
    "C.dependent.is_discrete",
    "C.is_dependent(D.Uniform.support)",
    "D.biject_to.register(3, lambda c: None)",
    "f = T.ExpTransform(cache_size=1); y = f(v); f.inv(y) is v",
    "T.ExpTransform() == T.ExpTransform()",
    "T.AffineTransform(0.0, 1.0) == T.AffineTransform(0.0, 1.0)",
    "T.ExpTransform().inv.inv == T.ExpTransform()",
    "D.utils.vec_to_tril_matrix(t([1.0, 2.0, 3.0]))",
    "D.utils.tril_matrix_to_vec(m, -1)",
    "D.utils.broadcast_all(1, v)",
    "D.utils.probs_to_logits(t([0.0, 0.2, 1.0]), is_binary=True)",
)
CASES = expressions(
    SETUP,
    [
        *(f"whole({f}, {x})" for f, x in _MAPS.items()),
        *(f"about({f})" for f in _MAPS),
        *(f"{c}.check({x})" for c, x in _SETS.items()),
        *(f"repr({c})" for c in _SETS),
        *(f"{c}.is_discrete, {c}.event_dim" for c in _SETS),
        *(f"repr(D.{r}({c}))" for c in _TARGETS for r in ("biject_to", "transform_to")),
        *_errors,
    ],
)
