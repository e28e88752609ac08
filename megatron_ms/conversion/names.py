"""Where the tensors of a family of Hugging Face are in Megatron's model, for families that upstream's converters lack.

GPT-OSS has a converter in Megatron-Bridge alone, which needs CUDA's packages. MindSpeed-LLM's converters of ChatGLM3 and Bloom need
the code of the published folders, or a flag that upstream does not take, and GPT-2 and GPT-3 have none. A table names, for each
tensor of Megatron's model, the tensors that are in it, the steps that make it of them, and how tensor parallel ranks divide it.
Each step has an opposite, so one table serves both directions. No value changes. `names_program.py` reads and writes the files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import UserError

if TYPE_CHECKING:
    import torch

Facts = Mapping[str, Any]
LAYER, EXPERT = "*", "#"
_THEIR_HEAD = "lm_head."


@dataclass(frozen=True)
class Row:
    """A tensor of Megatron's model.

    ours: its name, with * for the number of the layer and # for that of the expert. theirs: the names in Hugging Face, with * for
    the layer; there, all experts of a layer are one tensor, whose first dimension is the expert. steps: names of STEPS, in the
    order in which they make our tensor. divided: the dimension that tensor parallel ranks divide, or None if each has the whole.
    halves: the rows are those of a gate and then those of the values, and each half is divided by itself.
    """

    ours: str
    theirs: tuple[str, ...]
    steps: tuple[str, ...] = ()
    divided: int | None = None
    halves: bool = False


@dataclass(frozen=True)
class Table:
    """The rows of a family, and which flags of upstream its config.json asks for.

    flags: from config.json and its path, Megatron's flags by name and the values that they must have.
    whole_experts: Megatron's experts have biases, which it has only where tensor parallel ranks do not divide an expert.
    tied: whether embedding and output layer are one tensor where config.json does not say it.
    prefix: what stands before the names of all tensors but the output layer's, and is absent in folders that were written from the
    model without its output layer, as the published ones of Bloom are.
    """

    rows: tuple[Row, ...]
    flags: Callable[[Facts, Path], dict[str, Any]] = field(default=lambda facts, place: {})
    whole_experts: bool = False
    tied: bool = False
    prefix: str = ""

    def named(self, name: str) -> str:
        """The name of a tensor of a folder with the prefix."""
        return name if name.startswith((self.prefix, _THEIR_HEAD)) else self.prefix + name


@dataclass(frozen=True)
class Sizes:
    """What steps must know of a model: heads, groups of heads that share keys and values, rows of a head, layers and experts."""

    heads: int
    groups: int
    size: int
    layers: int
    experts: int

    @classmethod
    def of(cls, facts: Facts) -> Sizes:
        """The sizes in a config.json."""

        def stated(*names: str, default: int = 0) -> int:
            return int(next((facts[name] for name in names if facts.get(name) is not None), default))

        heads = stated("num_attention_heads", "n_head")
        size = stated("head_dim", default=stated("hidden_size", "n_embd", "n_embed") // heads)
        groups = stated("num_key_value_heads", default=heads)
        layers = stated("num_hidden_layers", "n_layer")
        return cls(heads, groups, size, layers, stated("num_local_experts"))


def _joined(parts: Sequence[torch.Tensor], sizes: Sizes) -> list[torch.Tensor]:
    """Queries, keys and values as Megatron has them: the rows of a group's queries, its key and its value, then the next group."""
    import torch

    rest = parts[0].shape[1:]
    counts = (sizes.heads // sizes.groups, 1, 1)
    shaped = [
        part.reshape(sizes.groups, count, sizes.size, *rest)
        for part, count in zip(parts, counts, strict=True)
    ]
    return [torch.cat(shaped, dim=1).reshape(-1, *rest)]


def _parted(whole: Sequence[torch.Tensor], sizes: Sizes) -> list[torch.Tensor]:
    """The opposite of `_joined`."""
    rest, queries = whole[0].shape[1:], sizes.heads // sizes.groups
    rows = whole[0].reshape(sizes.groups, queries + 2, sizes.size, *rest)
    return [part.reshape(-1, *rest) for part in (rows[:, :queries], rows[:, queries], rows[:, queries + 1])]


def _unpacked(whole: Sequence[torch.Tensor], sizes: Sizes) -> list[torch.Tensor]:
    """All queries, all keys and all values, of a tensor that has one below the other."""
    return list(whole[0].split([count * sizes.size for count in (sizes.heads, sizes.groups, sizes.groups)]))


def _packed(parts: Sequence[torch.Tensor], sizes: Sizes) -> list[torch.Tensor]:
    import torch

    return [torch.cat(list(parts))]


def _transposed(whole: Sequence[torch.Tensor], sizes: Sizes) -> list[torch.Tensor]:
    return [whole[0].transpose(0, 1)]


def _halved(whole: Sequence[torch.Tensor], sizes: Sizes) -> list[torch.Tensor]:
    """The even rows, which are the gate's, and then the odd ones, which are those of the values."""
    import torch

    return [torch.cat([whole[0][0::2], whole[0][1::2]])]


def _alternating(whole: Sequence[torch.Tensor], sizes: Sizes) -> list[torch.Tensor]:
    """The opposite of `_halved`."""
    import torch

    return [torch.stack(whole[0].chunk(2), dim=1).reshape(whole[0].shape)]


_Step = Callable[[Sequence["torch.Tensor"], Sizes], "list[torch.Tensor]"]
# name -> from Hugging Face to Megatron, and its opposite
STEPS: Mapping[str, tuple[_Step, _Step]] = {
    "joined": (_joined, _parted),
    "unpacked": (_unpacked, _packed),
    "transposed": (_transposed, _transposed),
    "halved": (_halved, _alternating),
}


def made(row: Row, parts: Sequence[torch.Tensor], sizes: Sizes) -> torch.Tensor:
    """Megatron's whole tensor, of those of Hugging Face (of one expert, where there are experts)."""
    found = list(parts)
    for step in row.steps:
        found = STEPS[step][0](found, sizes)
    (whole,) = found
    return whole.contiguous()


def unmade(row: Row, whole: torch.Tensor, sizes: Sizes) -> list[torch.Tensor]:
    """The opposite of `made`."""
    found = [whole]
    for step in reversed(row.steps):
        found = STEPS[step][1](found, sizes)
    return [part.contiguous() for part in found]


def divided(row: Row, whole: torch.Tensor, count: int) -> list[torch.Tensor]:
    """The parts of the tensor parallel ranks.

    Raises:
        ValueError: they do not divide it evenly.
    """
    import torch

    if row.divided is None or count == 1:
        return [whole] * count
    halves = whole.chunk(2) if row.halves else (whole,)
    if halves[0].shape[row.divided] % count:
        raise ValueError(f"{row.ours}: {list(whole.shape)} cannot be divided among {count} tensor ranks")
    parts = zip(*(half.chunk(count, dim=row.divided) for half in halves), strict=True)
    return [torch.cat(part).contiguous() if row.halves else part[0].contiguous() for part in parts]


def undivided(row: Row, parts: Sequence[torch.Tensor]) -> torch.Tensor:
    """The opposite of `divided`.

    Raises:
        ValueError: ranks that must have the same tensor have different ones.
    """
    import torch

    if row.divided is None or len(parts) == 1:
        if any(not torch.equal(parts[0], part) for part in parts[1:]):
            raise ValueError(f"{row.ours}: tensor ranks have different copies")
        return parts[0]
    if not row.halves:
        return torch.cat(list(parts), dim=row.divided)
    return torch.cat([torch.cat(list(half)) for half in zip(*(part.chunk(2) for part in parts), strict=True)])


def stages(layers: int, pipeline: int, chunk: int | None) -> list[list[range]]:
    """The numbers of the layers of each pipeline stage, in each of its parts.

    chunk: layers in a part of an interleaved pipeline, whose parts take turns along the stages; None for one part on a stage.
    """
    length = chunk or layers // pipeline
    turns = layers // (length * pipeline)
    return [
        [range(start, start + length) for start in range(stage * length, layers, pipeline * length)][:turns]
        for stage in range(pipeline)
    ]


def present(
    table: Table, layers: range, first: bool, last: bool, tied: bool, experts: range
) -> Iterator[tuple[Row, str, int | None, int | None]]:
    """The tensors of a part of the model: their row, their name there, and the numbers of layer and expert, if they have one.

    first, last: whether the part has the embedding, and the output layer. tied: both are one tensor, of which a last part that is
    not the first has a copy. Layers and experts are numbered in the whole model, and in the names from 0 on in the part.
    """
    for row in table.rows:
        if LAYER in row.ours:
            for place, number in enumerate(layers):
                name = row.ours.replace(LAYER, str(place))
                if EXPERT not in name:
                    yield row, name, number, None
                    continue
                for here, expert in enumerate(experts):
                    yield row, name.replace(EXPERT, str(here)), number, expert
        elif row.ours.startswith("embedding."):
            if first:
                yield row, row.ours, None, None
            elif last and tied and row.ours == WORDS:
                yield row, HEAD, None, None
        elif last and not (tied and row.ours == HEAD):
            yield row, row.ours, None, None


WORDS, HEAD = "embedding.word_embeddings.weight", "output_layer.weight"
_OURS, _QKV = "decoder.layers.*.", "decoder.layers.*.self_attention.linear_qkv."


def _both(ours: str, theirs: str) -> tuple[Row, Row]:
    """Weight and bias of a module that all ranks have whole."""
    return Row(f"{ours}.weight", (f"{theirs}.weight",)), Row(f"{ours}.bias", (f"{theirs}.bias",))


def _three(kind: str) -> tuple[str, ...]:
    return tuple(f"model.layers.*.self_attn.{name}_proj.{kind}" for name in "qkv")


_AROUND = (
    Row(WORDS, ("model.embed_tokens.weight",), divided=0),
    Row("decoder.final_layernorm.weight", ("model.norm.weight",)),
    Row(HEAD, ("lm_head.weight",), divided=0),
    Row(f"{_OURS}input_layernorm.weight", ("model.layers.*.input_layernorm.weight",)),
    Row(f"{_OURS}pre_mlp_layernorm.weight", ("model.layers.*.post_attention_layernorm.weight",)),
    Row(f"{_QKV}weight", _three("weight"), ("joined",), 0),
    Row(f"{_QKV}bias", _three("bias"), ("joined",), 0),
    Row(f"{_OURS}self_attention.linear_proj.weight", ("model.layers.*.self_attn.o_proj.weight",), divided=1),
)
_EXPERTS, _THEIR_EXPERTS = f"{_OURS}mlp.experts.local_experts.#.", "model.layers.*.mlp.experts."
_GPT_OSS = (
    *_AROUND,
    Row(f"{_OURS}self_attention.linear_proj.bias", ("model.layers.*.self_attn.o_proj.bias",)),
    Row(
        f"{_OURS}self_attention.core_attention.softmax_offset",
        ("model.layers.*.self_attn.sinks",),
        divided=0,
    ),
    *_both(f"{_OURS}mlp.router", "model.layers.*.mlp.router"),
    # Gate and values alternate in the columns of an expert.
    Row(
        f"{_EXPERTS}linear_fc1.weight",
        (f"{_THEIR_EXPERTS}gate_up_proj",),
        ("transposed", "halved"),
        0,
        halves=True,
    ),
    Row(f"{_EXPERTS}linear_fc1.bias", (f"{_THEIR_EXPERTS}gate_up_proj_bias",), ("halved",), 0, halves=True),
    Row(f"{_EXPERTS}linear_fc2.weight", (f"{_THEIR_EXPERTS}down_proj",), ("transposed",), 1),
    Row(f"{_EXPERTS}linear_fc2.bias", (f"{_THEIR_EXPERTS}down_proj_bias",)),
)
_GLM = (
    *_AROUND,
    Row(f"{_OURS}mlp.linear_fc1.weight", ("model.layers.*.mlp.gate_up_proj.weight",), divided=0, halves=True),
    Row(f"{_OURS}mlp.linear_fc2.weight", ("model.layers.*.mlp.down_proj.weight",), divided=1),
)
_H = "transformer.h.*."
_GPT2 = (
    Row(WORDS, ("transformer.wte.weight",), divided=0),
    Row("embedding.position_embeddings.weight", ("transformer.wpe.weight",)),
    *_both("decoder.final_layernorm", "transformer.ln_f"),
    Row(HEAD, ("lm_head.weight",), divided=0),
    *_both(f"{_OURS}input_layernorm", f"{_H}ln_1"),
    *_both(f"{_OURS}pre_mlp_layernorm", f"{_H}ln_2"),
    # Its linear layers have a row for each input.
    Row(f"{_QKV}weight", (f"{_H}attn.c_attn.weight",), ("transposed", "unpacked", "joined"), 0),
    Row(f"{_QKV}bias", (f"{_H}attn.c_attn.bias",), ("unpacked", "joined"), 0),
    Row(f"{_OURS}self_attention.linear_proj.weight", (f"{_H}attn.c_proj.weight",), ("transposed",), 1),
    Row(f"{_OURS}self_attention.linear_proj.bias", (f"{_H}attn.c_proj.bias",)),
    Row(f"{_OURS}mlp.linear_fc1.weight", (f"{_H}mlp.c_fc.weight",), ("transposed",), 0),
    Row(f"{_OURS}mlp.linear_fc1.bias", (f"{_H}mlp.c_fc.bias",), divided=0),
    Row(f"{_OURS}mlp.linear_fc2.weight", (f"{_H}mlp.c_proj.weight",), ("transposed",), 1),
    Row(f"{_OURS}mlp.linear_fc2.bias", (f"{_H}mlp.c_proj.bias",)),
)
_BLOOM = (
    Row(WORDS, ("transformer.word_embeddings.weight",), divided=0),
    *_both("embedding.word_embeddings.norm", "transformer.word_embeddings_layernorm"),
    *_both("decoder.final_layernorm", "transformer.ln_f"),
    Row(HEAD, ("lm_head.weight",), divided=0),
    *_both(f"{_OURS}input_layernorm", f"{_H}input_layernorm"),
    *_both(f"{_OURS}pre_mlp_layernorm", f"{_H}post_attention_layernorm"),
    # Bloom was trained with Megatron, and has queries, keys and values head by head as it has them.
    Row(f"{_QKV}weight", (f"{_H}self_attention.query_key_value.weight",), divided=0),
    Row(f"{_QKV}bias", (f"{_H}self_attention.query_key_value.bias",), divided=0),
    Row(f"{_OURS}self_attention.linear_proj.weight", (f"{_H}self_attention.dense.weight",), divided=1),
    Row(f"{_OURS}self_attention.linear_proj.bias", (f"{_H}self_attention.dense.bias",)),
    Row(f"{_OURS}mlp.linear_fc1.weight", (f"{_H}mlp.dense_h_to_4h.weight",), divided=0),
    Row(f"{_OURS}mlp.linear_fc1.bias", (f"{_H}mlp.dense_h_to_4h.bias",), divided=0),
    Row(f"{_OURS}mlp.linear_fc2.weight", (f"{_H}mlp.dense_4h_to_h.weight",), divided=1),
    Row(f"{_OURS}mlp.linear_fc2.bias", (f"{_H}mlp.dense_4h_to_h.bias",)),
)


def _of_gpt_oss(facts: Facts, place: Path) -> dict[str, Any]:
    """The flags with which Megatron's model has the window, the frequencies and the activation of a GPT-OSS.

    A window of N tokens has the token itself in it, and --window-size gives the tokens before it and after it.

    Raises:
        UserError: Megatron has no flag for what config.json says.
    """
    layers = facts.get("num_hidden_layers", 36)
    alternating = [("full" if number % 2 else "sliding") + "_attention" for number in range(layers)]
    rope = facts.get("rope_parameters") or facts.get("rope_scaling") or {}
    kinds = {"layer_types": alternating, "swiglu_alpha": 1.702, "attention_bias": True}
    for name, wanted in kinds.items():
        if facts.get(name, wanted) != wanted:
            raise UserError(f"{place}: {name} is {facts[name]}, and Megatron's GPT-OSS has {wanted}")
    if rope.get("rope_type") != "yarn" or rope.get("attention_factor") is not None:
        raise UserError(f"{place}: rope_parameters are {rope}, and only YaRN is known, with its own factor")
    return {
        "window_size": f"{facts.get('sliding_window', 128) - 1},0",
        "window_attn_skip_freq": 2,
        "activation_func_clamp_value": facts.get("swiglu_limit", 7.0),
        "glu_linear_offset": 1.0,
        "quick_geglu": True,
        "moe_ffn_hidden_size": facts["intermediate_size"],
        "softmax_type": "learnable",
        "position_embedding_type": "yarn",
        "rotary_base": rope.get("rope_theta", facts.get("rope_theta", 150000)),
        "rotary_scaling_factor": rope["factor"],
        "yarn_original_max_position_embeddings": rope.get("original_max_position_embeddings", 4096),
        "yarn_beta_fast": rope.get("beta_fast", 32.0),
        "yarn_beta_slow": rope.get("beta_slow", 1.0),
        "no_yarn_correction_range_round_to_int": not rope.get("truncate", True),
    }


def _of_glm(facts: Facts, place: Path) -> dict[str, Any]:
    """ChatGLM's rotary embeddings turn pairs of neighbours in a part of each head.

    Raises:
        UserError: Megatron has no flag for what config.json says.
    """
    rope = facts.get("rope_parameters") or {}
    if rope.get("rope_type", "default") != "default":
        raise UserError(
            f"{place}: rope_parameters are {rope}, and MindSpeed-LLM's ChatGLM3 has none but the default"
        )
    return {
        "use_glm_rope": True,
        "rotary_percent": rope.get("partial_rotary_factor", 1.0),
        "rotary_base": rope.get("rope_theta", 10000),
        "add_qkv_bias": bool(facts.get("attention_bias", False)),
        "position_embedding_type": "rope",
        "swiglu": True,
    }


def _of_gpt2(facts: Facts, place: Path) -> dict[str, Any]:
    """Megatron approximates GELU by tanh where it adds the bias in the same function, and nowhere else.

    Raises:
        UserError: Megatron has no flag for what config.json says.
    """
    kind = facts.get("activation_function", "gelu_new")
    if kind not in ("gelu", "gelu_new", "gelu_pytorch_tanh"):
        raise UserError(f"{place}: activation_function is {kind}, and Megatron's GPT has gelu or gelu_new")
    for name in ("scale_attn_by_inverse_layer_idx", "reorder_and_upcast_attn"):
        if facts.get(name):
            raise UserError(f"{place}: {name} is true, which Megatron's GPT does not have")
    return {"no_bias_gelu_fusion": kind == "gelu", "position_embedding_type": "learned_absolute"}


def _of_bloom(facts: Facts, place: Path) -> dict[str, Any]:
    """Bloom approximates GELU by tanh, has linear biases instead of positions, and a norm after the embeddings.

    Raises:
        UserError: Megatron has no flag for what config.json says. MindSpeed-LLM's norm after the embeddings has a fixed epsilon.
    """
    for name, wanted in {
        "apply_residual_connection_post_layernorm": False,
        "layer_norm_epsilon": 1e-5,
    }.items():
        if facts.get(name, wanted) != wanted:
            raise UserError(f"{place}: {name} is {facts[name]}, and MindSpeed-LLM's Bloom has {wanted}")
    return {
        "embed_layernorm": True,
        "position_embedding_type": "alibi",
        "no_bias_gelu_fusion": False,
        "norm_epsilon": 1e-5,
    }


# The field model_type of config.json -> its table.
TABLES: Mapping[str, Table] = {
    "bloom": Table(_BLOOM, _of_bloom, tied=True, prefix="transformer."),
    "gpt_oss": Table(_GPT_OSS, _of_gpt_oss, whole_experts=True),
    "glm": Table(_GLM, _of_glm),
    "gpt2": Table(_GPT2, _of_gpt2, tied=True),
}
