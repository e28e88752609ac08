"""Tokenizers by one interface: those of Hugging Face folders, sentencepiece models, GPT-2's BPE files, and bytes for toys."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from .. import whole
from ..errors import UserError, first_line

KINDS = ("auto", "huggingface", "sentencepiece", "gpt2", "bytes")


class Tokenizer(Protocol):
    """What the encoders need of a tokenizer. `size` is the number of ids; `bos`, `eos` and `pad` are None where absent."""

    name: str
    size: int
    bos: int | None
    eos: int | None
    pad: int | None

    def encode(self, text: str) -> list[int]:
        """The ids of a text. Special tokens that stand in the text are recognised, and none are added."""

    def encode_documents(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of whole documents, with those special tokens that the tokenizer adds by itself."""

    def id_of(self, token: str) -> int | None:
        """The id of one token; None if there is no such token."""

    def recognise(self, token: str) -> int:
        """Has this token recognised where it stands in a text, and returns its id. UserError if there is no such token."""

    def end_with(self, token: str) -> None:
        """Makes this token the end token."""

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids, with special tokens."""

    def description(self) -> str:
        """A text that differs between tokenizers with different ids."""


def load_tokenizer(path: str | None, kind: str = "auto", merges: str | None = None) -> Tokenizer:
    """Loads the tokenizer of a configuration.

    Raises:
        UserError: the files are absent or damaged, or the kind cannot be told from them.
    """
    if kind == "bytes":
        return Bytes()
    if path is None:
        raise UserError(
            "data.tokenizer.path: is missing; name the tokenizer's folder or file, or set kind: bytes"
        )
    place = Path(path)
    whole.refuse_pointers([place])
    whole.refuse_pointers_in(place)
    if kind == "auto":
        kind = _kind_of(place, merges)
    if kind == "sentencepiece":
        return SentencePiece(_existing(place))
    if kind == "gpt2":
        return HuggingFace(place, *_gpt2_files(place, merges))
    return HuggingFace(place)


def _kind_of(place: Path, merges: str | None) -> str:
    if merges is not None:
        return "gpt2"
    if place.is_file():
        return "sentencepiece" if place.suffix == ".model" else "huggingface"
    if place.is_dir():
        names = {path.name for path in place.iterdir()}
        if not names & {"tokenizer.json", "tokenizer_config.json"}:
            if {"vocab.json", "merges.txt"} <= names:
                return "gpt2"
            if "tokenizer.model" in names:
                return "sentencepiece"
    return "huggingface"


def _existing(place: Path) -> Path:
    if place.is_dir():
        place = place / "tokenizer.model"
    if not place.is_file():
        raise UserError(f"data.tokenizer.path: there is no file {place}")
    return place


def _gpt2_files(place: Path, merges: str | None) -> tuple[Path, Path]:
    vocabulary = place / "vocab.json" if place.is_dir() else place
    pairs = Path(merges) if merges else vocabulary.with_name("merges.txt")
    for path in (vocabulary, pairs):
        if not path.is_file():
            raise UserError(f"data.tokenizer: there is no file {path}")
    return vocabulary, pairs


class Bytes:
    """One id for each byte of UTF-8, then the end token 256 and the filler 257. For toys and tests."""

    name = "bytes"
    size = 258
    bos: int | None = None
    eos: int | None = 256
    pad: int | None = 257
    _NAMES = {256: "<eos>", 257: "<pad>"}

    def encode(self, text: str) -> list[int]:
        return list(text.encode("utf-8"))

    def encode_documents(self, texts: Sequence[str]) -> list[list[int]]:
        return [self.encode(text) for text in texts]

    def id_of(self, token: str) -> int | None:
        raw = token.encode("utf-8")
        return raw[0] if len(raw) == 1 else {name: id for id, name in self._NAMES.items()}.get(token)

    def recognise(self, token: str) -> int:
        return _known(self, token)

    def end_with(self, token: str) -> None:
        self.eos = _known(self, token)

    def decode(self, ids: Sequence[int]) -> str:
        text, held = "", bytearray()
        for id in ids:
            if id in self._NAMES:
                text += held.decode("utf-8", "replace") + self._NAMES[id]
                held.clear()
            else:
                held.append(id)
        return text + held.decode("utf-8", "replace")

    def description(self) -> str:
        return "bytes"


class SentencePiece:
    """A sentencepiece model. Its piece `<eod>` ends a document, or else its end-of-sentence piece."""

    def __init__(self, path: Path) -> None:
        import sentencepiece

        self.name = str(path)
        raw = path.read_bytes()
        try:
            self._model = sentencepiece.SentencePieceProcessor(model_proto=raw)
        except RuntimeError:
            raise UserError(f"data.tokenizer.path: {path} is not a complete sentencepiece model") from None
        self._raw = raw
        self.size = self._model.vocab_size()
        self.bos = self._present(self._model.bos_id())
        self.eos = self.id_of("<eod>")
        if self.eos is None:
            self.eos = self._present(self._model.eos_id())
        self.pad = self._present(self._model.pad_id())

    @staticmethod
    def _present(id: int) -> int | None:
        return id if id >= 0 else None

    def encode(self, text: str) -> list[int]:
        return self._model.encode(text)

    def encode_documents(self, texts: Sequence[str]) -> list[list[int]]:
        return self._model.encode(list(texts))

    def id_of(self, token: str) -> int | None:
        id = self._model.piece_to_id(token)
        return None if id == self._model.unk_id() else id

    def recognise(self, token: str) -> int:
        return _known(self, token)

    def end_with(self, token: str) -> None:
        self.eos = _known(self, token)

    def decode(self, ids: Sequence[int]) -> str:
        special = {self.bos, self.eos, self.pad} - {None}
        text = ""
        held: list[int] = []
        for id in ids:
            if id in special or self._model.is_control(id):
                text += self._model.decode(held) + self._model.id_to_piece(id)
                held = []
            else:
                held.append(id)
        return text + self._model.decode(held)

    def description(self) -> str:
        from hashlib import sha256

        return f"sentencepiece {sha256(self._raw).hexdigest()}"


class HuggingFace:
    """A tokenizer of transformers, from a folder, from a tokenizer.json, or from GPT-2's vocab.json and merges.txt."""

    def __init__(self, place: Path, vocabulary: Path | None = None, merges: Path | None = None) -> None:
        self._use(
            _load_gpt2(vocabulary, merges) if vocabulary and merges else _load_huggingface(place), str(place)
        )

    @classmethod
    def of(cls, inner: Any, name: str) -> HuggingFace:
        """Wraps a tokenizer that has been loaded."""
        made = cls.__new__(cls)
        made._use(inner, name)
        return made

    def _use(self, inner: Any, name: str) -> None:
        self.name, self.inner = name, inner
        # Some folders have holes in their ids, so that the largest id is above the number of tokens.
        self.size = max(len(self.inner), 1 + max(self.inner.get_vocab().values(), default=0))
        self.bos, self.eos, self.pad = (
            self.inner.bos_token_id,
            self.inner.eos_token_id,
            self.inner.pad_token_id,
        )

    def encode(self, text: str) -> list[int]:
        return self.inner.encode(text, add_special_tokens=False)

    def encode_documents(self, texts: Sequence[str]) -> list[list[int]]:
        return self.inner(list(texts))["input_ids"] if texts else []

    def id_of(self, token: str) -> int | None:
        return self.inner.get_vocab().get(token)

    def recognise(self, token: str) -> int:
        id = _known(self, token)
        if token not in self.inner.all_special_tokens:
            self.inner.add_tokens([token], special_tokens=True)
        return id

    def end_with(self, token: str) -> None:
        self.eos = self.recognise(token)

    def decode(self, ids: Sequence[int]) -> str:
        return self.inner.decode(list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False)

    def description(self) -> str:
        from hashlib import sha256

        backend = getattr(self.inner, "backend_tokenizer", None)
        content = (
            backend.to_str() if backend is not None else json.dumps(self.inner.get_vocab(), sort_keys=True)
        )
        special = [self.inner.chat_template, self.bos, self.eos, self.pad]
        return f"huggingface {sha256(content.encode()).hexdigest()} {special}"


