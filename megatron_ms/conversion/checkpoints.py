"""Megatron checkpoints and the models in them: what a configuration and a folder say of them, and whether both agree."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import UserError
from ..training import megatron
from ..training import settings as checks
from ..training.folder import LATEST, named_iteration
from . import forms, names

if TYPE_CHECKING:
    from ..config import Document
    from ..config.training import Parallel
    from ..training.settings import Settings

# Our keys of the section `model` -> names in config.json, which must agree.
_GEOMETRY = {
    "num_layers": ("num_hidden_layers", "n_layer"),
    "hidden_size": ("hidden_size", "n_embd", "n_embed"),
    "num_attention_heads": ("num_attention_heads", "n_head"),
    "num_query_groups": ("num_key_value_heads",),
    "ffn_hidden_size": ("intermediate_size",),
    "kv_channels": ("head_dim",),
    "vocab_size": ("vocab_size",),
    "num_experts": ("num_local_experts", "num_experts", "n_routed_experts"),
    "moe_router_topk": ("num_experts_per_tok",),
    "moe_ffn_hidden_size": ("moe_intermediate_size",),
}

# model_type -> the window of transformers where config.json does not name one. Of these, the first two have it in all layers.
_WINDOWS = {"mistral": 4096, "mixtral": None, "qwen2": None, "qwen3": None, "qwen3_moe": None}
_EVERYWHERE = ("mistral", "mixtral")


def settings_of(document: Document) -> Settings:
    """The settings of a training with as many processes as the layout has parts."""
    settings = checks.checked(document, checks.Settings)
    parallel = settings.parallel
    if parallel.context > 1:
        raise document.error("parallel.context", "a checkpoint does not depend on it: remove it")
    run = settings.run.model_copy(update={"nodes": 1, "port": 0})
    train = settings.train.model_copy(update={"global_batch": None, "micro_batch": 1})
    made = in_layout(replace(settings, run=run, train=train), parallel)
    checks.check_sizes(made)
    return made


def in_layout(settings: Settings, parallel: Parallel) -> Settings:
    """The same with these parallel sizes, and as many processes as the layout has parts."""
    count = parallel.tensor * parallel.pipeline * parallel.expert
    return replace(settings, parallel=parallel, run=settings.run.model_copy(update={"processes": count}))


def is_distributed(folder: Path) -> bool:
    """Whether an iteration has the format torch_dist."""
    return (folder / ".metadata").is_file()


def layout(settings: Settings) -> str:
    """The parallel sizes of a checkpoint in words."""
    parallel = settings.parallel
    sizes = {"TP": parallel.tensor, "PP": parallel.pipeline, "EP": parallel.expert}
    virtual = parallel.layers_per_virtual_stage
    text = " x ".join(f"{name} {size}" for name, size in sizes.items() if name != "EP" or size > 1)
    return text + (f", {virtual} layers in a chunk" if virtual else "")


def facts_of(model: Path) -> dict[str, Any]:
    """What the config.json of a folder says, in the words of the class of transformers that computes the model."""
    place, facts = model / "config.json", raw_facts_of(model)
    if own := forms.FORMS.get(str(facts.get("model_type"))):
        return own.facts(facts, place)
    if "auto_map" in facts:  # upstream's programs would run it
        raise UserError(f"{place}: the model needs code of its own (auto_map), which is never run")
    return facts


def raw_facts_of(model: Path) -> dict[str, Any]:
    """The keys of the config.json of a folder."""
    place = model / "config.json"
    try:
        facts = json.loads(place.read_text(encoding="utf-8"))
    except (ValueError, UnicodeDecodeError) as error:
        raise UserError(f"{place}: {error}") from None
    if not isinstance(facts, dict):
        raise UserError(f"{place}: must be an object with keys")
    return facts


def check_geometry(settings: Settings, facts: Mapping[str, Any], model: Path) -> None:
    """Raises UserError for the first key of the section `model` that config.json contradicts."""
    for key, theirs in _GEOMETRY.items():
        own = getattr(settings.model, key)
        stated = next((facts[name] for name in theirs if facts.get(name) is not None), None)
        given = f"model.{key}" in settings.document.origins
        if given and stated is not None and own is not None and own != stated:
            message = f"is {own}, but {model / 'config.json'} has {stated}"
            raise settings.document.error(f"model.{key}", message)
    _check_window(settings, facts, model / "config.json")
    _check_flags(settings, facts, model / "config.json")


# What Megatron's flags are where nothing gives them. The last is what this project gives.
_DEFAULTS = {
    "norm_epsilon": 1e-5,
    "position_embedding_type": "learned_absolute",
    "rotary_base": 10000,
    "rotary_percent": 1.0,
    "no_bias_gelu_fusion": True,
}


def _check_flags(settings: Settings, facts: Mapping[str, Any], config: Path) -> None:
    """Raises UserError for the first flag that config.json asks for, and that has another value."""
    kind = str(facts.get("model_type"))
    table = names.TABLES.get(kind)
    flags_of = table.flags if table else _FLAGS.get(kind)
    needed = flags_of(facts, config) if flags_of else {}
    if facts.get(forms.ALIBI):
        needed["position_embedding_type"] = "alibi"
    for name, wanted in needed.items():
        given = getattr(settings.model, name, None)
        given = settings.flag(name) if given is None else given
        if given is None:
            given = _DEFAULTS.get(name, False if isinstance(wanted, bool) else None)
        if given != wanted:
            said = str(wanted).lower() if isinstance(wanted, bool) else "null" if wanted is None else wanted
            raise settings.document.error(f"model.{name}", f"is {given}, but must be {said}, to fit {config}")


def _of_gemma2(facts: Mapping[str, Any], config: Path) -> dict[str, Any]:
    """The flags with which Megatron's model has the scale, the caps and the windows of a Gemma 2.

    Raises:
        UserError: there is no flag for what config.json says.
    """
    layers = facts.get("num_hidden_layers", 26)
    alternating = [("full" if number % 2 else "sliding") + "_attention" for number in range(layers)]
    for name, wanted in {"layer_types": alternating, "use_bidirectional_attention": None}.items():
        if (facts.get(name) or wanted) != wanted:
            raise UserError(f"{config}: {name} is {facts[name]}, and the layers of Gemma 2 have {wanted}")
    return {
        "spec": megatron.CAPPED_LAYERS,
        "attn_logit_softcapping": facts.get("attn_logit_softcapping", 50.0),
        "output_logit_softcapping": facts.get("final_logit_softcapping", 30.0),
        "query_pre_attn_scalar": facts.get("query_pre_attn_scalar", 256),
        "interleave_sliding_window": facts.get("sliding_window", 4096),
    }


# Model type -> the flags of a family whose names of tensors upstream's converter has.
_FLAGS = {"gemma2": _of_gemma2}


def _check_window(settings: Settings, facts: Mapping[str, Any], config: Path) -> None:
    """Raises UserError unless a token attends to as many tokens in Megatron's model as in that of transformers.

    A window of N is N tokens in transformers, the token itself among them, and N tokens before the token in MindSpeed-LLM,
    which applies it in flash attention alone.
    """
    kind = str(facts.get("model_type"))
    if kind not in _WINDOWS:
        return
    window = facts.get("sliding_window", _WINDOWS[kind])
    if kind not in _EVERYWHERE:
        if facts.get("use_sliding_window"):
            raise UserError(
                f"{config}: use_sliding_window: MindSpeed-LLM cannot give a window to some layers alone"
            )
        window = None
    given, document = settings.flag("sliding_window"), settings.document
    if window is None and given is not None:
        raise document.error("model.sliding_window", f"is {given}, but {config} has no window: write null")
    if window is None or given is None and window >= facts.get("max_position_embeddings", window + 1):
        return
    if given != window - 1:
        message = f"is {given}, but must be {window - 1}, because {config} has a window of {window} tokens with the token itself"
        raise document.error("model.sliding_window", message)
    checks.check_window_applies(settings)


def latest(checkpoint: Path) -> Path:
    """The folder of the last iteration of a checkpoint."""
    text, folder = named_iteration(checkpoint)
    if text != "release" and not text.isdigit() or not folder.is_dir():
        raise UserError(f"{checkpoint / LATEST}: names the iteration {text!r}, which is not there")
    return folder


def check_parts(settings: Settings, folder: Path) -> None:
    """Raises UserError unless a checkpoint in the format torch has the parts of the layout."""
    parts = [
        place for place in folder.glob("mp_rank_*") if re.fullmatch(r"mp_rank_\d\d(_\d\d\d)*", place.name)
    ]
    wanted = settings.run.processes
    if len(parts) != wanted:
        message = f"{folder} has {len(parts)} parts, but {layout(settings)} has {wanted}: give the sizes that it was trained with"
        raise settings.document.error("parallel", message)
