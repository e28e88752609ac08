"""The logits of families whose code transformers does not have, from the tensors as their folders name and pack them.

It is written in numpy from the published descriptions of these models, without the classes that the conversion takes in their
place, so that it can tell whether those compute the same: norms by the root of the mean square, rotary embeddings of halves
(RoFormer, https://arxiv.org/abs/2104.09864), queries in groups that share keys and values, and a gated MLP with SiLU. The 13B
models of Baichuan have linear biases instead of rotary embeddings (ALiBi, https://arxiv.org/abs/2108.12409), for which
transformers has no class at all.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy

from ..inference.engine import provide_torch
from . import weights
from .work import ProofError

if TYPE_CHECKING:
    from typing import TypeAlias

    from numpy.typing import NDArray

    Array: TypeAlias = NDArray[numpy.float64]


@dataclass(frozen=True)
class _Names:
    """The names of a family's modules, with {} for the number of a layer. packed: all of queries, keys and values."""

    words: str
    norm: str
    head: str
    first: str
    packed: str
    out: str
    second: str
    gate: str
    up: str
    down: str


@dataclass(frozen=True)
class _Sizes:
    """What a config.json says in the words of its family."""

    layers: int
    heads: int
    groups: int
    width: int
    epsilon: float
    base: float


def _sizes(facts: Mapping[str, Any]) -> _Sizes:
    heads = facts["num_attention_heads"]
    if facts["model_type"] == "chatglm":
        groups, width = facts["multi_query_group_num"], facts["kv_channels"]
        return _Sizes(facts["num_layers"], heads, groups, width, facts["layernorm_epsilon"], 10000.0)
    epsilon = facts.get("rms_norm_eps", facts.get("layer_norm_epsilon"))
    base = facts.get("rope_theta") or facts.get("rotary_emb_base") or 10000.0
    groups, width = facts.get("num_key_value_heads") or heads, facts["hidden_size"] // heads
    return _Sizes(facts["num_hidden_layers"], heads, groups, width, epsilon, base)


_LLAMA = _Names(
    "model.embed_tokens", "model.norm", "lm_head", "model.layers.{}.input_layernorm", "", "model.layers.{}.self_attn.o_proj",
    "model.layers.{}.post_attention_layernorm", "model.layers.{}.mlp.gate_proj", "model.layers.{}.mlp.up_proj",
    "model.layers.{}.mlp.down_proj",
)  # fmt: skip
_BAICHUAN = _Names(**(vars(_LLAMA) | {"packed": "model.layers.{}.self_attn.W_pack"}))
_NAMES = {
    "aquila": _LLAMA,
    "internlm": _LLAMA,
    "baichuan": _BAICHUAN,
    "chatglm": _Names(
        "transformer.embedding.word_embeddings", "transformer.encoder.final_layernorm", "transformer.output_layer",
        "transformer.encoder.layers.{}.input_layernorm", "transformer.encoder.layers.{}.self_attention.query_key_value",
        "transformer.encoder.layers.{}.self_attention.dense", "transformer.encoder.layers.{}.post_attention_layernorm",
        "transformer.encoder.layers.{}.mlp.dense_h_to_4h", "", "transformer.encoder.layers.{}.mlp.dense_4h_to_h",
    ),
    "internlm2": _Names(
        "model.tok_embeddings", "model.norm", "output", "model.layers.{}.attention_norm", "model.layers.{}.attention.wqkv",
        "model.layers.{}.attention.wo", "model.layers.{}.ffn_norm", "model.layers.{}.feed_forward.w1",
        "model.layers.{}.feed_forward.w3", "model.layers.{}.feed_forward.w2",
    ),
    "qwen": _Names(
        "transformer.wte", "transformer.ln_f", "lm_head", "transformer.h.{}.ln_1", "transformer.h.{}.attn.c_attn",
        "transformer.h.{}.attn.c_proj", "transformer.h.{}.ln_2", "transformer.h.{}.mlp.w2", "transformer.h.{}.mlp.w1",
        "transformer.h.{}.mlp.c_proj",
    ),
}  # fmt: skip


def logits(folder: Path, ids: Sequence[int], unit_head: bool = False) -> Array:
    """The logits of ids, [length, vocabulary], in float64.

    unit_head: whether the model is a Baichuan2, which divides the rows of its output layer by their lengths.
    """
    provide_torch()
    from safetensors.torch import load_file

    facts = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    tensors = {name: value for file in weights.files(folder) for name, value in load_file(file).items()}
    model = _Model(facts, tensors)
    hidden = model.weight(model.names.words)[list(ids)]
    for number in range(model.sizes.layers):
        hidden = hidden + model.attention(number, model.normed(hidden, model.names.first.format(number)))
        hidden = hidden + model.mlp(number, model.normed(hidden, model.names.second.format(number)))
    head = model.weight(model.names.head)
    if unit_head:
        head = head / numpy.sqrt((head**2).sum(axis=1, keepdims=True))
    found: Array = model.normed(hidden, model.names.norm) @ head.T
    return found


