"""Families whose code transformers does not have, in the form of a class that it has.

Aquila, Baichuan, InternLM, InternLM2 and Qwen (the first one) compute what Llama or Qwen2 compute, and ChatGLM3 what Glm computes.
Their folders only give the tensors other names, and pack queries, keys and values, and each brings Python code of its own. That
code is never run: the tensors are renamed and unpacked for transformers and for the converters, and packed again on the way back.
No value changes, but for the output layer of Baichuan2, whose rows its code divides by their lengths. The frequencies of rotary
embeddings, which some folders have too, are compared with those of config.json and left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import UserError
from ..inference.engine import provide_torch
from . import weights
from .work import ProofError

if TYPE_CHECKING:
    import torch

Facts = dict[str, Any]
HEAD = "lm_head.weight"
ALIBI = "alibi"  # a key of ours: the model has linear biases, and only `reference.py` computes it
_LAYER = "model.layers.*."
_QKV = tuple(f"{_LAYER}self_attn.{name}_proj" for name in "qkv")
_PLAIN = (
    "model.embed_tokens", f"{_LAYER}input_layernorm", f"{_LAYER}self_attn.o_proj", f"{_LAYER}post_attention_layernorm",
    f"{_LAYER}mlp.gate_proj", f"{_LAYER}mlp.up_proj", f"{_LAYER}mlp.down_proj", "model.norm", "lm_head",
)  # fmt: skip
_NAME = re.compile(r"(.+)\.(weight|bias)")
_FREQUENCIES = re.compile(r"(.+\.)?rotary(_pos)?_emb\.inv_freq")
_NUMBER = re.compile(r"(?<=\.)\d+(?=\.)")
# How far a row's length may be from one and still count as one: rounding of a number that is near it.
_NEAR_ONE = {"torch.float32": 1e-5, "torch.float16": 1e-3, "torch.bfloat16": 4e-3}


@dataclass(frozen=True)
class Form:
    """How a family names and packs its tensors.

    modules: its name of a module, with * for the number of a layer -> the name in transformers. packed: its module with queries,
    keys and values in one, or "" if it has three. grouped: that module has the queries, the key and the value of the first group,
    then those of the second; else all queries, all keys, all values. unit_head: its code divides the rows of the output layer by
    their lengths.
    """

    family: str
    facts: Callable[[Facts, Path], Facts]
    modules: Mapping[str, str] = field(default_factory=lambda: {name: name for name in _PLAIN})
    packed: str = ""
    grouped: bool = False
    unit_head: bool = False


def _stated(raw: Facts, place: Path, *names: str) -> Any:
    """The value of the first of some keys that config.json has.

    Raises:
        UserError: it has none.
    """
    for name in names:
        if raw.get(name) is not None:
            return raw[name]
    raise UserError(f"{place}: has no {names[0]}")


def _like_llama(raw: Facts, place: Path, **own: Any) -> Facts:
    """config.json for Llama's class, from the keys that these families share, and others.

    Raises:
        UserError: a key is missing, or the activation is another one.
    """
    if raw.get("hidden_act", "silu") != "silu":
        raise UserError(f"{place}: hidden_act is {raw['hidden_act']}, and only silu is known for this family")
    rotary = raw.get("rotary") or {}
    base = raw.get("rope_theta") or raw.get("rotary_emb_base") or rotary.get("base") or 10000.0
    rope: Facts = {"rope_type": "default", "rope_theta": float(base)}
    if scaling := raw.get("rope_scaling"):
        rope |= {name: value for name, value in scaling.items() if name != "type"}
        rope["rope_type"] = scaling.get("rope_type", scaling.get("type", "default"))
    heads = _stated(raw, place, "num_attention_heads")
    made: Facts = {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "num_attention_heads": heads,
        "num_key_value_heads": raw.get("num_key_value_heads") or heads,
        "max_position_embeddings": _stated(raw, place, "max_position_embeddings"),
        "tie_word_embeddings": bool(raw.get("tie_word_embeddings", False)),
        "hidden_act": "silu",
        "rope_parameters": rope,
        "dtype": raw.get("dtype") or raw.get("torch_dtype") or "float32",
    }
    for name in ("hidden_size", "num_hidden_layers", "intermediate_size", "vocab_size"):
        made[name] = _stated(raw, place, name)
    made["rms_norm_eps"] = _stated(raw, place, "rms_norm_eps", "layer_norm_epsilon")
    for name in ("bos_token_id", "eos_token_id", "pad_token_id", "initializer_range"):
        if raw.get(name) is not None:
            made[name] = raw[name]
    return made | own


def _baichuan(raw: Facts, place: Path) -> Facts:
    if raw.get("max_position_embeddings") is not None:
        return _like_llama(raw, place)
    # The 13B models have linear biases instead of rotary embeddings, which no class of transformers has beside these layers.
    longest = _stated(raw, place, "model_max_length", "max_position_embeddings")
    return _like_llama(raw | {"max_position_embeddings": longest}, place, **{ALIBI: True})


def _internlm(raw: Facts, place: Path) -> Facts:
    return _like_llama(raw, place, attention_bias=bool(raw.get("bias", True)))


def _internlm2(raw: Facts, place: Path) -> Facts:
    if raw.get("bias"):
        raise UserError(f"{place}: bias is true, and InternLM2's published models have none")
    return _like_llama(raw, place)


def _qwen(raw: Facts, place: Path) -> Facts:
    for name, wanted in (("no_bias", True), ("rotary_pct", 1.0)):
        if raw.get(name, wanted) != wanted:
            raise UserError(f"{place}: {name} is {raw[name]}, and Qwen's published models have {wanted}")
    if raw.get("kv_channels", 0) not in (0, raw["hidden_size"] // raw["num_attention_heads"]):
        raise UserError(f"{place}: kv_channels is {raw['kv_channels']}, which is not hidden_size / heads")
    # Longer texts than seq_length get other rotary embeddings and scaled scores, which Megatron does not have.
    longest = _stated(raw, place, "seq_length", "max_position_embeddings")
    gated = {"intermediate_size": _stated(raw, place, "intermediate_size") // 2}
    kind = {"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"]}
    return _like_llama(raw | {"max_position_embeddings": longest}, place, **kind, **gated)


def _chatglm(raw: Facts, place: Path) -> Facts:
    wanted = {
        "rmsnorm": True, "post_layer_norm": True, "apply_residual_connection_post_layernorm": False, "add_bias_linear": False,
        "original_rope": True, "multi_query_attention": True, "rope_ratio": 1,
    }  # fmt: skip
    for name, value in wanted.items():
        if raw.get(name, value) != value:
            raise UserError(f"{place}: {name} is {raw[name]}, and ChatGLM3's published models have {value}")
    renamed = {
        "num_hidden_layers": "num_layers", "intermediate_size": "ffn_hidden_size", "vocab_size": "padded_vocab_size",
        "max_position_embeddings": "seq_length", "num_key_value_heads": "multi_query_group_num",
        "rms_norm_eps": "layernorm_epsilon",
    }  # fmt: skip
    known = raw | {name: _stated(raw, place, theirs) for name, theirs in renamed.items()}
    rope = {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5}
    own = {name: raw.get(name) for name in ("bos_token_id", "eos_token_id", "pad_token_id")}
    return _like_llama(
        known,
        place,
        model_type="glm",
        architectures=["GlmForCausalLM"],
        head_dim=_stated(raw, place, "kv_channels"),
        attention_bias=bool(raw.get("add_qkv_bias", False)),
        rope_parameters=rope,
        **own,
    )


_OF_CHATGLM = {
    "transformer.embedding.word_embeddings": "model.embed_tokens", "transformer.encoder.final_layernorm": "model.norm",
    "transformer.output_layer": "lm_head", "transformer.encoder.layers.*.input_layernorm": _PLAIN[1],
    "transformer.encoder.layers.*.self_attention.dense": _PLAIN[2],
    "transformer.encoder.layers.*.post_attention_layernorm": _PLAIN[3],
    "transformer.encoder.layers.*.mlp.dense_h_to_4h": f"{_LAYER}mlp.gate_up_proj",
    "transformer.encoder.layers.*.mlp.dense_4h_to_h": _PLAIN[6],
}  # fmt: skip
_OF_INTERNLM2 = {
    "model.tok_embeddings": "model.embed_tokens", f"{_LAYER}attention_norm": _PLAIN[1], f"{_LAYER}attention.wo": _PLAIN[2],
    f"{_LAYER}ffn_norm": _PLAIN[3], f"{_LAYER}feed_forward.w1": _PLAIN[4], f"{_LAYER}feed_forward.w3": _PLAIN[5],
    f"{_LAYER}feed_forward.w2": _PLAIN[6], "model.norm": "model.norm", "output": "lm_head",
}  # fmt: skip
_OF_QWEN = {
    "transformer.wte": "model.embed_tokens", "transformer.h.*.ln_1": _PLAIN[1], "transformer.h.*.attn.c_proj": _PLAIN[2],
    "transformer.h.*.ln_2": _PLAIN[3], "transformer.h.*.mlp.w2": _PLAIN[4], "transformer.h.*.mlp.w1": _PLAIN[5],
    "transformer.h.*.mlp.c_proj": _PLAIN[6], "transformer.ln_f": "model.norm", "lm_head": "lm_head",
}  # fmt: skip
_THREE = {name: name for name in (*_PLAIN, *_QKV)}
# The field model_type of config.json -> the form.
FORMS: Mapping[str, Form] = {
    "aquila": Form("Aquila", _like_llama, _THREE),
    "baichuan": Form("Baichuan", _baichuan, packed="model.layers.*.self_attn.W_pack"),
    "chatglm": Form(
        "ChatGLM3",
        _chatglm,
        _OF_CHATGLM,
        packed="transformer.encoder.layers.*.self_attention.query_key_value",
    ),
    "internlm": Form("InternLM", _internlm, _THREE),
    "internlm2": Form(
        "InternLM2", _internlm2, _OF_INTERNLM2, packed="model.layers.*.attention.wqkv", grouped=True
    ),
    "qwen": Form("Qwen", _qwen, _OF_QWEN, packed="transformer.h.*.attn.c_attn"),
}
_BAICHUAN2 = Form("Baichuan2", _baichuan, packed=FORMS["baichuan"].packed, unit_head=True)


def form_of(raw: Facts, family: str, place: Path) -> Form | None:
    """The form of a model, or None if transformers has its class.

    raw: what config.json says. family: that of the recipe.

    Raises:
        UserError: it is not clear which family the model belongs to.
    """
    kind = str(raw.get("model_type"))
    if kind != "baichuan":
        return FORMS.get(kind)
    try:
        return {"Baichuan": FORMS[kind], "Baichuan2": _BAICHUAN2}[family]
    except KeyError:
        raise UserError(
            f"{place}: model_type is baichuan in Baichuan and in Baichuan2, whose output layers differ: "
            "write `recipe: baichuan-7b` or `recipe: baichuan2-7b`"
        ) from None


def write(source: Path, folder: Path, form: Form, facts: Facts) -> None:
    """Writes the tensors of a folder into another one, as transformers names them. facts: config.json in the form.

    Raises:
        UserError: a tensor has a name that the family does not have.
    """
    provide_torch()
    from safetensors.torch import load_file, save_file

    places: dict[str, str] = {}
    for file in weights.files(source):
        made: dict[str, torch.Tensor] = {}
        for name, tensor in load_file(file).items():
            if is_frequency(name):
                _check_frequencies(file, name, tensor, facts)
            else:
                made |= _unpacked(name, tensor, form, facts, file)
        places |= dict.fromkeys(made, file.name)
        save_file(made, folder / file.name, {"format": "pt"})
    if (source / weights.INDEX).is_file():
        _write_index(folder, places)


def restore(source: Path, folder: Path, form: Form, facts: Facts) -> None:
    """The opposite of `write`, but for the lengths of rows.

    Raises:
        ProofError: a part of a packed tensor is missing, or a tensor has a name that transformers does not have.
    """
    provide_torch()
    from safetensors.torch import load_file, save_file

    own = {theirs: ours for ours, theirs in form.modules.items()}
    files = weights.files(source)
    places: dict[str, str] = {}
    parts: dict[tuple[str, str], dict[str, torch.Tensor]] = {}
    for file in files:
        made = {}
        for name, tensor in load_file(file).items():
            module, number, kind = _split(name)
            if form.packed and module in _QKV:
                whole = _named(form.packed, number, kind)
                held = parts.setdefault((number, kind), {})
                held[module] = tensor
                if len(held) == len(_QKV):
                    made[whole] = _pack([held[one] for one in _QKV], form, facts)
                    del parts[number, kind]
            elif module in own:
                made[_named(own[module], number, kind)] = tensor
            else:
                raise ProofError(f"{name} has no place in a model of {form.family}")
        places |= dict.fromkeys(made, file.name)
        save_file(
            {name: tensor.contiguous() for name, tensor in made.items()}, folder / file.name, {"format": "pt"}
        )
    if parts:
        number, kind = min(parts)
        raise ProofError(f"layer {number} has only a part of the {kind} of queries, keys and values")
    if len(files) > 1:
        _write_index(folder, places)


def check_head(folder: Path, form: Form) -> None:
    """Raises ProofError unless the rows of the output layer have the length that the family's code gives them."""
    if not form.unit_head:
        return
    for name, tensor in _tensors(folder):
        if name == HEAD and _off(tensor).any():
            raise ProofError(
                f"{HEAD} has rows whose length is not one. {form.family}'s code divides them by it, and MindSpeed-LLM does not, "
                "so this model would compute something else there. Train with LoRA, which leaves the output layer as it is"
            )