def _known(tokenizer: Tokenizer, token: str) -> int:
    id = tokenizer.id_of(token)
    if id is None:
        raise UserError(
            f"the tokenizer {tokenizer.name} has no token {token}, with which the template ends an answer: "
            "choose the template of the tokenizer's model, or `chat` for the tokenizer's own"
        )
    return id


def _load_huggingface(place: Path) -> Any:
    quiet_transformers()
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    if place.is_file():
        try:
            return PreTrainedTokenizerFast(tokenizer_file=str(place))
        except Exception as error:  # the reader in Rust raises the class Exception itself
            raise UserError(
                f"data.tokenizer.path: {place} is not a complete tokenizer.json: {first_line(error)}"
            ) from None
    local = place.is_dir()
    if not local and (place.is_absolute() or str(place).startswith(".")):
        raise UserError(f"data.tokenizer.path: there is no folder {place}")
    try:
        return AutoTokenizer.from_pretrained(str(place), trust_remote_code=False, local_files_only=local)
    except Exception as error:  # of many classes, by the tokenizer and by the state of the network
        what = (
            "cannot be loaded"
            if local
            else "is not a folder here, and cannot be loaded from the Hugging Face hub"
        )
        raise UserError(f"data.tokenizer.path: {place} {what}: {first_line(error)}") from None


def _load_gpt2(vocabulary: Path, merges: Path) -> Any:
    quiet_transformers()
    from tokenizers import AddedToken, decoders, models, pre_tokenizers
    from tokenizers import Tokenizer as Fast
    from transformers import PreTrainedTokenizerFast

    try:
        fast = Fast(models.BPE.from_file(str(vocabulary), str(merges)))
    except Exception as error:  # the reader in Rust raises the class Exception itself
        raise UserError(
            f"data.tokenizer: {vocabulary} and {merges} cannot be read: {first_line(error)}"
        ) from None
    fast.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    fast.decoder = decoders.ByteLevel()
    end = "<|endoftext|>"
    if fast.token_to_id(end) is None:
        raise UserError(f"data.tokenizer: {vocabulary} has no token {end}: is it GPT-2's vocabulary?")
    fast.add_special_tokens([AddedToken(end, special=True)])
    return PreTrainedTokenizerFast(tokenizer_object=fast, eos_token=end)


def quiet_transformers() -> None:
    """Keeps transformers from advising to install PyTorch, which tokenizers do not need."""
    os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")
    logging.getLogger("transformers").setLevel(logging.ERROR)
