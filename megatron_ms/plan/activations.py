"""The bytes that a process keeps between forward and backward, counted tensor by tensor in Megatron's own layers.

The counts follow what autograd keeps of each operator, as Korthikanti et al. (2022, "Reducing Activation Recomputation in Large
Transformer Models") count it for 16-bit numbers. They differ from that paper where the toolkit's command lines do: numbers may have
32 bits, no functions are fused, MLPs may be gated, keys and values may be shared by heads, and softmax works on 32 bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Any

from ..training.settings import Settings
from .geometry import Geometry

_MASK, _FULL = 1, 4  # bytes of a Boolean and of a 32-bit number


@dataclass(frozen=True)
class Activations:
    """What a micro-batch leaves on a process of a layout, in bytes.

    tokens: of a micro-batch on this process; keys: positions that a token may attend to; size: bytes of a number.
    """

    form: Geometry
    tokens: int
    keys: int
    size: int
    tensor: int
    sequence: bool
    expert_tensor: int
    hidden_dropout: bool
    attention_dropout: bool
    unfused: bool  # attention keeps its probabilities
    rotary: bool

    def layer(self, number: int) -> float:
        """A layer, counted from 0 in the whole model."""
        return self.tokens * (self._norms() + self._attention() + self._mlp(number))

    def _norms(self) -> float:
        """Inputs and outputs of two norms, or of four with post-norms, and the masks of two dropouts, for a token."""
        norms = 4 if self.form.flags.get("post_norm") else 2
        each = 2 * norms * self.size + (2 * _MASK if self.hidden_dropout else 0)
        return self.form.hidden * each / (self.tensor if self.sequence else 1)

    def _attention(self) -> float:
        form = self.form
        queries, keys = form.heads * form.width, form.groups * form.width
        values = queries
        if form.flags.get("multi_latent_attention"):
            wide = int(form.flags.get("qk_head_dim") or 0) + int(form.flags.get("qk_pos_emb_head_dim") or 0)
            queries, values = form.heads * wide, form.heads * int(form.flags.get("v_head_dim") or 0)
            projected = 2 * queries + values
        elif form.groups < form.heads:
            projected = 3 * queries  # queries, and keys and values repeated for each head
        else:  # the whole projection, because values are a view of it; with rotation also turned queries and keys
            projected = queries + 2 * keys + (queries + keys if self.rotary else 0)
        return (self.size * (projected + values) + self._probabilities()) / self.tensor

    def _probabilities(self) -> float:
        """Softmax in 32 bits, its copy in 16 bits, what dropout makes of it, and the tanh of a soft cap, for a token."""
        if not self.unfused:
            return self.form.heads * _FULL  # a sum for each row
        each = _FULL + (self.size if self.size < _FULL else 0)
        each += self.size + _MASK if self.attention_dropout else 0
        each += self.size if self.form.flags.get("attn_logit_softcapping") else 0
        return self.form.heads * self.keys * each

    def _mlp(self, number: int) -> float:
        form, parts = self.form, 4 if self.form.gated else 2
        if not form.is_sparse(number):
            return self.size * parts * form.ffn / self.tensor
        experts = form.active * (parts * form.expert_ffn / self.expert_tensor + 2 * form.hidden)
        shared = int(form.flags.get("moe_shared_expert_intermediate_size") or 0)
        shared = shared or int(form.flags.get("n_shared_experts") or 0) * form.expert_ffn
        return self.size * (experts + parts * shared / self.tensor)

    def input(self) -> float:
        """The input of a layer, which is all that full recomputation keeps of it."""
        return self.tokens * self.form.hidden * self.size / (self.tensor if self.sequence else 1)

    def probabilities(self) -> float:
        """What selective recomputation does not keep of a layer."""
        return self.tokens * self._probabilities() / self.tensor

    def embedding(self) -> float:
        """The mask of the dropout behind the embeddings."""
        return self.tokens * self.form.hidden * _MASK if self.hidden_dropout else 0.0

    def loss(self) -> float:
        """The last norm, the logits, their softmax in 32 bits, and their gradient."""
        logits = self.form.vocabulary / self.tensor * (3 * _FULL + (self.size if self.size < _FULL else 0))
        return 2 * self.input() + self.tokens * logits

    def passing(self) -> float:
        """Gradients within an MLP, which live for a moment."""
        form = self.form
        width = max(form.ffn, form.active * form.expert_ffn if form.experts else 0)
        return self.tokens * 3 * width * self.size / self.tensor

    def scores(self) -> float:
        """The place for the scores of attention, which all layers share."""
        return self.tokens * self.form.heads * self.keys * self.size / self.tensor if self.unfused else 0.0


def of(settings: Settings, form: Geometry, flags: dict[str, Any]) -> Activations:
    """The activations of a configuration."""
    parallel, tensor = settings.parallel, settings.parallel.tensor
    length = settings.dataset.sequence_length // parallel.context

    def drops(name: str) -> bool:
        return float(flags.get(name, 0.1) or 0) > 0  # upstream's default

    return Activations(
        form,
        settings.train.micro_batch * length,
        length,
        _FULL if settings.train.precision == "float32" else 2,
        tensor,
        parallel.sequence,
        parallel.expert_tensor or tensor,
        drops("hidden_dropout"),
        drops("attention_dropout"),
        flags.get("transformer_impl", "local") == "local" and not flags.get("use_flash_attn"),
        str(flags.get("position_embedding_type")) in ("rope", "yarn", "mrope"),
    )


def stage(settings: Settings, form: Geometry, flags: dict[str, Any], number: int) -> float:
    """Bytes on a process of a pipeline stage at the moment when it keeps most."""
    one, recompute = of(settings, form, flags), settings.recompute
    count = settings.parallel.pipeline
    here = range(number * form.layers // count, (number + 1) * form.layers // count)
    layers = sum(one.layer(layer) for layer in here)
    extra = 0.0
    if recompute.granularity == "full":
        unit, most = recompute.layers or 1, max(one.layer(layer) for layer in here)
        if recompute.method == "block":  # the first layers are computed again, each by itself
            again = min(unit, len(here))
            extra, layers = most, sum(one.layer(layer) for layer in here[again:]) + again * one.input()
        else:
            extra, layers = unit * most, ceil(len(here) / unit) * one.input()
    elif recompute.granularity == "selective":
        extra = one.probabilities()
        layers -= len(here) * one.probabilities()
    kept = layers * _under_way(settings, form, number)
    batches = min(_batches(settings), count - number)
    kept += batches * one.embedding() if number == 0 else 0.0
    # What the loss needs is free again when the backward comes to a layer.
    return kept + one.scores() + max(extra + one.passing(), one.loss() if number == count - 1 else 0.0)


def _batches(settings: Settings) -> int:
    """Micro-batches of a replica in a step."""
    return max(1, settings.global_batch // (settings.train.micro_batch * settings.replicas))


def _under_way(settings: Settings, form: Geometry, number: int) -> float:
    """Micro-batches whose layers of this stage are kept at once. Interleaved stages keep parts of more of them."""
    parallel, batches = settings.parallel, _batches(settings)
    count, virtual = parallel.pipeline, parallel.layers_per_virtual_stage
    if not virtual or count == 1:
        return min(batches, count - number)
    chunks = form.layers // count // virtual
    return min(batches * chunks, 2 * (count - number - 1) + (chunks - 1) * count + 1) / chunks
