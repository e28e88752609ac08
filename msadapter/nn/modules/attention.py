"""MultiheadAttention."""

import sys

from ... import ops, overrides
from ..._host.native import load
from ...amp.autocast_mode import is_autocast_enabled
from ...backends import mha
from .. import functional as F
from .. import init
from ..parameter import Parameter
from .linear import NonDynamicallyQuantizableLinear
from .module import Module

__all__ = ["MultiheadAttention"]

_C = load()


def _fused(*args):
    """Return torch._native_multi_head_attention(*args).

    The function is looked up in the finished namespace, so that a program which replaces it there is heeded.
    """
    return sys.modules["msadapter"]._native_multi_head_attention(*args)


class MultiheadAttention(Module):
    """Scaled dot product attention with several heads, and projections of query, key, value and output.

    Inputs are (L, N, E), or (N, L, E) with ``batch_first``, or (L, E) without batch.
    """

    __constants__ = ["batch_first"]

    def __init__(
        self,
        embed_dim,
        num_heads,
        dropout=0.0,
        bias=True,
        add_bias_kv=False,
        add_zero_attn=False,
        kdim=None,
        vdim=None,
        batch_first=False,
        device=None,
        dtype=None,
    ):
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and "
                f"num_heads={num_heads} instead"
            )
        super().__init__()
        self.embed_dim = embed_dim
        self.kdim = kdim if kdim is not None else embed_dim
        self.vdim = vdim if vdim is not None else embed_dim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")

        def make(*shape):
            return Parameter(ops.empty(shape, device=device, dtype=dtype))

        if self._qkv_same_embed_dim:
            self.in_proj_weight = make(3 * embed_dim, embed_dim)
            for name in ("q_proj_weight", "k_proj_weight", "v_proj_weight"):
                self.register_parameter(name, None)
        else:
            self.q_proj_weight = make(embed_dim, embed_dim)
            self.k_proj_weight = make(embed_dim, self.kdim)
            self.v_proj_weight = make(embed_dim, self.vdim)
            self.register_parameter("in_proj_weight", None)
        if bias:
            self.in_proj_bias = make(3 * embed_dim)
        else:
            self.register_parameter("in_proj_bias", None)
        self.out_proj = NonDynamicallyQuantizableLinear(
            embed_dim, embed_dim, bias=bias, device=device, dtype=dtype
        )
        if add_bias_kv:
            self.bias_k = make(1, 1, embed_dim)
            self.bias_v = make(1, 1, embed_dim)
        else:
            self.bias_k = self.bias_v = None
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self):
        if self._qkv_same_embed_dim:
            init.xavier_uniform_(self.in_proj_weight)
        else:
            init.xavier_uniform_(self.q_proj_weight)
            init.xavier_uniform_(self.k_proj_weight)
            init.xavier_uniform_(self.v_proj_weight)
        if self.in_proj_bias is not None:
            init.constant_(self.in_proj_bias, 0.0)
            init.constant_(self.out_proj.bias, 0.0)
        if self.bias_k is not None:
            init.xavier_normal_(self.bias_k)
        if self.bias_v is not None:
            init.xavier_normal_(self.bias_v)

    def __setstate__(self, state):
        state.setdefault("_qkv_same_embed_dim", True)
        super().__setstate__(state)

    def forward(
        self,
        query,
        key,
        value,
        key_padding_mask=None,
        need_weights=True,
        attn_mask=None,
        average_attn_weights=True,
        is_causal=False,
    ):
        """Return (output, attention weights). The weights are None unless ``need_weights``.

        True in a boolean mask means that the position is not attended to.
        """
        batched = query.dim() == 3
        reason = self._why_not_fused(query, key, value, key_padding_mask, attn_mask)
        if not reason:
            masks = self._canonical_masks(key_padding_mask, attn_mask, query)
            mask, kind = self.merge_masks(*masks, query)
            weights, out = (self.in_proj_weight, self.in_proj_bias), self.out_proj
            sizes = self.embed_dim, self.num_heads
            return _fused(
                query,
                key,
                value,
                *sizes,
                *weights,
                out.weight,
                out.bias,
                mask,
                need_weights,
                average_attn_weights,
                kind,
            )
        if query.is_nested or key.is_nested or value.is_nested:
            raise AssertionError(
                "MultiheadAttention does not support NestedTensor outside of its fast path. The fast path was not hit because "
                f"{reason}"
            )
        if self.batch_first and batched:
            # A tensor that is given several times is transposed once. It stays one object, and this lets one
            # product compute all three projections.
            turned = {id(t): t.transpose(1, 0) for t in (query, key, value)}
            query, key, value = (turned[id(t)] for t in (query, key, value))
        separate = (
            {}
            if self._qkv_same_embed_dim
            else {
                "use_separate_proj_weight": True,
                "q_proj_weight": self.q_proj_weight,
                "k_proj_weight": self.k_proj_weight,
                "v_proj_weight": self.v_proj_weight,
            }
        )
        output, weights = F.multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            training=self.training,
            key_padding_mask=key_padding_mask,
            need_weights=need_weights,
            attn_mask=attn_mask,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
            **separate,
        )
        if self.batch_first and batched:
            output = output.transpose(1, 0)
        return output, weights

    def _canonical_masks(self, key_padding_mask, attn_mask, query):
        """Return both masks as masks that are added to the scores; (attention mask, padding mask)."""
        padding = F._canonical_mask(
            key_padding_mask, "key_padding_mask", F._none_or_dtype(attn_mask), "attn_mask", query.dtype
        )
        return F._canonical_mask(attn_mask, "attn_mask", None, "", query.dtype, check_other=False), padding

    def _why_not_fused(self, query, key, value, key_padding_mask, attn_mask) -> str:
        """Return why torch._native_multi_head_attention, which is for evaluation, cannot be called; "" if it can."""
        if self.training:  # first, because a training asks in each step
            return "training is enabled"
        weight, masks = self.in_proj_weight, [m for m in (key_padding_mask, attn_mask) if m is not None]
        reasons = (
            (
                any(m.is_floating_point() for m in masks),
                "floating-point masks are not supported for fast path.",
            ),
            (not mha.get_fastpath_enabled(), "torch.backends.mha.get_fastpath_enabled() was not True"),
            (query.dim() != 3, f"input not batched; expected query.dim() of 3 but got {query.dim()}"),
            (
                query is not key or key is not value,
                "non-self attention was used (query, key, and value are not the same Tensor)",
            ),
            (self.in_proj_bias is None, "in_proj_bias was None"),
            (weight is None, "in_proj_weight was None"),
            (
                weight is not None and query.dtype is not weight.dtype,
                f"dtypes of query ({query.dtype}) and self.in_proj_weight ({getattr(weight, 'dtype', None)}) don't match",
            ),
            (self.num_heads % 2 != 0, "self.num_heads is not even"),
            (not self.batch_first, "batch_first was not True"),
            (self.bias_k is not None, "self.bias_k was not None"),
            (self.bias_v is not None, "self.bias_v was not None"),
            (self.add_zero_attn, "add_zero_attn was enabled"),
            (not self._qkv_same_embed_dim, "_qkv_same_embed_dim was not True"),
            (
                query.is_nested and bool(masks),
                "supplying src_key_padding_mask or src_mask is not supported with NestedTensor input",
            ),
            (is_autocast_enabled(), "autocast is enabled"),
        )
        found = next((text for applies, text in reasons if applies), "")
        return found or self._why_not_these(query)

    def _why_not_these(self, query) -> str:
        """Return why the tensors themselves forbid the fused function, which records no gradient; "" if they do not."""
        own = (self.in_proj_weight, self.in_proj_bias, self.out_proj.weight, self.out_proj.bias)
        jagged = query.is_nested and query.layout._name == "jagged"
        if jagged or overrides.has_torch_function([x for x in (query, *own) if not x.is_nested]):
            return "some Tensor argument has_torch_function"
        if _C.is_grad_enabled() and any(x.requires_grad for x in (query, *own)):
            return "grad is enabled and at least one of query or the input/output projection weights or biases requires_grad"
        return ""

    def merge_masks(self, attn_mask, key_padding_mask, query):
        """Return (mask, kind).

        Kind 0 is an attention mask, 1 a padding mask, 2 both merged, expanded to all heads.
        """
        if key_padding_mask is not None and attn_mask is None:
            return key_padding_mask, 1
        if attn_mask is None:
            return None, None
        if key_padding_mask is None:
            return attn_mask, 0
        batch, length = query.shape[:2]
        if attn_mask.dim() == 3:
            expanded = attn_mask.view(batch, -1, length, length)
        else:
            expanded = attn_mask.view(1, 1, length, length).expand(batch, self.num_heads, -1, -1)
        return expanded + key_padding_mask.view(batch, 1, 1, length).expand(-1, self.num_heads, -1, -1), 2