def is_frequency(name: str) -> bool:
    """Whether a tensor has frequencies of rotary embeddings, which follow from config.json."""
    return _FREQUENCIES.fullmatch(name) is not None


def _check_frequencies(file: Path, name: str, found: torch.Tensor, facts: Facts) -> None:
    """Raises UserError if frequencies are not those of config.json."""
    import torch

    rope = facts["rope_parameters"]
    size = int(_sizes(facts)[2] * rope.get("partial_rotary_factor", 1.0))
    wanted = 1.0 / rope["rope_theta"] ** (torch.arange(0, size, 2, dtype=torch.float32) / size)
    near = {"rtol": 1e-4 if found.dtype == torch.float32 else 1e-2, "atol": 1e-6}
    if found.shape != wanted.shape or not torch.allclose(found.float(), wanted, **near):
        raise UserError(f"{file}: {name} has other frequencies than those of config.json")


def _tensors(folder: Path) -> Iterator[tuple[str, torch.Tensor]]:
    provide_torch()
    from safetensors.torch import load_file

    for file in weights.files(folder):
        yield from load_file(file).items()


def _split(name: str) -> tuple[str, str, str]:
    """The module with * for the number of its layer, that number, and weight or bias; empty texts for another name."""
    match = _NAME.fullmatch(name)
    if match is None:
        return "", "", ""
    numbers = _NUMBER.findall(match[1] + ".")
    return _NUMBER.sub("*", match[1], count=1), numbers[0] if numbers else "", match[2]


