"""Texts that a Megatron checkpoint continues on its ranks: those of transformers, in several layouts."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import pytest

from megatron_ms import commands, config
from megatron_ms.errors import UserError
from megatron_ms.inference import opening, ranks
from megatron_ms.inference.conversation import Conversation
from megatron_ms.inference.engine import Engine
from megatron_ms.inference.section import Generate
from megatron_ms.models.toys import TOYS
from megatron_ms.training.folder import LATEST
from megatron_ms.training.megatron import Command
from tests.toolkit import fake_upstream
from tests.toolkit.llm import laid_out, small_qwen

PROMPTS = ["Once upon a time", "The sea", "Zürich und 世界"]


@pytest.fixture(scope="module")
def model(tmp_path_factory, model_folder) -> tuple[Path, list[str]]:
    return small_qwen(tmp_path_factory.mktemp("qwen"))


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["parallel.tensor=2", "parallel.pipeline=2"])
def test_the_texts_are_those_of_transformers(layout, model, tmp_path, monkeypatch):
    trees = laid_out()
    folder, words = model
    monkeypatch.chdir(tmp_path)
    Path("c.yaml").write_text(
        f"recipe: {TOYS['Qwen2.5'].recipe}\nrun: {{trees: {trees}}}\n"
        f"convert: {{source: {folder}, output: megatron, to: megatron}}\n"
        f"generate: {{model: {folder}, checkpoint: megatron, max_new_tokens: 8, template: qwen}}\n"
    )
    assert commands.main(["convert", "c.yaml", layout, *words]) == 0
    engine = opening.engine_of(config.load("c.yaml", [layout, *words]))
    plain = Engine(Generate(model=str(folder), max_new_tokens=8, template="qwen"))
    sampled = {"sample": True, "temperature": 0.9, "top_k": 20, "seed": 3}
    for keys in ({}, {"beams": 3}, {"repetition_penalty": 1.5}, sampled):
        for one in (engine, plain):
            one.keys = one.keys.model_copy(update=keys)
        assert engine.texts(PROMPTS) == plain.texts(PROMPTS)
        for one in (engine, plain):
            one.keys = one.keys.model_copy(
                update={name: Generate.model_fields[name].default for name in keys}
            )
    pieces: list[str] = []
    answers = [Conversation(one).ask("What is the sea?", pieces.append) for one in (engine, plain)]
    assert answers[0] == answers[1] and "".join(pieces) == answers[0] + answers[1]


# ---- the processes, without upstream: ranks that count
_A = 64  # the letter a in the tokenizer of bytes, whose first id is the exclamation mark
COUNTING = f"""
import json, os, socket, sys, time
from multiprocessing.connection import Connection
if os.fork() == 0:
    rank = 1
else:
    rank = 0
if sys.argv[2] == "dies at once":
    print("RuntimeError: no such layer")
    os._exit(1)
own = socket.socket(socket.AF_UNIX)
own.connect(sys.argv[1])
asked = Connection(own.detach())
say = lambda message: asked.send_bytes(json.dumps(message).encode())
say({{"rank": rank}})
while True:
    try:
        request = json.loads(asked.recv_bytes())
    except EOFError:
        break
    if not request:
        continue
    ids = request["ids"]
    if rank == 0:
        if sys.argv[2] == "dies":
            print("RuntimeError: the device was lost", flush=True)
            os.kill(os.getpid(), {int(signal.SIGKILL)})
        if request["stream"]:
            say({{"put": ids[0]}})  # transformers begins with the prompt
        for number in range(request["options"]["max_new_tokens"]):
            if request["stream"]:
                say({{"put": [{_A} + number]}})
                if asked.poll(0.02):
                    asked.recv_bytes()
                    break
            ids = [[*row, {_A} + number] for row in ids]
    say({{"ids": ids if rank == 0 else []}})
