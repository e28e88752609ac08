"""The model of the course: a Llama over bytes, in plain PyTorch, and the same model for transformers and for Megatron Core.

Its parameters have transformers' names, so that weights go from one to the other as they are. With the default shape there are
131,648 parameters.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

END, FILL = 256, 257  # the ids behind the 256 bytes: the end of a text, and what fills shorter rows
BASE = 10_000.0  # of the angles of rotary positions
EPSILON = 1e-6  # of the norms


@dataclass(frozen=True)
class Shape:
    """The sizes of a model: hidden and inner are widths, groups counts the heads of keys and values."""

    layers: int = 2
    hidden: int = 64
    inner: int = 192
    heads: int = 4
    groups: int = 2
    vocabulary: int = 258
    recompute: bool = False  # whether a block computes its results again in the backward pass

    @property
    def head(self) -> int:
        """The width of one head."""
        return self.hidden // self.heads


def rotated(x: torch.Tensor) -> torch.Tensor:
    """Queries or keys of shape (batch, heads, sequence, head), turned by angles that grow with their place."""
    width = x.shape[-1]
    steps = BASE ** (-torch.arange(0, width, 2, device=x.device) / width)
    angles = torch.outer(torch.arange(x.shape[-2], device=x.device).float(), steps)
    cos, sin = (torch.cat([part, part], -1) for part in (angles.cos(), angles.sin()))
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat([-second, first], -1) * sin


class Attention(nn.Module):
    """Causal attention, in which several query heads share the keys and values of a group."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        narrow = shape.groups * shape.head
        self.q_proj = nn.Linear(shape.hidden, shape.hidden, bias=False)
        self.k_proj = nn.Linear(shape.hidden, narrow, bias=False)
        self.v_proj = nn.Linear(shape.hidden, narrow, bias=False)
        self.o_proj = nn.Linear(shape.hidden, shape.hidden, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x and the result have the shape (batch, sequence, hidden)."""
        batch, length, hidden = x.shape
        q, k, v = (
            part(x).view(batch, length, -1, self.shape.head).transpose(1, 2)
            for part in (self.q_proj, self.k_proj, self.v_proj)
        )
        out = F.scaled_dot_product_attention(rotated(q), rotated(k), v, is_causal=True, enable_gqa=True)
        return self.o_proj(out.transpose(1, 2).reshape(batch, length, hidden))


class SwiGLU(nn.Module):
    """The feed-forward part: down(silu(gate(x)) * up(x))."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(shape.hidden, shape.inner, bias=False)
        self.up_proj = nn.Linear(shape.hidden, shape.inner, bias=False)
        self.down_proj = nn.Linear(shape.inner, shape.hidden, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Block(nn.Module):
    """One layer: attention and SwiGLU, each behind a norm and added to its input."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.self_attn, self.mlp = Attention(shape), SwiGLU(shape)
        self.input_layernorm = nn.RMSNorm(shape.hidden, EPSILON)
        self.post_attention_layernorm = nn.RMSNorm(shape.hidden, EPSILON)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.self_attn(self.input_layernorm(x))
        return x + self.mlp(self.post_attention_layernorm(x))


class Body(nn.Module):
    """Everything but the head: the ids become hidden states."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.embed_tokens = nn.Embedding(shape.vocabulary, shape.hidden)
        self.layers = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.norm = nn.RMSNorm(shape.hidden, EPSILON)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.embed_tokens(ids)
        for block in self.layers:
            x = checkpoint(block, x, use_reentrant=False) if self.shape.recompute else block(x)
        return self.norm(x)


class Llama(nn.Module):
    """The model. Its weights begin as in transformers: normal with a deviation of 0.02."""

    def __init__(self, shape: Shape | None = None) -> None:
        super().__init__()
        self.shape = shape or Shape()
        self.model = Body(self.shape)
        self.lm_head = nn.Linear(self.shape.hidden, self.shape.vocabulary, bias=False)
        for parameter in self.parameters():
            if parameter.dim() == 2:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """The scores of the next id at every place, of shape (batch, sequence, vocabulary), for ids of (batch, sequence)."""
        return self.lm_head(self.model(ids))


def ids_of(text: str) -> list[int]:
    """The ids of a text: its bytes in UTF-8."""
    return list(text.encode())


def text_of(ids: list[int]) -> str:
    """The text of ids, up to the first end or filling."""
    kept = next((n for n, one in enumerate(ids) if one >= END), len(ids))
    return bytes(ids[:kept]).decode(errors="replace")


@torch.no_grad()
def write(model: nn.Module, text: str, most: int = 60, generator: torch.Generator | None = None) -> str:
    """What the model writes behind a text: the most probable bytes, or with a generator bytes drawn from its chances."""
    ids = torch.tensor([ids_of(text)])
    start = ids.shape[1]
    while ids.shape[1] < start + most and ids[0, -1] != END:
        scores = model(ids)[:, -1]
        if generator is None:
            following = scores.argmax(-1, keepdim=True)
        else:
            following = torch.multinomial(scores.softmax(-1), 1, generator=generator)
        ids = torch.cat([ids, following], 1)
    return text_of(ids[0, start:].tolist())


def hugging_face(shape: Shape | None = None):
    """transformers' LlamaForCausalLM of a shape, with weights of its own."""
    from transformers import LlamaConfig, LlamaForCausalLM

    shape = shape or Shape()
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=shape.vocabulary,
            hidden_size=shape.hidden,
            intermediate_size=shape.inner,
            num_hidden_layers=shape.layers,
            num_attention_heads=shape.heads,
            num_key_value_heads=shape.groups,
            max_position_embeddings=256,
            rms_norm_eps=EPSILON,
            tie_word_embeddings=False,
            bos_token_id=None,
            eos_token_id=END,
            pad_token_id=FILL,
        )
    )


