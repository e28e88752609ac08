"""Counts the parameters of a model from its geometry, exactly, for the whole model and for each process of a parallel layout.

The counts are those of Megatron's GPT model: what tensor parallelism divides, and what every process has a copy of.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any

from ..config.training import Model


@dataclass(frozen=True)
class Count:
    """Numbers of parameters: divided by tensor parallelism, copied to each process, and those of experts.

    experts: of all experts of the layers counted, which expert parallelism divides.
    """

    divided: int = 0
    copied: int = 0
    experts: int = 0

    def __add__(self, other: Count) -> Count:
        return Count(self.divided + other.divided, self.copied + other.copied, self.experts + other.experts)

    @property
    def all(self) -> int:
        return self.divided + self.copied + self.experts

    def dense(self, tensor: int) -> int:
        """The number on one process, without experts."""
        return self.divided // tensor + self.copied


@dataclass(frozen=True)
class Geometry:
    """A model's geometry. `flags` has further flags of upstream, by their names with underscores."""

    layers: int
    hidden: int
    heads: int
    groups: int
    width: int  # of a head
    ffn: int
    vocabulary: int
    positions: int
    gated: bool
    untied: bool
    experts: int
    active: int
    expert_ffn: int
    flags: Mapping[str, Any]

    def _flag(self, name: str, default: int = 0) -> int:
        value = self.flags.get(name)
        return default if value is None else int(value)

    @property
    def bias(self) -> bool:
        return not self.flags.get("disable_bias_linear")

    @property
    def norm(self) -> int:
        """Parameters of a norm over the hidden size."""
        return self.hidden * (1 if self.flags.get("normalization") == "RMSNorm" else 2)

    def attention(self) -> Count:
        """A layer's attention, without the norm before it."""
        if self.flags.get("multi_latent_attention"):
            return self._latent_attention()
        queries, keys = self.heads * self.width, self.groups * self.width
        divided = self.hidden * (queries + 2 * keys) + queries * self.hidden
        copied = 0
        if self.bias or self.flags.get("add_qkv_bias"):
            divided += queries + 2 * keys
        if self.bias or self.flags.get("add_dense_bias"):
            copied += self.hidden
        if self.flags.get("qk_layernorm"):
            copied += 2 * self.width * (self.norm // self.hidden)
        if self.flags.get("softmax_type") == "learnable":
            divided += self.heads
        return Count(divided, copied)

    def _latent_attention(self) -> Count:
        """DeepSeek's multi-latent attention: queries, keys and values go through narrow layers, which have norms."""
        query, latent = self._flag("q_lora_rank"), self._flag("kv_lora_rank")
        turned, plain, value = (
            self._flag("qk_pos_emb_head_dim"),
            self._flag("qk_head_dim"),
            self._flag("v_head_dim"),
        )
        copied = self.hidden * (latent + turned) + latent
        divided = latent * self.heads * (plain + value) + self.heads * value * self.hidden
        if query:
            copied += self.hidden * query + query
            divided += query * self.heads * (plain + turned)
        else:
            divided += self.hidden * self.heads * (plain + turned)
        return Count(divided, copied)

    def _mlp(self, width: int) -> tuple[int, int]:
        """What is divided of an MLP, and what is copied."""
        first = width * (2 if self.gated else 1)
        divided = self.hidden * first + width * self.hidden
        return (divided + first, self.hidden) if self.bias else (divided, 0)

    def is_sparse(self, layer: int) -> bool:
        """True if a layer, counted from 0, has experts."""
        if not self.experts:
            return False
        frequency = self.flags.get("moe_layer_freq")
        if isinstance(frequency, list):
            return bool(frequency[layer])
        dense = max(0, self._flag("first_k_dense_replace"))
        return layer >= dense and layer % max(1, int(frequency or 1)) == 0

    def layer(self, number: int) -> Count:
        """All of a layer."""
        norms = self.norm * (4 if self.flags.get("post_norm") else 2)
        count = self.attention() + Count(copied=norms)
        if not self.is_sparse(number):
            return count + Count(*self._mlp(self.ffn))
        divided, copied = self._mlp(self.expert_ffn)
        count += Count(copied=self.experts * self.hidden, experts=self.experts * (divided + copied))
        if self.bias and "softmax_type" in self.flags:  # releases with this flag give the router a bias
            count += Count(copied=self.experts)
        shared = (
            self._flag("moe_shared_expert_intermediate_size")
            or self._flag("n_shared_experts") * self.expert_ffn
        )
        return count + Count(*self._mlp(shared)) if shared else count

    def embedding(self, vocabulary: int | None = None) -> Count:
        """The embeddings of words and positions."""
        words = (self.vocabulary if vocabulary is None else vocabulary) * self.hidden
        learned = self.flags.get("position_embedding_type", "learned_absolute") == "learned_absolute"
        copied = self.positions * self.hidden if learned else 0
        return Count(words, copied + (2 * self.hidden if self.flags.get("embed_layernorm") else 0))

    def parameters(self) -> int:
        """All parameters of the model."""
        whole = self.embedding() + Count(copied=self.norm)
        for number in range(self.layers):
            whole += self.layer(number)
        return whole.all + (self.vocabulary * self.hidden if self.untied else 0)

    def active_parameters(self) -> int:
        """The parameters that a token goes through."""
        idle = 0
        for number in range(self.layers):
            count = self.layer(number)
            idle += count.experts - (count.experts // self.experts * self.active if count.experts else 0)
        return self.parameters() - idle

    def stage(self, stage: int, tensor: int, stages: int) -> Count:
        """The parameters of a pipeline stage, with the vocabulary padded as Megatron pads it."""
        multiple = self._flag("make_vocab_size_divisible_by", 128) * tensor
        vocabulary = ceil(self.vocabulary / multiple) * multiple
        each = self.layers // stages
        whole = Count()
        for number in range(stage * each, (stage + 1) * each):
            whole += self.layer(number)
        if stage == 0:
            whole += self.embedding(vocabulary)
        if stage == stages - 1:
            whole += Count(copied=self.norm)
            if self.untied or stages > 1:  # the last stage has its own copy of tied embeddings
                whole += Count(divided=vocabulary * self.hidden)
        return whole


def of(model: Model, positions: int, flags: Mapping[str, Any]) -> Geometry:
    """The geometry of a configuration's section `model`, with flags of all sections.

    positions: the longest sequence, which counts for learned position embeddings.
    """
    ffn = model.ffn_hidden_size or 4 * model.hidden_size
    return Geometry(
        model.num_layers,
        model.hidden_size,
        model.num_attention_heads,
        model.num_query_groups or model.num_attention_heads,
        model.kv_channels or model.hidden_size // model.num_attention_heads,
        ffn,
        model.vocab_size or 0,
        model.max_position_embeddings or positions,
        model.swiglu or any(flags.get(name) for name in ("geglu", "quick_geglu", "gelu_tanh")),
        model.untie_embeddings_and_output_weights,
        model.num_experts or 0,
        model.moe_router_topk if model.num_experts else 1,
        model.moe_ffn_hidden_size or ffn,
        flags,
    )
