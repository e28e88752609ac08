"""Fused SwiGLU, scaled masked softmax and rotary embedding."""

from __future__ import annotations

import msadapter
from msadapter.ops import composite, on_ascend, op, recording, t

from ._mapping import ascend
from .attention_tiles import working

MASKED = (
    -10000.0
)  # the score of a masked element, as on the device; a row in which all are masked becomes uniform


def _halves(x, dim: int):
    if x.shape[dim] % 2:
        raise RuntimeError(f"npu_swiglu: dimension {dim} of size {x.shape[dim]} cannot be halved")
    return x.to(working(x.dtype)).chunk(2, dim)


@composite("torch_npu.npu_swiglu_backward(Tensor grad_output, Tensor self, int dim=-1) -> Tensor", forms="f")
def npu_swiglu_backward(grad_output, self, dim):
    """The gradient of npu_swiglu with respect to its input `self`."""
    watched = recording() and (self.requires_grad or grad_output.requires_grad)
    if on_ascend(self) and not watched:
        return t.torch_npu__swiglu_grad(grad_output, self, dim)
    a, b = _halves(self, dim)
    g, s = grad_output.to(a.dtype), t.sigmoid(a)
    return t.cat([g * b * s * (1 + a * (1 - s)), g * a * s], dim).to(self.dtype)


@op("torch_npu._swiglu_grad(Tensor grad_output, Tensor self, int dim) -> Tensor", forms="f", grad=None)
def _swiglu_grad(grad_output, self, dim):
    return ascend("SwigluGrad", grad_output=grad_output, input=self, dim=dim)


@op(
    "torch_npu.npu_swiglu(Tensor self, int dim=-1) -> Tensor",
    forms="f",
    grad={"self": lambda g, self, dim: t.torch_npu_npu_swiglu_backward(g, self, dim)},
)
def npu_swiglu(self, dim):
    """silu(first half) * second half along `dim`, which must have an even size. 16-bit input is computed in float32."""
    if on_ascend(self):
        return ascend("Swiglu", input=self, dim=dim)
    a, b = _halves(self, dim)
    return (t.silu(a) * b).to(self.dtype)


@composite(
    "torch_npu.npu_geglu(Tensor self, int dim=-1, int approximate=1, bool activate_left=False) -> (Tensor, Tensor)",
    forms="f",
)
def npu_geglu(self, dim, approximate, activate_left):
    """Return a * gelu(b) for the halves a and b along `dim`, and gelu(b), which the device keeps for the gradient.

    Args:
        approximate: 0 for the exact function, 1 for the formula with tanh. activate_left: gelu(a) * b instead.

    Raises:
        RuntimeError: the dimension has an odd size, or `approximate` is neither 0 nor 1.
    """
    if approximate not in (0, 1):
        raise RuntimeError(f"npu_geglu: approximate must be 0 or 1, but got {approximate}")
    if self.shape[dim] % 2:
        raise RuntimeError(f"npu_geglu: dimension {dim} of size {self.shape[dim]} cannot be halved")
    kept, gate = self.to(working(self.dtype)).chunk(2, dim)
    if activate_left:
        kept, gate = gate, kept
    activated = t.gelu(gate, approximate="tanh" if approximate else "none")
    return (kept * activated).to(self.dtype), activated.to(self.dtype)


@composite(
    "torch_npu.npu_scaled_masked_softmax(Tensor x, Tensor mask, Scalar scale=1, bool fixed_triu_mask=False) -> Tensor",
    forms="f",
)
def npu_scaled_masked_softmax(x, mask, scale, fixed_triu_mask):
    """The softmax of x * scale over the last dimension, where elements with a true mask have the score -10000.

    Args:
        x: (B, N, S, S'). mask: bool, broadcastable to x. fixed_triu_mask: ignore `mask` and mask the keys after the
            diagonal.

    Raises:
        RuntimeError: the mask is not bool or does not broadcast, or fixed_triu_mask is set and S differs from S'.
    """
    scores = x.to(working(x.dtype)) * scale
    if fixed_triu_mask:
        if x.shape[-1] != x.shape[-2]:
            raise RuntimeError(
                f"npu_scaled_masked_softmax: fixed_triu_mask needs as many keys as queries, but x has the shape {list(x.shape)}"
            )
        mask = msadapter.ones(*x.shape[-2:], dtype=msadapter.bool, device=x.device).triu(1)
    elif mask.dtype != msadapter.bool:
        raise RuntimeError(f"npu_scaled_masked_softmax: mask must be bool, but got {mask.dtype}")
    return t.softmax(scores.masked_fill(mask, MASKED), -1).to(x.dtype)


