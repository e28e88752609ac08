"""The logits of families whose code transformers does not have, from the tensors as their folders name and pack them.

It is written in numpy from the published descriptions of these models, without the classes that the conversion takes in their
place, so that it can tell whether those compute the same: norms by the root of the mean square, rotary embeddings of halves
(RoFormer, https://arxiv.org/abs/2104.09864), queries in groups that share keys and values, and a gated MLP with SiLU.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy

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
    from safetensors.numpy import load_file

    facts = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    tensors = {
        name: value.astype(numpy.float64)
        for file in sorted(folder.glob("*.safetensors"))
        for name, value in load_file(file).items()
    }
    model = _Model(facts, tensors)
    hidden = model.weight(model.names.words)[list(ids)]
    for number in range(facts["num_hidden_layers"]):
        hidden = hidden + model.attention(number, model.normed(hidden, model.names.first.format(number)))
        hidden = hidden + model.mlp(number, model.normed(hidden, model.names.second.format(number)))
    head = model.weight(model.names.head)
    if unit_head:
        head = head / numpy.sqrt((head**2).sum(axis=1, keepdims=True))
    found: Array = model.normed(hidden, model.names.norm) @ head.T
    return found


class _Model:
    """The tensors of a model and what its config.json says."""

    def __init__(self, facts: Mapping[str, Any], tensors: Mapping[str, Array]) -> None:
        self.facts, self.tensors = facts, tensors
        self.kind = facts["model_type"]
        self.names = _NAMES[self.kind]
        self.heads = facts["num_attention_heads"]
        self.groups = facts.get("num_key_value_heads") or self.heads
        self.size = facts["hidden_size"] // self.heads

    def weight(self, module: str) -> Array:
        return self.tensors[f"{module}.weight"]

    def linear(self, module: str, x: Array) -> Array:
        found = x @ self.weight(module).T
        bias = self.tensors.get(f"{module}.bias")
        return found if bias is None else found + bias

    def normed(self, x: Array, module: str) -> Array:
        epsilon = self.facts.get("rms_norm_eps", self.facts.get("layer_norm_epsilon"))
        return x / numpy.sqrt((x**2).mean(axis=-1, keepdims=True) + epsilon) * self.weight(module)

    def mlp(self, number: int, x: Array) -> Array:
        gate = self.linear(self.names.gate.format(number), x)
        up = self.linear(self.names.up.format(number), x)
        return self.linear(self.names.down.format(number), gate / (1 + numpy.exp(-gate)) * up)

    def attention(self, number: int, x: Array) -> Array:
        length, shared = len(x), self.heads // self.groups
        q, k, v = self.queries_keys_values(number, x)
        q, k = self.rotated(q), self.rotated(k)
        out = numpy.empty_like(q)
        later = numpy.triu(numpy.ones((length, length), dtype=bool), 1)
        for head in range(self.heads):
            scores = q[:, head] @ k[:, head // shared].T / numpy.sqrt(self.size)
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
        """Rotates the numbers i and i + size / 2 of a head by position / base^(2 i / size)."""
        base = self.facts.get("rope_theta") or self.facts.get("rotary_emb_base") or 10000.0
        half = self.size // 2
        angles = numpy.arange(len(x))[:, None] / base ** (numpy.arange(half) / half)
        cos, sin = numpy.cos(angles)[:, None], numpy.sin(angles)[:, None]
        one, other = x[..., :half], x[..., half:]
        return numpy.concatenate([one * cos - other * sin, other * cos + one * sin], axis=-1)
