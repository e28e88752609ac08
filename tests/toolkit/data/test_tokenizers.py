"""Tokenizers: each kind by one interface, told from its files, and what is wrong with the files is said."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from megatron_ms.data.tokenizer import Bytes, load_tokenizer
from megatron_ms.errors import UserError

_TEXT = "Grüße, 世界 <eos> 🌍"
_POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 3\n"


def test_bytes_keep_every_text() -> None:
    found = Bytes()
    assert found.decode(found.encode(_TEXT)) == _TEXT
    assert found.decode([104, 105, 256, 257, 226]) == "hi<eos><pad>\ufffd"
    assert (found.id_of("<eos>"), found.id_of("a"), found.id_of("ab")) == (256, 97, None)


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    """A sentencepiece model with the piece <eod>."""
    sentencepiece = pytest.importorskip("sentencepiece")
    raw = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["a rose is a rose is a rose", "the rose was red"] * 20),
        model_writer=raw,
        model_type="bpe",
        vocab_size=300,
        byte_fallback=True,
        user_defined_symbols=["<eod>"],
        hard_vocab_limit=False,
        minloglevel=2,
    )
    path = tmp_path_factory.mktemp("model") / "tokenizer.model"
    path.write_bytes(raw.getvalue())
    return path


def test_a_sentencepiece_model(model: Path) -> None:
    found = load_tokenizer(str(model))
    assert found.description() == load_tokenizer(str(model.parent)).description()
    assert found.eos == found.id_of("<eod>") is not None
    assert found.bos == 1 and found.pad is None
    assert found.id_of("nothing like it") is None
    ids = found.encode("the rose 世")
    assert max(ids) < found.size
    assert found.decode([1, *ids, found.eos]).replace("<eod>", "") == "<s>the rose 世"
    assert found.encode_documents(["a rose", ""]) == [found.encode("a rose"), []]


@pytest.fixture
def gpt2(tmp_path) -> Path:
    """GPT-2's two files, with a few merges."""
    from tokenizers import pre_tokenizers

    words = [*sorted(pre_tokenizers.ByteLevel.alphabet()), "he", "hel", "Ġw", "<|endoftext|>"]
    (tmp_path / "vocab.json").write_text(json.dumps({word: id for id, word in enumerate(words)}))
    (tmp_path / "merges.txt").write_text("#version: 0.2\nh e\nhe l\nĠ w\n")
    return tmp_path


def test_the_files_of_gpt2(gpt2: Path) -> None:
    found = load_tokenizer(str(gpt2))
    assert found.size == 260 and found.eos == 259
    ids = found.encode("help w<|endoftext|>")
    assert ids == [257, found.id_of("p"), 258, 259]
    assert found.decode(ids) == "help w<|endoftext|>"
    named = load_tokenizer(str(gpt2 / "vocab.json"), merges=str(gpt2 / "merges.txt"))
    assert named.encode(_TEXT) == found.encode(_TEXT)


def test_a_folder_of_hugging_face(tokenizer: Path) -> None:
    found = load_tokenizer(str(tokenizer))
    assert found.decode(found.encode(_TEXT + "<|im_end|>")) == _TEXT + "<|im_end|>"
    assert (found.id_of("<|im_end|>"), found.id_of("no such")) == (found.recognise("<|im_end|>"), None)
    found.end_with("<|im_end|>")
    assert found.eos == found.id_of("<|im_end|>")
    file = load_tokenizer(str(tokenizer / "tokenizer.json"))
    assert file.encode(_TEXT) == found.encode(_TEXT)


def test_holes_in_the_ids_count_as_ids(tmp_path) -> None:
    from tokenizers import Tokenizer, models

    Tokenizer(models.WordLevel({"a": 0, "b": 99}, unk_token="a")).save(str(tmp_path / "tokenizer.json"))
    assert load_tokenizer(str(tmp_path / "tokenizer.json")).size == 100


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({}, "data.tokenizer.path: there is no folder {folder}/x"),
        ({"x/tokenizer.json": "{"}, "{folder}/x cannot be loaded: "),
        ({"x": "{"}, "{folder}/x is not a complete tokenizer.json: "),
        ({"x/tokenizer.model": "no"}, "x/tokenizer.model is not a complete sentencepiece model"),
        ({"x/vocab.json": "{}", "x/merges.txt": ""}, "x/vocab.json has no token <|endoftext|>"),
        ({"x/tokenizer.json": _POINTER}, "{folder}/x/tokenizer.json: is a pointer of Git LFS"),
        ({"x/tokenizer.model": _POINTER}, "run `git lfs pull` in {folder}/x"),
        ({"x": _POINTER}, "{folder}/x: is a pointer of Git LFS"),
        ({"x/vocab.json": "[", "x/merges.txt": ""}, "x/merges.txt cannot be read: "),
    ],
)
def test_what_is_wrong_with_the_files(files: dict[str, str], words: str, tmp_path: Path) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    with pytest.raises(UserError) as caught:
        load_tokenizer(str(tmp_path / "x"))
    assert words.format(folder=tmp_path) in str(caught.value)


def test_a_path_is_needed() -> None:
    with pytest.raises(UserError, match="data.tokenizer.path: is missing"):
        load_tokenizer(None)
