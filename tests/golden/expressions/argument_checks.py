"""Deprecated signatures, arguments that tensor functions refuse, and the warnings of deprecated calls."""

SETUP = """
import warnings
t = torch.arange(4.0).reshape(2, 2)
v = torch.ones(2)
b = t[None]
byte = torch.ones(2, 2, dtype=torch.uint8)
real = torch.zeros(2, 2)
at = torch.tensor([0, 1])
g = torch.tensor(1.0, requires_grad=True)
def wide():
    return torch.zeros(2).expand(2, 2)
def told(f):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        f()
    return [(w.category.__name__, str(w.message).splitlines()[0].split(". ")[0].rstrip(".:")) for w in caught]
"""

_OLDER = [
    *(
        f"torch.{call}"
        for call in (
            "add(t, 2, t)",
            "add(t, 2, t, out=torch.empty(2, 2))",
            "sub(t, 2, t)",
            "addcmul(t, 2, t, t)",
            "addcdiv(t, 2, t, t + 1)",
            "addmm(2, t, t, t)",
            "addmm(2, t, 3, t, t)",
            "addmv(2, v, t, v)",
            "addmv(2, v, 3, t, v)",
            "addr(2, t, v, v)",
            "addr(2, t, 3, v, v)",
            "addbmm(2, t, b, b)",
            "addbmm(2, t, 3, b, b)",
            "baddbmm(2, b, b, b)",
            "baddbmm(2, b, 3, b, b)",
        )
    ),
    "t.add(2, t)",
    "t.add_(2, t)",
    "t.sub(2j, t)",
    "t.addcmul(2, t, t)",
    "t.addcdiv_(2, t, t + 1)",
    "t.addmm(2, t, t)",
    "t.addmm(2, 3, t, t)",
    "t.clone().addmm_(2, t, t)",
    "b.baddbmm(2, 3, b, b)",
    "!torch.addcmul(t, 2, t, t, value=3)",
    "!torch.add(t, t, t)",
    "!torch.addmm(t, 2, t, t, 5)",
    "!torch.mul(t, 2, t)",
    "torch.add(t, t, alpha=g)",
    "torch.addcmul(t, t, t, value=g)",
    "torch.full((2,), g)",
    "torch.full((2,), v[:1])",
    "torch.full((2,), torch.tensor(3))",
    "torch.isclose(t, t, g)",
    "torch.isclose(t, t, torch.tensor(1))",
    "torch.isclose(t, t, torch.tensor(1.5), torch.tensor(1.0))",
    "torch.isclose(t, t, v)",
    "torch.nn.functional.dropout(t, g)",
    "torch.sqrt()",
    "torch.tril(diagonal=1)",
]
_MASKS = [
    "t.masked_fill(byte, 1)",
    "t.masked_fill_(byte, 1)",
    "t.masked_fill(real, 1)",
    "t.masked_fill(at, 1)",
    "t.masked_select(byte)",
    "t.masked_select(real)",
    "t.masked_scatter(byte, t)",
    "t.masked_scatter_(real, t)",
    "t[byte]",
    "t[byte[0]]",
    "t[byte[0], 0]",
    "t[torch.tensor(1, dtype=torch.uint8)]",
    "t[torch.tensor(0, dtype=torch.uint8)]",
    "t[byte] = 1",
    "t[byte] = v[:1]",
    "t[torch.tensor(1, dtype=torch.uint8)] = 5; t",
    "told(lambda: t[byte])",
    "wide().fill_(2)",
    "wide().fill_(torch.tensor(2.0))",
    "wide().zero_()",
    "told(lambda: wide().masked_fill_(t > 0, 2))",
    "told(lambda: wide().index_fill_(0, at, 2))",
    "told(lambda: wide().index_put_((at,), v))",
    "told(lambda: wide().fill_(2))",
    "told(lambda: t.masked_fill_(t > 0, 2))",
    "torch.nn.functional.threshold(torch.ones(1).expand(3), 0.5, 0.5, inplace=True)",
]
_INDEXED = [
    "t.index_add(0, at[:1], t)",
    "t.clone().index_add_(0, torch.tensor([0, 1, 1]), t)",
    "t.index_add(0, at, torch.ones(2, 3))",
    "t.index_add(0, at, v)",
    "t.index_add(0, at[None], t)",
    "t.index_add(0, at.float(), t)",
    "t.index_add(0, at + 4, t)",
    "t.index_add(0, at, t.double())",
    "torch.tensor(1.0).index_add(0, at[:1], torch.tensor([2.0]))",
    "torch.tensor(1.0).index_add(0, at[:1], torch.ones(1, 1, 1))",
    "torch.ones(5, 0).index_select(0, at)",
    "torch.ones(5, 0).index_select(0, at + 4)",
    "torch.ones(5, 0).index_select(1, at)",
    "torch.ones(0, 5).index_select(0, at[:0])",
    "t.put_(at, t[0])",
    "t.scatter_(0, at[None], t)",
    "at = at[None]; at.scatter_(0, at, at.clone())",
    "at = at[None]; at.scatter_(0, at.clone(), at)",
    "wide().scatter_(0, at[None], 1.0)",
    "wide().put_(at, v)",
    "torch.diff(t, prepend=v)",
    "torch.diff(t, prepend=torch.ones(3, 3))",
    "torch.diff(t, append=torch.ones(3, 3))",
    "torch.diff(t, prepend=torch.ones(2, 3), append=v[:, None])",
]
_OUT = [
    "torch.cumsum(t, 0, out=torch.empty(2, 2, dtype=torch.int16))",
    "torch.cumprod(t, 0, out=torch.empty(2, 2, dtype=torch.int16))",
    "torch.cummax(t, 0, out=(torch.empty(2, 2, dtype=torch.int16), torch.empty(2, 2, dtype=torch.int64)))",
    "torch.cummin(t, 0, out=(torch.empty(2, 2), torch.empty(2, 2)))",
    "torch.logcumsumexp(t, 0, out=torch.empty(2, 2, dtype=torch.float64))",
    "torch.bernoulli(real, out=torch.empty(2, 2, dtype=torch.int16))",
    "torch.bernoulli(real + 1, out=torch.empty(2, 2, dtype=torch.bool))",
]
_ELEMENTS = [
    "t.apply_('str')",
    "t.apply_(lambda a: 's')",
    "t.apply_(lambda a: None)",
    "t.apply_(lambda a: 1j)",
    "t.apply_(lambda a: a * 2)",
    "g.apply_(lambda a: 1)",
    "byte.apply_(lambda a: 1.5)",
    "t.map_(t, 'str')",
    "t.map_(t, lambda a, b: 's')",
    "!t.map_(torch.ones(3), lambda a, b: a)",
    "t.map_(byte, lambda a, b: a)",
    "t.map_(v, lambda a, b: a + b)",
    "t.map_(1, lambda a, b: a)",
    "g.map_(g, lambda a, b: a)",
    "t.map_(g, lambda a, b: a)",
    "t.map2_(t, g, lambda a, b, c: a)",
    "t.map2_(t, v, lambda a, b, c: a + b * c)",
    "z = torch.complex(t, t); z.real = 0; z.imag = v; z",
    "z = torch.complex(t, t); z.real = z.imag * 3; z",
    "t.real = v; t",
    "t.imag = v",
]
_ORDERS = [
    f"{tensor}.dim_order(ambiguity_check={check})"
    for tensor in (
        "torch.ones(2, 3)",
        "torch.ones(2, 1, 3)",
        "torch.ones(2, 2, 2, 1)",
        "torch.ones(1, 1, 1, 1)",
        "g",
    )
    for check in (
        "True",
        "False",
        "[torch.contiguous_format, torch.channels_last]",
        "'x'",
        "3",
    )
]
_REPEATS = [
    *(f"!torch.repeat_interleave(v, {repeats})" for repeats in ("[1, 2]", "(1, 2)", "2.0", "True", "'a'")),
    "!v.repeat_interleave([1, 2])",
    "!v.repeat_interleave(repeats=[1, 2], dim=0)",
    "!at.repeat_interleave(dim=0)",
    "torch.repeat_interleave(at)",
    "v.repeat_interleave(__import__('numpy').int64(2))",
    "v.repeat_interleave(torch.tensor(2))",
]
CASES = [*_OLDER, *_MASKS, *_INDEXED, *_OUT, *_ELEMENTS, *_ORDERS, *_REPEATS]
