"""What hypothesis draws for npu_fusion_attention: calls of every kind, and what their masks and biases mean."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from hypothesis import strategies as st

import msadapter as torch
from tests.kernels import reference

TRIANGLE = torch.ones(2048, 2048, dtype=torch.bool).triu(1)
PREFIXES = torch.cat([TRIANGLE, torch.arange(2048).expand(1024, -1) >= 1024])
DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16]


@dataclass
class Case:
    """A call: the lengths (queries, keys) of each sequence, and everything else that was drawn."""

    layout: str
    lengths: list
    kv: int
    group: int
    size: int
    value_size: int
    dtype: object
    mode: int
    pre: int
    following: int
    seed: int
    tail: int = 0  # tokens behind the last sequence (TND)
    prefix: list | None = None
    mask: object = None  # what the call gets
    hidden: list = field(default_factory=list)  # what it means: (N or 1, Sq, Skv) of each sequence
    pse: object = None
    pse_type: int = 1
    starts: tuple = (0, 0)
    bias: list = field(default_factory=list)  # what pse adds, before and after scaling, for each sequence
    keep: float = 1.0
    scale: float = 0.4
    rope: int = 0  # columns of query and key that are given apart

    @property
    def heads(self) -> int:
        return self.kv * self.group

    @property
    def packed(self) -> bool:
        return self.layout == "TND"

    def arguments(self) -> dict:
        ends = (
            [np.cumsum([pair[i] for pair in self.lengths]).tolist() for i in (0, 1)]
            if self.packed
            else [None, None]
        )
        return {
            "pse": self.pse,
            "atten_mask": self.mask,
            "keep_prob": self.keep,
            "prefix": self.prefix,
            "actual_seq_qlen": ends[0],
            "actual_seq_kvlen": ends[1],
            "sparse_mode": self.mode,
        }


def rounded(x, dtype):
    """x rounded to the dtype, as float64."""
    return torch.tensor(np.ascontiguousarray(x)).to(dtype).double().numpy()


def joined(parts, layout, tail=0):
    """The arrays (1, N, S, D) of all sequences as one array of the layout. TND gets `tail` further tokens."""
    if layout == "TND":
        n, d = parts[0].shape[1], parts[0].shape[3]
        rows = [x[0].transpose(1, 0, 2) for x in parts]
        return np.concatenate([*rows, np.full((tail, n, d), 0.5)])
    x = np.concatenate(parts)
    b, n, s, d = x.shape
    if layout == "BNSD":
        return x
    if layout == "BSND":
        return x.transpose(0, 2, 1, 3)
    flat = x.transpose(0, 2, 1, 3).reshape(b, s, n * d)
    return flat if layout == "BSH" else flat.transpose(1, 0, 2)


def strided(array, dtype, kind: str):
    """A tensor with these numbers: contiguous, with its axes in reverse order in memory, or with every second element of its
    memory.
    """
    x = torch.tensor(np.ascontiguousarray(array)).to(dtype)
    if kind == "turned":
        order = list(range(x.dim() - 1, -1, -1))
        x = x.permute(order).contiguous().permute(order)
    elif kind == "gaps":
        x = torch.stack([x, torch.full_like(x, 7)], -1).flatten(-2)[..., ::2]
    return x


def draw_mask(data, case: Case, r) -> None:
    """The mask of the call and, computed independently of the kernel, the scores that it hides."""
    queries, keys = (max((pair[i] for pair in case.lengths), default=0) for i in (0, 1))
    batch, mode = len(case.lengths), case.mode
    flags = np.zeros((1, 1, queries, keys), bool)
    if mode in (0, 1, 5):
        shapes = [(queries, keys)]
        if not case.packed:
            shapes += [(batch, case.heads, queries, keys), (batch, 1, queries, keys), (1, 1, queries, keys)]
        shape = data.draw(st.sampled_from(shapes))
        given = r.random(shape) < data.draw(st.sampled_from([0.2, 0.9]))
        if mode == 5:  # the whole mask is given beside the prefix
            shape = (batch, 1, queries, keys)
            given = np.stack(
                [
                    reference.hidden(5, *pair, 0, 0, True, n)
                    for pair, n in zip(case.lengths, case.prefix, strict=True)
                ]
            )[:, None]
        if mode == 0 and data.draw(st.booleans()):
            given = None
        if given is not None:
            case.mask, flags = torch.tensor(given), given.reshape((1,) * (4 - given.ndim) + given.shape)
    else:
        case.mask = PREFIXES if mode == 6 else TRIANGLE
        if data.draw(st.booleans()):
            case.mask = case.mask[None, None]
    if data.draw(st.integers(0, 7)) == 5:  # a mode says nothing without its mask
        case.mask, flags = None, np.zeros((1, 1, queries, keys), bool)
    if case.mask is not None and data.draw(st.booleans()):
        case.mask = case.mask.to(torch.uint8)
    filled = [i for i, (a, _) in enumerate(case.lengths) if a]
    special = {7: filled[-1], 8: filled[0]}.get(mode) if filled else None
    for i, (a, b) in enumerate(case.lengths):
        by_mode = reference.hidden(
            mode,
            a,
            b,
            case.pre,
            case.following,
            case.mask,
            case.prefix[i] if case.prefix else 0,
            i == special,
        )
        own = flags[min(i, len(flags) - 1), :, :a, :b]
        case.hidden.append(own if mode == 5 else own | by_mode)  # without a mask by_mode hides nothing


def draw_bias(data, case: Case, r) -> None:
    """pse in one of its forms, and the bias that it adds to the scores."""
    batch, n = len(case.lengths), case.heads
    case.bias = [(0.0, 0.0)] * batch
    square = all(a == b for a, b in case.lengths)
    forms = ["none"] if case.mode in (7, 8) else ["none", "slopes"]
    if not case.packed:
        forms.append("given")
    if square and case.mode in (2, 3) and case.mask is not None:
        forms.append("rows")
    form = data.draw(st.sampled_from(forms))
    if form == "none":
        return
    if form == "slopes":
        case.pse_type = data.draw(st.sampled_from([2, 3]))
        case.starts = data.draw(st.integers(0, 3)), data.draw(st.integers(0, 3))
        slopes = r.random((batch, n) if data.draw(st.booleans()) else (n,)).astype(np.float32)
        case.pse = torch.tensor(slopes)
        for i, (a, b) in enumerate(case.lengths):
            far = np.abs(np.arange(a)[:, None] + case.starts[0] - np.arange(b) - case.starts[1]).astype(float)
            own = (slopes[i] if slopes.ndim == 2 else slopes).astype(float)[:, None, None]
            case.bias[i] = 0.0, -own * (np.sqrt(far) if case.pse_type == 3 else far)
        return
    case.pse_type = data.draw(st.sampled_from([0, 1]))
    several = data.draw(st.booleans())
    if form == "given":
        a, b = case.lengths[0]
        shape = (batch if several else 1, n, 1 if data.draw(st.booleans()) else a, b)
        values = rounded(r.standard_normal(shape), case.dtype)
        found = [values[i if several else 0] for i in range(batch)]
    else:  # the last 1024 rows of ALiBi over as many keys as the longest sequence has
        keys = max(b for _, b in case.lengths)
        slopes = r.random((batch if several else 1, n, 1, 1))
        rows = np.arange(keys - 1024, keys)[:, None]
        values = rounded(-slopes * np.abs(rows - np.arange(keys)), case.dtype)
        found = []
        for i, (a, b) in enumerate(case.lengths):
            far = (np.arange(a)[:, None] - np.arange(b)).clip(0)
            found.append(values[i if several else 0][:, -1][:, keys - 1 - far])
    case.pse = torch.tensor(values).to(case.dtype)
    case.bias = [(x, 0.0) if case.pse_type else (0.0, x) for x in found]


@st.composite
def cases(draw):
    """Draws a call of any kind that the operator supports."""
    data = draw(st.data())
    number = lambda low, high: data.draw(st.integers(low, high))  # noqa: E731
    layout = data.draw(st.sampled_from(["BSH", "SBH", "BSND", "BNSD", "TND"]))
    packed = layout == "TND"
    mode = data.draw(st.sampled_from([0, 1, 2, 3, 4, 6, 7, 8] if packed else [0, 1, 2, 3, 4, 5, 6]))
    square = data.draw(st.booleans())
    if packed:
        lengths = [(number(0, 6), number(0, 7)) for _ in range(number(1, 4))]
    else:
        lengths = [(number(1, 9), number(1, 9))] * number(1, 3)
    lengths = [(a, a) for a, _ in lengths] if square else lengths
    case = Case(
        layout,
        lengths,
        number(1, 3),
        number(1, 3),
        number(1, 5),
        number(1, 5),
        data.draw(st.sampled_from(DTYPES)),
        mode,
        number(-2, 9),
        number(-2, 9),
        number(0, 10**6),
        tail=number(0, 2) if packed else 0,
        keep=data.draw(st.sampled_from([1.0, 1.0, 0.6])),
    )
    if layout in ("BSND", "BNSD", "TND") and case.size > 1:
        case.rope = number(0, case.size - 1)
    r = np.random.default_rng(case.seed)
    if mode in (5, 6):
        case.prefix = [number(0, b) for _, b in lengths]
    draw_mask(data, case, r)
    draw_bias(data, case, r)
    kinds = [data.draw(st.sampled_from(["plain", "turned", "gaps"])) for _ in range(4)]
    tile = data.draw(st.sampled_from([(3, 40), (256, 1 << 21)]))
    return case, kinds, tile
