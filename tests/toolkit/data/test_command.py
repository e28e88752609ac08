"""The command `data`: its output, its checks, and the examples of docs/toolkit_data.md."""

from __future__ import annotations

import io
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from megatron_ms.commands import main
from megatron_ms.data.section import Data
from megatron_ms.data.show import show
from megatron_ms.errors import UserError
from tests.toolkit.data import toys

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs/toolkit_data.md"


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """An empty working folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _config(folder: Path, **keys: str) -> str:
    lines = {"sources": "rows.jsonl", "tokenizer": "bytes", "output": "out/set", **keys}
    (folder / "data.yaml").write_text(
        "data:\n" + "".join(f"  {key}: {value}\n" for key, value in lines.items())
    )
    return "data.yaml"


def test_a_data_set_is_made_and_checked(folder, capsys) -> None:
    toys.write_rows(folder / "rows.jsonl", toys.TEXTS)
    assert main(["data", _config(folder)]) == 0
    assert "out/set: made\n  files      set_text_document\n  counts     " in capsys.readouterr().out
    assert main(["data", "data.yaml"]) == 0
    assert "made before from the same input, nothing to do" in capsys.readouterr().out
    assert main(["data", "--check", "out/set_text_document"]) == 0
    said = capsys.readouterr().out
    assert "4 documents, 3 sequences, " in said and "both files are as they were made (set.data.json)" in said
    path = folder / "out/set_text_document.bin"
    path.write_bytes(b"\x07" + path.read_bytes()[1:])
    assert main(["data", "--check", "out/set_text_document.bin"]) == 2
    assert "set_text_document.bin: has changed since it was made" in capsys.readouterr().err


def test_samples_are_shown_with_marks(folder, capsys) -> None:
    toys.write_rows(folder / "rows.jsonl", toys.ALPACA)
    assert main(["data", _config(folder, task="instruction", template="default"), "--show", "2"]) == 0
    said = capsys.readouterr().out
    assert "Human: Say hello\nin German\nAssistant:⟦Hallo!<eos>⟧" in said
    assert re.search(r"rows\.jsonl, line 2: \d+ ids, \d+ learned\n", said)
    assert re.search(r"\d+ of \d+ ids are learned \(\d+\.\d %\); all are below 258\n$", said)
    assert not (folder / "out").exists()


def test_colours_on_a_terminal(folder) -> None:
    toys.write_rows(folder / "rows.jsonl", [{"instruction": "\x1b[31mQ", "output": "A"}])
    data = Data(task="instruction", template="default", sources="rows.jsonl", tokenizer="bytes", output="o")
    output = io.StringIO()
    assert show(data, 1, output, colours=True) == 0
    assert "\x1b[2mHuman: \\x1b[31mQ\nAssistant:\x1b[0m\x1b[1;32mA<eos>\x1b[0m" in output.getvalue()


def test_another_id_that_is_learned_is_shown(folder, tokenizer, capsys) -> None:
    toys.write_rows(folder / "rows.jsonl", toys.ALPACA[:1])
    config = _config(folder, task="instruction", template="gemma", tokenizer=str(tokenizer))
    assert main(["data", config, "--show", "1"]) == 0
    assert "model\n⟦Nein.⟧⟦<→</s>⟧end_of_turn>\n" in capsys.readouterr().out


def test_a_sample_that_learns_nothing_fails(folder, capsys) -> None:
    toys.write_rows(
        folder / "rows.jsonl", [{"instruction": "Q", "output": ""}, {"instruction": "Q", "output": "A"}]
    )
    config = _config(folder, task="instruction", template="empty")
    assert main(["data", config, "--show", "5"]) == 1
    assert "WRONG: nothing of it would be learned: rows.jsonl, line 1" in capsys.readouterr().out


def test_what_is_too_long_is_not_shown(folder, capsys) -> None:
    toys.write_rows(folder / "rows.jsonl", toys.ALPACA)
    config = _config(folder, task="instruction", template="default", seq_length="60")
    assert main(["data", config, "--show", "9"]) == 0
    said = capsys.readouterr().out
    assert (
        said.count(" learned\n") == 2
        and "left out: has 60 ids or more: rows.jsonl, line 1, rows.jsonl" in said
    )


def test_an_id_outside_of_the_vocabulary_fails(folder, capsys) -> None:
    toys.write_rows(folder / "rows.jsonl", toys.ALPACA)
    config = _config(folder, task="instruction", template="default", vocab_size="200")
    for words in ([], ["--show", "1"]):
        assert main(["data", config, *words]) == 2
        assert (
            "rows.jsonl, line 1: the id 256 is outside of the vocabulary of 200 ids"
            in capsys.readouterr().err
        )


def test_pretraining_is_shown_too(folder, capsys) -> None:
    toys.write_rows(folder / "rows.jsonl", toys.TEXTS)
    assert main(["data", _config(folder), "--show", "1"]) == 0
    assert "rows.jsonl, line 1, text: 18 ids, 18 learned\n⟦Once upon a time.<eos>⟧" in capsys.readouterr().out


def test_pairs_are_shown_too(folder, capsys) -> None:
    toys.write_rows(folder / "rows.jsonl", toys.ALPACA_PAIRS)
    assert main(["data", _config(folder, task="pairs", template="default"), "--show", "4"]) == 0
    said = capsys.readouterr().out
    assert "line 1, chosen: " in said and "Assistant:⟦N<eos>⟧" in said


def test_templates_are_listed(capsys) -> None:
    assert main(["data", "--templates"]) == 0
    assert len(capsys.readouterr().out.split()) == 31


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["data.sources=nowhere.jsonl"], "data.sources: there is no file or folder nowhere.jsonl"),
        (["data.task=instruction"], "task: instruction needs a template"),
        (["data.template=qwen"], "a template is used with task: instruction or task: pairs only"),
        (["data.keys=[a/b]"], "keys must differ and have no /"),
        (["data.pack=true"], "pack is for task: instruction, and needs seq_length"),
        (["data.colums.input=x"], "did you mean columns?"),
        (["data.columns.question=x"], "there is no question among instruction, input"),
        (["data.workers=0"], "data.workers"),
        (["data.output=out/"], "data.output: value error, must end with the beginning of the files' names"),
        (["data.output=."], "must end with the beginning of the files' names"),
        (
            ["data.output=~nobody-of-this-name/x"],
            "there is no home folder for ~nobody-of-this-name: write the whole path",
        ),
        (["data.sources=[{path: a, dataset: b}]"], "give either path or dataset"),
    ],
)
def test_wrong_configurations(folder, capsys, words: list[str], message: str) -> None:
    toys.write_rows(folder / "rows.jsonl", toys.TEXTS)
    assert main(["data", _config(folder), *words]) == 2
    assert message in capsys.readouterr().err
    assert not (folder / "out").exists()


def test_the_folder_of_the_user(folder, monkeypatch, capsys) -> None:
    """A shell does not replace ~ in KEY=VALUE and in files, where it would make a folder of that name."""
    monkeypatch.setenv("HOME", str(folder / "home"))
    (folder / "home").mkdir()
    toys.write_rows(folder / "home/rows.jsonl", toys.TEXTS)
    words = ["data.sources=[~/rows.jsonl]", "data.output=~/made/set"]
    assert main(["data", _config(folder), *words]) == 0
    assert (folder / "home/made/set_text_document.bin").is_file() and not (folder / "~").exists()
    assert f"--data-path {folder / 'home/made/set_text_document'}" in capsys.readouterr().out


def test_a_terminal_that_lacks_characters(folder) -> None:
    """They are shown as escapes. Python would end with an error."""
    (folder / "rows.jsonl").write_text('{"text": "Zürich 世界"}\n', encoding="utf-8")
    words = [sys.executable, "-m", "megatron_ms", "data", _config(folder), "--show", "1"]
    variables = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONPATH": str(ROOT)}
    run = subprocess.run(words, env=variables, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert r"Z\xfcrich \u4e16\u754c" in run.stdout


def test_a_folder_is_no_beginning_of_names(folder, capsys) -> None:
    assert main(["data", "--check", "."]) == 2
    assert ".: is a folder: name the beginning of the files' names" in capsys.readouterr().err


def test_weights_must_be_complete() -> None:
    keys = {"tokenizer": "bytes", "output": "o"}
    with pytest.raises(ValueError, match="give a weight to each of the sources, or to none"):
        Data(sources=[{"path": "a", "weight": 1}, {"path": "b"}], **keys)
    with pytest.raises(ValueError, match="repeat is only for sources that have weights"):
        Data(sources=["a"], repeat=True, **keys)


def test_without_a_configuration(capsys) -> None:
    assert main(["data"]) == 2
    assert "name a configuration" in capsys.readouterr().err


def test_two_sources_of_one_name(folder) -> None:
    from megatron_ms.data.reading import groups

    for name in ("a", "b"):
        (folder / name).mkdir()
        toys.write_rows(folder / name / "x.jsonl", toys.TEXTS)
    sources = [{"path": f"{name}/x.jsonl", "weight": 1} for name in ("a", "b")]
    with pytest.raises(UserError, match="2 sources would write files named x: give each a `name`"):
        groups(Data(sources=sources, tokenizer="bytes", output="o"))


def test_the_examples_of_the_page(folder, tokenizer, capsys) -> None:
    text = PAGE.read_text(encoding="utf-8")
    (folder / "qwen").symlink_to(tokenizer)
    for name, content in re.findall(r"^`([\w./]+)`:\n\n```\w*\n(.*?)```", text, re.DOTALL | re.MULTILINE):
        (folder / name).write_text(content, encoding="utf-8")
    commands = re.findall(r"^    python -m megatron_ms (data .*)$", text, re.MULTILINE)
    assert len(commands) >= 5
    for command in commands:
        assert main(shlex.split(command)) == 0, command
        said = capsys.readouterr().out
    outputs = re.findall(r"^```text\n(.*?)```", text, re.DOTALL | re.MULTILINE)
    assert outputs and outputs[-1] in said
