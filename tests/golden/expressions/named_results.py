"""The types of named results, torch.return_types: their names, members, constructors, copies and containers."""

SETUP = """
import copy, io, pickle
from torch.utils import _pytree
m = torch.tensor([[2.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 4.0]])
x = torch.tensor([[1.0, 3.0], [2.0, 0.0]])
r = x.max(0)
kind = type(r)
three = lambda: (torch.empty(3, 3), torch.empty(3), torch.empty(3, 3))
two = lambda: (torch.empty(2), torch.empty(2, dtype=torch.long))
def about(value):
    made = type(value)
    return made.__module__, made.__name__, made.__match_args__, getattr(torch.return_types, made.__name__) is made
def saved(value):
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return torch.load(file, weights_only=False)
"""

_MADE = (
    *(
        f"torch.linalg.{call}"
        for call in (
            "cholesky_ex(m)",
            "eig(m)",
            "eigh(m)",
            "inv_ex(m)",
            "ldl_factor(m)",
            "ldl_factor_ex(m)",
            "lstsq(m, m)",
            "lu(m)",
            "lu_factor(m)",
            "lu_factor_ex(m)",
            "qr(m)",
            "slogdet(m)",
            "solve_ex(m, m)",
            "svd(m)",
        )
    ),
    *(
        f"torch.{call}"
        for call in (
            "geqrf(m)",
            "triangular_solve(m, m)",
            "svd(m)",
            "qr(m)",
            "slogdet(m)",
            "lu_unpack(*torch.linalg.lu_factor(m))",
            "aminmax(x)",
            "cummax(x, 0)",
            "cummin(x, 0)",
            "frexp(x)",
            "histogram(x)",
            "histogramdd(x, 2)",
            "kthvalue(x, 1)",
            "max(x, 0)",
            "median(x, 0)",
            "min(x, 0)",
            "mode(x, 0)",
            "nanmedian(x, 0)",
            "sort(x, 0)",
            "topk(x, 1)",
        )
    ),
    *(
        f"torch.{name}(x, 0, out=two())"
        for name in ("max", "min", "median", "nanmedian", "mode", "cummax", "sort")
    ),
    "torch.kthvalue(x, 1, 0, out=two())",
    "torch.linalg.svd(m, out=three())",
    "torch.svd(m, out=three())",
    "torch.linalg.qr(m, out=(torch.empty(3, 3), torch.empty(3, 3)))",
    "torch.linalg.slogdet(m, out=(torch.empty(()), torch.empty(())))",
    "torch.frexp(x, out=(torch.empty(2, 2), torch.empty(2, 2, dtype=torch.int32)))",
)
CASES = [
    *(f"about({call})" for call in _MADE),
    "torch.histogram(x).hist.shape",
    "repr(kind((1, 2)))",
    "repr(torch.linalg.qr(torch.eye(2)))",
    "kind(i for i in (1, 2))[1], kind([1, 2]).values, kind(sequence=(1, 2)).indices",
    "kind(1, 2)",
    "kind((1, 2, 3))",
    "kind((1,))",
    "kind()",
    "!kind(values=1, indices=2)",
    "r.n_fields, r.n_sequence_fields, r.n_unnamed_fields",
    *(f"hasattr(r, {name!r})" for name in ("_fields", "_asdict", "_replace", "_make", "__dict__")),
    "!setattr(r, 'values', 1)",
    "r.median",
    "!type('Other', (kind,), {})",
    "kind((1, 2)) == (1, 2), hash(kind((1, 2))) == hash((1, 2)), type(r + (1,)).__name__, type(r[:1]).__name__",
    "about(copy.copy(r))",
    "about(copy.deepcopy(r))",
    "about(saved(r))",
    "[type(a).__name__ for a in torch.utils.data.default_collate([r, r])]",
    "type(torch.utils.data.default_convert(r)).__name__",
    "about(_pytree.tree_map(lambda a: a + 1, r))",
    "len(_pytree.tree_leaves([r, x]))",
    "about(torch.vmap(lambda a: torch.max(a, 0))(x))",
    "about(torch.vmap(lambda a: torch.linalg.eigh(a))(torch.stack([m, m])))",
]
