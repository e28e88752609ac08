"""MultiheadAttention."""

from ... import ops
from .. import functional as F
from .. import init
from ..parameter import Parameter
from .linear import NonDynamicallyQuantizableLinear
from .module import Module

__all__ = ["MultiheadAttention"]


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