"""


@pytest.fixture
def counting(model_folder, tmp_path, monkeypatch):
    """An engine whose ranks continue with abc..., and what they do wrong."""

    def made(fault: str = "") -> ranks.RanksEngine:
        program = tmp_path / "counting.py"
        program.write_text(COUNTING)

        def command(settings, trees, words, checkpoint, entries):
            assert settings.run.processes == 2 and entries == [("convert", "ckpt_format", "torch")]
            return Command((sys.executable, str(program), str(words[2]), fault), {})

        monkeypatch.setattr(ranks.megatron, "loading_command", command)
        checkpoint = tmp_path / "checkpoint"
        for part in ("mp_rank_00", "mp_rank_01"):
            (checkpoint / "iter_0000004" / part).mkdir(parents=True)
        (checkpoint / LATEST).write_text("4")
        tree = fake_upstream.make(tmp_path / "Megatron-LM")
        facts = json.loads((model_folder / "config.json").read_text())
        Path(tmp_path / "g.yaml").write_text(
            f"run: {{trees: [{tree}]}}\nparallel: {{tensor: 2}}\n"
            f"model: {{num_layers: 2, hidden_size: 32, num_attention_heads: 4, vocab_size: {facts['vocab_size']}}}\n"
            f"generate: {{model: {model_folder}, checkpoint: {checkpoint}, max_new_tokens: 5, template: qwen}}\n"
        )
        return opening.engine_of(config.load(tmp_path / "g.yaml", []))

    return made


def test_ranks_answer_one_request_after_the_other_and_leave_nothing(counting):
    engine = counting()
    place, process = engine.ranks.log.parent, engine.ranks.process
    assert engine.texts(["x"]) == ["abcde"] == engine.texts(["y"])
    assert engine.texts(["x", "longer"]) == ["abcde", "abcde"]
    pieces: list[str] = []
    assert engine.stream([65], pieces.append) == "abcde" == "".join(pieces)
    assert place.stat().st_mode & 0o77 == 0
    del engine
    assert process.poll() == 0 and not place.exists()


def test_an_answer_that_is_stopped_ends_on_all_ranks(counting):
    engine = counting()
    engine.keys = engine.keys.model_copy(update={"max_new_tokens": 400})

    def stop(text: str) -> None:
        raise KeyboardInterrupt

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            engine.stream([65, 10], stop)
    engine.keys = engine.keys.model_copy(update={"max_new_tokens": 3})
    assert engine.texts(["x"]) == ["abc"]


@pytest.mark.parametrize(
    ("fault", "said"), [("dies at once", "no such layer"), ("dies", "the device was lost")]
)
def test_ranks_that_end_are_an_error_with_their_last_words(counting, fault, said):
    with pytest.raises(UserError, match=f"generate.checkpoint: the ranks ended with exit code(.|\n)*{said}"):
        counting(fault).texts(["x"])


def test_what_is_no_checkpoint_is_named(counting, model_folder, tmp_path):
    counting()
    words = [f"generate.checkpoint={model_folder}"]
    with pytest.raises(UserError, match=f"generate.checkpoint.*no file {LATEST}"):
        opening.engine_of(config.load(tmp_path / "g.yaml", words))
    with pytest.raises(UserError, match=r"generate.dtype.*train.precision"):
        opening.engine_of(config.load(tmp_path / "g.yaml", ["generate.dtype=bfloat16"]))
    with pytest.raises(UserError, match="2 parts, but TP 4 x PP 1 has 4"):
        opening.engine_of(config.load(tmp_path / "g.yaml", ["parallel.tensor=4"]))
    (tmp_path / "s.yaml").write_text(
        f"{(tmp_path / 'g.yaml').read_text()}evaluate: {{benchmarks: {{boolq: x}}, output: y}}\n"
    )
    assert commands.main(["evaluate", str(tmp_path / "s.yaml")]) == 2
    os.rename(tmp_path / "checkpoint/iter_0000004", tmp_path / "checkpoint/iter_0000005")
    with pytest.raises(UserError, match="names the iteration '4', which is not there"):
        opening.engine_of(config.load(tmp_path / "g.yaml", []))