def tokenizer():
    """transformers' tokenizer whose ids are the bytes. Spaces and the like have other signs in its vocabulary, as in GPT-2's."""
    import tokenizers
    from transformers import PreTrainedTokenizerFast

    seen = [*range(33, 127), *range(161, 173), *range(174, 256)]  # the bytes that stand for themselves
    others = [byte for byte in range(256) if byte not in seen]
    signs = {chr(byte): byte for byte in seen} | {chr(256 + n): byte for n, byte in enumerate(others)}
    inner = tokenizers.Tokenizer(tokenizers.models.BPE(signs, []))
    inner.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    inner.decoder = tokenizers.decoders.ByteLevel()
    return PreTrainedTokenizerFast(
        tokenizer_object=inner, eos_token="<end>", pad_token="<fill>", padding_side="left"
    )


def megatron(shape: Shape | None = None, tensor: int = 1, pipeline: int = 1, sequence: int = 256):
    """The same model as Megatron Core's GPTModel, or the part of it that this rank has. Megatron must be initialised.

    tensor and pipeline are the sizes of the layout, and sequence is the longest row.
    """
    from megatron.core import parallel_state
    from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
    from megatron.core.models.gpt.gpt_model import GPTModel
    from megatron.core.transformer.transformer_config import TransformerConfig

    shape = shape or Shape()
    config = TransformerConfig(
        num_layers=shape.layers,
        hidden_size=shape.hidden,
        ffn_hidden_size=shape.inner,
        num_attention_heads=shape.heads,
        num_query_groups=shape.groups,
        normalization="RMSNorm",
        layernorm_epsilon=EPSILON,
        gated_linear_unit=True,
        activation_func=F.silu,
        add_bias_linear=False,
        hidden_dropout=0.0,
        attention_dropout=0.0,
        use_cpu_initialization=True,
        tensor_model_parallel_size=tensor,
        pipeline_model_parallel_size=pipeline,
        pipeline_dtype=torch.float32,
        gradient_accumulation_fusion=False,
        masked_softmax_fusion=False,
        bias_activation_fusion=False,
        bias_dropout_fusion=False,
        persist_layer_norm=False,
    )
    return GPTModel(
        config,
        get_gpt_layer_local_spec(normalization="RMSNorm"),
        shape.vocabulary,
        sequence,
        pre_process=parallel_state.is_pipeline_first_stage(),
        post_process=parallel_state.is_pipeline_last_stage(),
        position_embedding_type="rope",
        rotary_base=int(BASE),
        share_embeddings_and_output_weights=False,
    )


def from_megatron(source: dict, shape: Shape | None = None) -> dict[str, torch.Tensor]:
    """Megatron's weights of the whole model under transformers' names. Chapter 3 derives the other direction."""
    shape = shape or Shape()
    result = {
        "model.embed_tokens.weight": source["embedding.word_embeddings.weight"],
        "model.norm.weight": source["decoder.final_layernorm.weight"],
        "lm_head.weight": source["output_layer.weight"],
    }
    for n in range(shape.layers):
        old, new = f"decoder.layers.{n}.", f"model.layers.{n}."
        # Megatron has group after group: the queries of the group, then its key, then its value.
        grouped = source[f"{old}self_attention.linear_qkv.weight"].view(shape.groups, -1, shape.hidden)
        queries = shape.heads // shape.groups * shape.head
        parts = grouped.split([queries, shape.head, shape.head], 1)
        for name, part in zip("qkv", parts, strict=True):
            result[f"{new}self_attn.{name}_proj.weight"] = part.reshape(-1, shape.hidden)
        gate, up = source[f"{old}mlp.linear_fc1.weight"].chunk(2)
        result[f"{new}mlp.gate_proj.weight"], result[f"{new}mlp.up_proj.weight"] = gate, up
        result[f"{new}self_attn.o_proj.weight"] = source[f"{old}self_attention.linear_proj.weight"]
        result[f"{new}mlp.down_proj.weight"] = source[f"{old}mlp.linear_fc2.weight"]
        result[f"{new}input_layernorm.weight"] = source[f"{old}input_layernorm.weight"]
        result[f"{new}post_attention_layernorm.weight"] = source[f"{old}pre_mlp_layernorm.weight"]
    return {name: part.clone() for name, part in result.items()}
