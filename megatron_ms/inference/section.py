"""The section `generate` of a configuration: the model, how it chooses tokens, and how it is talked to."""

from __future__ import annotations

from typing import Literal

from pydantic import model_validator

from ..config import Place, Section, key


class Generate(Section):
    """The section `generate`. The commands `generate` and `chat` read it."""

    model: Place = key(help="the model's folder, as transformers writes it")
    checkpoint: Place | None = key(
        None,
        "a Megatron checkpoint of this model, whose weights are used, on as many processes as it has parts",
    )
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = key(
        "auto", "the type of the weights; auto is that of the files"
    )
    device: str = key("cpu", "cpu, or npu for an accelerator", pattern=r"^(cpu|cuda|npu)(:\d+)?$")
    seed: int = key(0, "of the random choice of tokens", ge=0)

    prompts: list[str] = key([], "generate: the beginnings of the texts")
    prompt_file: Place | None = key(None, "generate: a file with more beginnings, one a line")
    output: Place | None = key(
        None, "generate: a file for the texts as JSON lines; by default they are printed"
    )
    batch_size: int = key(1, "generate: texts that are continued together", ge=1)

    max_new_tokens: int = key(256, "the longest answer, in tokens", ge=1)
    sample: bool = key(False, "choose tokens at random, by their probability; else the likeliest one")
    temperature: float = key(
        1.0, "with sample: above 1 flattens the probabilities, below 1 sharpens them", gt=0
    )
    top_k: int | None = key(None, "with sample: only among so many likeliest tokens", ge=1)
    top_p: float | None = key(
        None, "with sample: only among the likeliest tokens of this joint probability", gt=0, le=1
    )
    beams: int = key(1, "the texts that are followed at the same time; the likeliest one is returned", ge=1)
    repetition_penalty: float = key(1.0, "above 1, tokens that were used become less likely", gt=0)

    template: str | None = key(
        None, "chat: the name of a template (`data --templates`); by default the tokenizer's own"
    )
    system: str | None = key(None, "chat: the system message")
    history: int = key(10, "chat: the earlier questions that the model sees with their answers", ge=0)
    thinking: bool | None = key(None, "chat: whether a template with thoughts asks for them")

    @model_validator(mode="after")
    def _fits(self) -> Generate:
        if not self.sample and (self.temperature != 1.0 or self.top_k or self.top_p):
            raise ValueError("temperature, top_k and top_p need sample: true")
        return self