def _slopes(heads: int) -> list[float]:
    """The slope of each head in ALiBi.

    For a power of two 2^(-8/n), 2^(-16/n) ... For another number those of the next smaller power, and then every second one of
    twice that power.
    """
    power = 2 ** int(math.log2(heads))
    found = [2 ** (-8 * (place + 1) / power) for place in range(power)]
    between = [2 ** (-4 * (place + 1) / power) for place in range(0, 2 * power, 2)]
    return found + between[: heads - power]


class _Model:
    """The tensors of a model and what its config.json says. A tensor becomes an array when it is used."""

    def __init__(self, facts: Mapping[str, Any], tensors: Mapping[str, Any]) -> None:
        self.tensors, self.sizes = tensors, _sizes(facts)
        self.kind = facts["model_type"]
        self.names = _NAMES[self.kind]
        self.heads, self.groups, self.size = self.sizes.heads, self.sizes.groups, self.sizes.width
        linear = self.kind == "baichuan" and facts.get("max_position_embeddings") is None
        self.slopes = _slopes(self.heads) if linear else None

    def weight(self, module: str) -> Array:
        return self.array(f"{module}.weight")

    def array(self, name: str) -> Array:
        """A tensor in float64.

        Raises:
            ProofError: there is none of this name.
        """
        if name not in self.tensors:
            raise ProofError(f"there is no tensor {name}")
        found: Array = self.tensors[name].double().numpy()
        return found

    def linear(self, module: str, x: Array) -> Array:
        found = x @ self.weight(module).T
        return found + self.array(f"{module}.bias") if f"{module}.bias" in self.tensors else found

    def normed(self, x: Array, module: str) -> Array:
        mean = (x**2).mean(axis=-1, keepdims=True)
        return x / numpy.sqrt(mean + self.sizes.epsilon) * self.weight(module)

    def mlp(self, number: int, x: Array) -> Array:
        gate = self.linear(self.names.gate.format(number), x)
        if self.names.up:
            up = self.linear(self.names.up.format(number), x)
        else:  # in one tensor, the gate first
            gate, up = numpy.split(gate, 2, axis=1)
        return self.linear(self.names.down.format(number), gate / (1 + numpy.exp(-gate)) * up)

    def attention(self, number: int, x: Array) -> Array:
        length, shared = len(x), self.heads // self.groups
        q, k, v = self.queries_keys_values(number, x)
        if self.slopes is None:
            q, k = self.rotated(q), self.rotated(k)
        distances = numpy.arange(length) - numpy.arange(length)[:, None]
        out = numpy.empty_like(q)
        later = numpy.triu(numpy.ones((length, length), dtype=bool), 1)
        for head in range(self.heads):
            scores = q[:, head] @ k[:, head // shared].T / numpy.sqrt(self.size)
            if self.slopes is not None:
                scores = scores + self.slopes[head] * distances
            scores[later] = -numpy.inf
            chances = numpy.exp(scores - scores.max(axis=1, keepdims=True))
            out[:, head] = chances / chances.sum(axis=1, keepdims=True) @ v[:, head // shared]
        return self.linear(self.names.out.format(number), out.reshape(length, -1))

    def queries_keys_values(self, number: int, x: Array) -> tuple[Array, Array, Array]:
        """[length, heads, size] and twice [length, groups, size]."""
        length, shared = len(x), self.heads // self.groups
        if not self.names.packed:
            q, k, v = (self.linear(f"model.layers.{number}.self_attn.{name}_proj", x) for name in "qkv")
        else:
            whole = self.linear(self.names.packed.format(number), x)
            if self.kind == "internlm2":  # the queries of a group, its key and its value, then the next group
                rows = whole.reshape(length, self.groups, shared + 2, self.size)
                q, k, v = rows[:, :, :shared], rows[:, :, shared], rows[:, :, shared + 1]
            else:
                ends = [self.heads * self.size, (self.heads + self.groups) * self.size]
                q, k, v = numpy.split(whole, ends, axis=1)
        return (
            q.reshape(length, self.heads, self.size),
            k.reshape(length, self.groups, self.size),
            v.reshape(length, self.groups, self.size),
        )

    def rotated(self, x: Array) -> Array:
        """Rotates the numbers i and i + size / 2 of a head by position / base^(2 i / size).

        ChatGLM rotates neighbours instead, 2 i and 2 i + 1, and only in the first half of a head, whose size counts.
        """
        half = (self.size if self.kind != "chatglm" else self.size // 2) // 2
        angles = numpy.arange(len(x))[:, None] / self.sizes.base ** (numpy.arange(half) / half)
        cos, sin = numpy.cos(angles)[:, None], numpy.sin(angles)[:, None]
        if self.kind == "chatglm":
            one, other = x[..., 0 : 2 * half : 2], x[..., 1 : 2 * half : 2]
            turned = numpy.stack([one * cos - other * sin, other * cos + one * sin], axis=-1)
            return numpy.concatenate([turned.reshape(*one.shape[:-1], -1), x[..., 2 * half :]], axis=-1)
        one, other = x[..., :half], x[..., half:]
        return numpy.concatenate([one * cos - other * sin, other * cos + one * sin], axis=-1)
