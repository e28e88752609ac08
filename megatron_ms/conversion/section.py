"""The section `convert` of a configuration."""

from __future__ import annotations

from typing import Literal

from ..config import Place, Section, key


class Convert(Section):
    """The section `convert`. The layout of a checkpoint is that of the section `parallel`."""

    source: Place = key(
        help="what is converted: a model of Hugging Face, a checkpoint of Megatron, or an adapter of peft"
    )
    output: Place = key(help="a new folder for the result")
    to: Literal["huggingface", "megatron", "adapter"] = key(
        "huggingface", "the format of the result; adapter: of peft, from a checkpoint of a training with LoRA"
    )
    like: Place | None = key(
        None,
        "from megatron: the folder with the model's config.json and tokenizer; for an adapter the model that it belongs to",
    )
    forward: bool = key(
        True, "compare a forward pass of source and result; false for models that this machine cannot hold"
    )