# ---- rotary embedding

HALF, INTERLEAVED = 0, 1
_MODES = {"half": HALF, "interleave": INTERLEAVED}


def _turned(x, mode: int, back: bool = False):
    """Maps each pair (a, b) to (-b, a), with `back` to (b, -a). Pairs are halves (mode 0) or neighbours (mode 1)."""
    if mode == INTERLEAVED:
        a, b = x[..., 0::2], x[..., 1::2]
        return t.stack([b, -a] if back else [-b, a], -1).flatten(-2)
    a, b = x.chunk(2, -1)
    return t.cat([b, -a] if back else [-b, a], -1)


def _rotary_gradient(g, self, cos, sin, mode, needs):
    if on_ascend(self) and not recording():
        x = self if needs[1] or needs[2] else None
        dx, dcos, dsin = ascend("RotaryPositionEmbeddingGrad", dy=g, cos=cos, sin=sin, dx=x, mode=mode)
        return dx, dcos if needs[1] else None, dsin if needs[2] else None
    computed = working(self.dtype)
    wide = g.to(computed)
    dx = wide * cos + _turned(wide * sin, mode, back=True) if needs[0] else None
    x = self.to(computed) if needs[1] or needs[2] else None
    return dx, wide * x if needs[1] else None, wide * _turned(x, mode) if needs[2] else None


@op(
    "torch_npu.npu_rotary_position_embedding(Tensor self, Tensor cos, Tensor sin, int mode=0) -> Tensor",
    forms="f",
    grad={("self", "cos", "sin"): _rotary_gradient},
)
def npu_rotary_position_embedding(self, cos, sin, mode):
    """Rotary embedding: x * cos + rotated(x) * sin, where rotated maps each pair (a, b) to (-b, a).

    A pair consists of the halves of the last dimension (mode 0) or of neighbours in it (mode 1).

    Raises:
        RuntimeError: the mode is unknown, the last dimension is odd, or cos and sin do not broadcast to x.
    """
    size = self.shape[-1]
    if mode not in (HALF, INTERLEAVED):
        raise RuntimeError(f"npu_rotary_position_embedding: mode must be 0 or 1, but got {mode}")
    if cos.shape != sin.shape or cos.shape[-1] != size or size % 2:
        raise RuntimeError(
            f"npu_rotary_position_embedding: the last dimensions of x {list(self.shape)}, cos {list(cos.shape)} and sin "
            f"{list(sin.shape)} must have one even size"
        )
    if on_ascend(self):
        return ascend("RotaryPositionEmbedding", x=self, cos=cos, sin=sin, mode=mode)
    x = self.to(working(self.dtype))
    return (x * cos + _turned(x, mode) * sin).to(self.dtype)


def _mode_of(rotary_mode: str) -> int:
    if rotary_mode not in _MODES:
        raise RuntimeError(
            f"npu_rotary_mul: rotary_mode must be 'half' or 'interleave', but got {rotary_mode!r}"
        )
    return _MODES[rotary_mode]


@composite(
    "torch_npu.npu_rotary_mul(Tensor self, Tensor r1, Tensor r2, str rotary_mode='half') -> Tensor", forms="f"
)
def npu_rotary_mul(self, r1, r2, rotary_mode):
    """The same as npu_rotary_position_embedding with r1 as cos and r2 as sin."""
    return t.torch_npu_npu_rotary_position_embedding(self, r1, r2, _mode_of(rotary_mode))


@composite(
    "torch_npu.npu_apply_rotary_pos_emb(Tensor query, Tensor key, Tensor cos, Tensor sin, str layout='BSH', "
    "str rotary_mode='half') -> (Tensor, Tensor)",
    forms="f",
)
def npu_apply_rotary_pos_emb(query, key, cos, sin, layout, rotary_mode):
    """Applies the rotary embedding to query and key, both (B, S, N, D), with cos and sin (B, S, 1, D).

    Raises:
        RuntimeError: the layout or the mode is unknown.
    """
    if layout not in ("BSH", "BSND"):
        raise RuntimeError(f"npu_apply_rotary_pos_emb: layout must be BSH or BSND, but got {layout}")
    mode = _mode_of(rotary_mode)
    return tuple(t.torch_npu_npu_rotary_position_embedding(x, cos, sin, mode) for x in (query, key))