def _named(module: str, number: str, kind: str) -> str:
    return f"{module.replace('*', number)}.{kind}"


def _unpacked(
    name: str, tensor: torch.Tensor, form: Form, facts: Facts, file: Path
) -> dict[str, torch.Tensor]:
    """A tensor of the family by its name in transformers, or the three that are packed in it."""
    module, number, kind = _split(name)
    if module and module == form.packed:
        three = _unpack(tensor, form, facts)
        return {_named(one, number, kind): part.contiguous() for one, part in zip(_QKV, three, strict=True)}
    if module not in form.modules:
        raise UserError(f"{file}: has {name}, which models of {form.family} do not have")
    made = _named(form.modules[module], number, kind)
    return {made: _with_unit_rows(tensor) if form.unit_head and made == HEAD else tensor}


def _sizes(facts: Facts) -> tuple[int, int, int]:
    """Groups of heads, query heads of a group, and rows of a head."""
    heads, groups = facts["num_attention_heads"], facts["num_key_value_heads"]
    return groups, heads // groups, facts.get("head_dim") or facts["hidden_size"] // heads


def _unpack(packed: torch.Tensor, form: Form, facts: Facts) -> list[torch.Tensor]:
    """Queries, keys and values, [rows, ...] each."""
    groups, queries, size = _sizes(facts)
    if not form.grouped:
        return list(packed.split([groups * queries * size, groups * size, groups * size]))
    rest = packed.shape[1:]
    whole = packed.reshape(groups, queries + 2, size, *rest)
    return [
        part.reshape(-1, *rest) for part in (whole[:, :queries], whole[:, queries], whole[:, queries + 1])
    ]


