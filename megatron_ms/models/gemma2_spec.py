"""Gemma 2's layers for upstream's flag `--spec`: those of MindSpeed-LLM, with an attention that has its soft cap and its window.

    --spec megatron_ms.models.gemma2_spec layer_spec

MindSpeed-LLM reads `--attn-logit-softcapping` and applies it with linear biases (ALiBi) alone. Without flash attention it leaves
out `--query-pre-attn-scalar`, and in a training, which makes no mask, `--interleave-sliding-window` too. Its own layers with
post-norms are used here, and Megatron's own attention computes between what this module adds: the scale of the queries, the
cap of the scores, and the mask of the window. Imported by upstream's programs after they have read their flags.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from megatron.core import parallel_state
from megatron.core.transformer.dot_product_attention import DotProductAttention
from megatron.training import get_args
from mindspeed_llm.tasks.models.spec import gemma2_spec
from mindspeed_llm.tasks.models.transformer.transformer_layer import TransformerLayerWithPostNorm


class SoftCap(torch.nn.Module):
    """Megatron's softmax of scores that a soft cap bounds: cap * tanh(scores / cap), as Gemma 2 (arXiv:2408.00118) has it."""

    def __init__(self, softmax: torch.nn.Module, cap: float) -> None:
        super().__init__()
        self.softmax, self.cap = softmax, cap

    def forward(self, scores: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        """scores: [batch, heads, queries, keys]; mask: true where a key is hidden. Returns probabilities of the same shape."""
        return self.softmax(self.cap * torch.tanh(scores / self.cap), mask)


class CappedAttention(DotProductAttention):
    """Megatron's attention with the scale and the soft cap that the flags give, and with the window that its layer has.

    Raises:
        NotImplementedError: a flag asks for an attention that has no soft cap, or scales scores between cap and softmax.
    """

    window: int | None = None
    scale_mask_softmax: Any  # Megatron's

    def __init__(
        self,
        config: Any,
        layer_number: int,
        attn_mask_type: Any,
        attention_type: str,
        attention_dropout: float | None = None,
        softmax_scale: float | None = None,
        cp_comm_type: str | None = None,
    ) -> None:
        args = get_args()
        _refuse(args)
        if args.query_pre_attn_scalar:
            softmax_scale = args.query_pre_attn_scalar**-0.5
        super().__init__(
            config,
            layer_number,
            attn_mask_type,
            attention_type,
            attention_dropout,
            softmax_scale,
            cp_comm_type,
        )
        # The fused kernel makes a causal mask of its own, in which there is no window.
        self.scale_mask_softmax.scaled_masked_softmax_fusion = False
        if args.attn_logit_softcapping:
            self.scale_mask_softmax = SoftCap(self.scale_mask_softmax, args.attn_logit_softcapping)

    def forward(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attention_mask: torch.Tensor | None,
        *rest: Any,
        **named: Any,
    ) -> torch.Tensor:
        """query, key, value: [length, batch, heads, width]. A mask that is given has the window already, from the layer."""
        if attention_mask is None and self.window:
            attention_mask = hidden(query.shape[0], key.shape[0], self.window, query.device)
        return super().forward(query, key, value, attention_mask, *rest, **named)


def hidden(queries: int, keys: int, window: int, device: Any) -> torch.Tensor:
    """Which keys a query does not see: later ones, and those before the last `window` ones, with the query itself among them.

    The queries are the last of the keys. The mask is [1, 1, queries, keys].
    """
    own = torch.arange(keys - queries, keys, device=device)[:, None]
    other = torch.arange(keys, device=device)
    return ((other > own) | (other <= own - window))[None, None]


class CappedLayer(TransformerLayerWithPostNorm):
    """MindSpeed-LLM's layer with post-norms, which tells its attention whether this layer has a window.

    The first layer of the model has one, and every second layer after it. `layer_number` counts from 1 in the pipeline stage.
    """

    def __init__(
        self, config: Any, submodules: Any, layer_number: int = 1, hidden_dropout: float | None = None
    ) -> None:
        super().__init__(config, submodules, layer_number, hidden_dropout)
        if config.num_layer_list:  # MindSpeed-LLM counts as if all stages had as many layers
            before = config.layer_offset[parallel_state.get_pipeline_model_parallel_rank()]
            self.is_sliding = (before + layer_number) % 2 == 1
        if self.is_sliding:
            self.self_attention.core_attention.window = self.interleave_sliding_window


def _refuse(args: Any) -> None:
    """Raises NotImplementedError for the first flag with which attention would be another one."""
    refused = {
        "--use-flash-attn": args.use_flash_attn,
        "--context-parallel-size above 1": args.context_parallel_size > 1,
        "--reset-attention-mask": args.reset_attention_mask,
        "--apply-query-key-layer-scaling": args.apply_query_key_layer_scaling,
    }
    if flag := next((flag for flag, given in refused.items() if given), None):
        raise NotImplementedError(f"the attention of Gemma 2 in {__name__} does not support {flag}")


layer_spec = copy.deepcopy(gemma2_spec.layer_spec)
layer_spec.module = CappedLayer
layer_spec.submodules.self_attention.submodules.core_attention = CappedAttention
