"""The section `data` of a configuration: what is read, how it is encoded, and where it is written."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import field_validator, model_validator

from ..config import Place, Section, key
from .conversations import COLUMNS, TAGS
from .sources import TEXT_UNITS


class SourceKeys(Section):
    """One source. A path alone stands for a source with only this key."""

    path: Place | None = key(
        None, "a file, or a folder of files: JSON lines, JSON, CSV, parquet, Arrow or text"
    )
    dataset: Place | None = key(
        None, "a data set of Hugging Face: its name, or a folder that save_to_disk wrote"
    )
    subset: str | None = key(None, "the configuration of the data set")
    split: str = key("train", "the split of the data set")
    revision: str | None = key(None, "the commit, tag or branch of the data set")
    streaming: bool = key(False, "read the data set while it is loaded, without keeping it")
    text: Literal["line", "paragraphs", "file"] = key(
        TEXT_UNITS[0],
        "what a document of a text file is: a line, paragraphs joined to some thousand characters, or the file",
    )
    name: str | None = key(None, "a name for this source, used in the names of files")
    weight: float | None = key(None, "its share of the samples, in proportion to the other weights", gt=0)

    @model_validator(mode="after")
    def _one_place(self) -> SourceKeys:
        if (self.path is None) == (self.dataset is None):
            raise ValueError("give either path or dataset")
        return self


class TokenizerKeys(Section):
    """The tokenizer. A path alone stands for a tokenizer with only this key."""

    path: Place | None = key(None, "the tokenizer's folder or file")
    kind: Literal["auto", "huggingface", "sentencepiece", "gpt2", "bytes"] = key(
        "auto", "by default told from the files"
    )
    merges: Place | None = key(None, "GPT-2's merges.txt, if it does not stand beside vocab.json")


class Data(Section):
    """The section `data`."""

    task: Literal["pretrain", "instruction", "pairs"] = key("pretrain", "what the data is for")
    sources: list[SourceKeys] = key(
        help="what is read: paths, or objects with the keys of a source", min_length=1
    )
    tokenizer: TokenizerKeys = key(help="the tokenizer's folder or file, or an object with its keys")
    output: Place = key(help="the beginning of the names of all written files")
    format: Literal["megatron", "jsonl"] = key("megatron", "bin and idx files of Megatron, or JSON lines")
    workers: int = key(1, "processes that encode", ge=1, le=512)
    max_entries: int | None = key(None, "read only so many entries", ge=1)
    vocab_size: int | None = key(None, "the vocabulary of the model; by default the tokenizer's", ge=1)
    seq_length: int | None = key(None, "samples with so many ids or more are too long", ge=2)
    blend: Literal["auto", "rows", "files"] = key(
        "auto",
        "sources with weights: mix their rows in one output, or write a file for each and let Megatron mix",
    )
    repeat: bool = key(False, "begin sources that end early again, until each has ended once")

    keys: list[str] = key(
        ["text"], "pretrain: the keys of the texts; each gives an output of its own", min_length=1
    )
    eod: bool | None = key(None, "end each document with the end token; by default in pretraining only")
    dtype: Literal["auto", "uint16", "int32"] = key(
        "auto", "pretrain: the type of the ids; auto is Megatron's choice"
    )

    template: Place | None = key(
        None, "the name of a template, `chat` for the tokenizer's own, or a file with a chat template"
    )
    form: Literal["auto", "alpaca", "sharegpt"] = key("auto", "how conversations are written")
    columns: dict[str, str | None] = key(
        {}, "our name of a column: its name in the data, or null if there is none"
    )
    tags: dict[str, str] = key({}, "the words inside messages: role, content, user, assistant ...")
    history: int | None = key(None, "how many earlier exchanges are kept; by default all", ge=0)
    thinking: bool | None = key(None, "templates with thoughts: learn empty ones (true), remove all (false)")
    pack: Literal[False, True, "numbered"] = key(
        False,
        "fill rows of seq_length with samples; `numbered` gives each sample its number in the attention mask",
    )
    long: Literal["template", "drop", "cut"] = key(
        "template", "samples that are too long; by default as upstream does"
    )
    bad: Literal["skip", "stop"] = key(
        "skip", "conversations that cannot be used: leave them out and count them, or stop"
    )

    @field_validator("sources", mode="before")
    @classmethod
    def _paths(cls, given: Any) -> Any:
        listed = given if isinstance(given, list) else [given]
        return [{"path": one} if isinstance(one, str) else one for one in listed]

    @field_validator("tokenizer", mode="before")
    @classmethod
    def _path(cls, given: Any) -> Any:
        if given == "bytes":
            return {"kind": "bytes"}
        return {"path": given} if isinstance(given, str) else given

    @field_validator("output")
    @classmethod
    def _has_a_name(cls, given: str) -> str:
        if given.endswith(("/", "/.", "..")) or given in ("", "."):
            raise ValueError("must end with the beginning of the files' names, such as texts/story")
        return given

    @field_validator("columns", "tags")
    @classmethod
    def _known_names(cls, given: dict[str, Any], info: Any) -> dict[str, Any]:
        known = COLUMNS if info.field_name == "columns" else TAGS
        for name in given:
            if name not in known:
                raise ValueError(f"there is no {name} among {', '.join(known)}")
        return given

    @field_validator("keys")
    @classmethod
    def _names_of_files(cls, given: list[str]) -> list[str]:
        for name in given:
            if not name or "/" in name or len(set(given)) != len(given):
                raise ValueError("each key gives a file its name, so keys must differ and have no /")
        return given

    @model_validator(mode="after")
    def _fits_together(self) -> Data:
        if self.task != "pretrain" and self.template is None:
            raise ValueError(
                f"task: {self.task} needs a template: the name of one, or `chat` for the tokenizer's own"
            )
        if self.task == "pretrain" and self.template is not None:
            raise ValueError("a template is used with task: instruction or task: pairs only")
        if self.pack and (self.task != "instruction" or self.seq_length is None):
            raise ValueError("pack is for task: instruction, and needs seq_length")
        weights = [source.weight is not None for source in self.sources]
        if any(weights) and not all(weights):
            raise ValueError("give a weight to each of the sources, or to none")
        if self.repeat and (not any(weights) or self.mixes_files):
            raise ValueError("repeat is only for sources that have weights and whose rows are mixed")
        return self

    @property
    def weighted(self) -> bool:
        return self.sources[0].weight is not None

    @property
    def mixes_files(self) -> bool:
        """True if each source gets files of its own, which Megatron mixes while it trains."""
        if not self.weighted:
            return False
        return self.blend == "files" or (
            self.blend == "auto" and self.task == "pretrain" and self.format == "megatron"
        )