def _pack(three: list[torch.Tensor], form: Form, facts: Facts) -> torch.Tensor:
    """The opposite of `_unpack`."""
    import torch

    if not form.grouped:
        return torch.cat(three)
    groups, queries, size = _sizes(facts)
    rest = three[0].shape[1:]
    counts = (queries, 1, 1)
    parts = [part.reshape(groups, count, size, *rest) for part, count in zip(three, counts, strict=True)]
    return torch.cat(parts, dim=1).reshape(-1, *rest)


def _off(tensor: torch.Tensor) -> torch.Tensor:
    """[rows, 1]: whether the length of a row is not one."""
    return (tensor.float().norm(dim=1, keepdim=True) - 1).abs() > _NEAR_ONE[str(tensor.dtype)]


def _with_unit_rows(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor with its rows divided by their lengths. A row that has the length one stays as it is, bit for bit."""
    import torch

    lengths = tensor.float().norm(dim=1, keepdim=True).clamp_min(1e-12)
    return torch.where(_off(tensor), (tensor.float() / lengths).to(tensor.dtype), tensor)


def _write_index(folder: Path, places: Mapping[str, str]) -> None:
    size = sum((folder / name).stat().st_size for name in set(places.values()))
    content = {"metadata": {"total_size": size}, "weight_map": dict(sorted(places.items()))}
    (folder / weights.INDEX).write_text(json.dumps(content, indent=1), encoding="utf-8")
