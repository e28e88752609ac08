"""The command `generate`: the tokens are those of transformers' own generate, and files are written whole or not at all."""

from __future__ import annotations

import json
import shutil

import pytest

from megatron_ms import commands
from megatron_ms.inference.engine import Engine
from megatron_ms.inference.section import Generate

PROMPTS = ["Once upon a time", "The sea", "Zürich und 世界"]


@pytest.fixture
def config(model_folder, tmp_path):
    path = tmp_path / "generate.yaml"
    path.write_text(
        f"generate: {{model: {model_folder}, max_new_tokens: 12, prompts: [Once upon a time, The sea]}}\n"
    )
    return path


def _by_hand(engine: Engine, prompt: str, **options) -> str:
    ids = engine.tokenizer(prompt, return_tensors="pt")["input_ids"]
    out = engine.model.generate(ids, max_new_tokens=12, **options)
    return engine.tokenizer.decode(out[0, ids.shape[1] :], skip_special_tokens=True)


@pytest.mark.parametrize(
    ("keys", "options"),
    [
        ({}, {"do_sample": False}),
        ({"beams": 3}, {"do_sample": False, "num_beams": 3}),
        ({"repetition_penalty": 1.5}, {"do_sample": False, "repetition_penalty": 1.5}),
        (
            {"sample": True, "temperature": 0.7, "top_k": 20, "top_p": 0.9, "seed": 3},
            {"do_sample": True, "temperature": 0.7, "top_k": 20, "top_p": 0.9},
        ),
    ],
)
def test_the_texts_are_those_of_transformers(model_folder, keys, options):
    engine = Engine(Generate(model=str(model_folder), max_new_tokens=12, **keys))
    for prompt in PROMPTS:
        engine.torch.manual_seed(keys.get("seed", 0))
        expected = _by_hand(engine, prompt, **options)
        assert engine.texts([prompt]) == [expected]


def test_texts_that_are_computed_together_are_those_of_each_alone(model_folder):
    engine = Engine(Generate(model=str(model_folder), max_new_tokens=12))
    assert engine.texts(PROMPTS) == [engine.texts([prompt])[0] for prompt in PROMPTS]


def test_streamed_pieces_make_up_the_text(model_folder):
    for beams in (1, 2):
        engine = Engine(Generate(model=str(model_folder), max_new_tokens=12, beams=beams))
        pieces: list[str] = []
        whole = engine.stream(engine.tokenizer(PROMPTS[0])["input_ids"], pieces.append)
        assert "".join(pieces) == whole == engine.texts(PROMPTS[:1])[0]


def test_an_answer_ends_where_the_model_ends(model_folder):
    engine = Engine(Generate(model=str(model_folder), max_new_tokens=1000))
    ids = engine.tokenizer("x" * 250, return_tensors="pt")["input_ids"]
    assert 250 < engine._run(ids, engine.torch.ones_like(ids)).shape[1] <= 256


def test_the_command_prints_or_writes_a_whole_file(config, tmp_path, capsys):
    assert commands.main(["generate", str(config)]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("Once upon a time") and "\nThe sea" in printed
    output = tmp_path / "texts.jsonl"
    (tmp_path / "more.txt").write_text("One\u2028more\r\n\n", encoding="utf-8", newline="")
    words = [
        f"generate.output={output}",
        f"generate.prompt_file={tmp_path / 'more.txt'}",
        "generate.batch_size=2",
    ]
    assert commands.main(["generate", str(config), *words]) == 0
    rows = [json.loads(line) for line in output.read_text(encoding="utf-8").strip().split("\n")]
    assert [row["prompt"] for row in rows] == ["Once upon a time", "The sea", "One\u2028more"]
    assert "".join(row["prompt"] + row["text"] + "\n" for row in rows[:2]) == printed
    capsys.readouterr()
    assert commands.main(["generate", str(config), *words]) == 2
    assert "exists and is not overwritten" in capsys.readouterr().err
    assert not list(tmp_path.glob("*.part"))


def test_a_killed_process_loses_no_texts(config, tmp_path, capsys, monkeypatch):
    """The texts of whole batches are kept, what is torn is made again, and other work has a file of its own."""
    output = tmp_path / "texts.jsonl"
    words = ["generate.batch_size=2", "generate.prompts=[one, two, three, four, five]"]
    assert commands.main(["generate", str(config), *words, f"generate.output={output}"]) == 0
    whole, wanted = output.read_bytes(), Engine.texts
    output.unlink()
    seen: list[str] = []

    def texts(engine, prompts):
        seen.extend(prompts)
        if len(seen) == 4:
            raise KeyboardInterrupt
        return wanted(engine, prompts)

    monkeypatch.setattr(Engine, "texts", texts)
    assert commands.main(["generate", str(config), *words, f"generate.output={output}"]) == 130
    (part,) = tmp_path.glob("*.part")
    with part.open("ab") as file:
        file.write(b'{"prompt": "three", "te')
    capsys.readouterr()
    assert commands.main(["generate", str(config), *words, f"generate.output={output}"]) == 0
    assert "has 2 texts of an ended process" in capsys.readouterr().out
    assert output.read_bytes() == whole and seen[4:] == ["three", "four", "five"]
    assert not part.exists()


def test_code_of_a_model_is_neither_run_nor_asked_about(config, model_folder, tmp_path, capsys, monkeypatch):
    folder, mark = tmp_path / "strange", tmp_path / "ran"
    shutil.copytree(model_folder, folder)
    (folder / "code.py").write_text(f"open({str(mark)!r}, 'w')\nclass Model: pass\n")
    facts = json.loads((folder / "config.json").read_text())
    classes = {"AutoConfig": "code.Model", "AutoModelForCausalLM": "code.Model"}
    (folder / "config.json").write_text(json.dumps(facts | {"model_type": "strange", "auto_map": classes}))
    asked: list[str] = []
    monkeypatch.setattr("builtins.input", lambda text="": asked.append(text) or "y")
    assert commands.main(["generate", str(config), f"generate.model={folder}"]) == 2
    assert f"generate.model: {folder}" in capsys.readouterr().err
    assert not asked and not mark.exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["generate.model=/nowhere"], "generate.model: there is no folder /nowhere"),
        (["generate.model=."], "has no config.json"),
        (["generate.prompts=[]"], "generate.prompts: give at least one"),
        (["generate.prompt_file=/nowhere.txt"], "generate.prompt_file: /nowhere.txt cannot be read"),
        (["generate.top_k=3"], "need sample: true"),
        (["generate.temprature=2"], "did you mean temperature?"),
        (["generate.output=/nowhere/out.jsonl"], "there is no folder /nowhere"),
        (["generate.max_new_tokens=0"], "generate.max_new_tokens"),
        (["generate.device=gpu"], "generate.device: string should match pattern"),
    ],
)
def test_wrong_input_is_named(config, words, said, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert commands.main(["generate", str(config), *words]) == 2
    assert said in capsys.readouterr().err


def test_a_damaged_folder_is_named(config, model_folder, tmp_path, capsys):
    folder = tmp_path / "damaged"
    shutil.copytree(model_folder, folder)
    weights = next(folder.glob("*.safetensors"))
    weights.write_bytes(weights.read_bytes()[:100])
    assert commands.main(["generate", str(config), f"generate.model={folder}"]) == 2
    assert f"generate.model: {folder}" in capsys.readouterr().err
    weights.unlink()
    assert commands.main(["generate", str(config), f"generate.model={folder}"]) == 2
    (folder / "config.json").write_text("{")
    assert commands.main(["generate", str(config), f"generate.model={folder}"]) == 2


def _copy(model_folder, folder, **files: str):
    shutil.copytree(model_folder, folder)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)
    return folder


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"config__json": "[]"}, "config.json: must be an object with keys"),
        ({"tokenizer__json": "{"}, "the tokenizer cannot be loaded: "),
        ({"model__safetensors": "version https://git-lfs.github.com/spec/v1\n"}, "model.safetensors: is a pointer of Git LFS"),
    ],
)  # fmt: skip
def test_files_that_are_not_what_they_should_be(config, model_folder, tmp_path, capsys, files, said):
    folder = _copy(model_folder, tmp_path / "other", **files)
    assert commands.main(["generate", str(config), f"generate.model={folder}"]) == 2
    assert said in capsys.readouterr().err


def test_a_weight_that_is_missing_is_named(config, model_folder, tmp_path, capsys):
    """transformers would take random numbers for it, and answer with them."""
    from safetensors.torch import load_file, save_file

    folder = _copy(model_folder, tmp_path / "half")
    held = load_file(folder / "model.safetensors")
    for name in ("model.layers.1.mlp.up_proj.weight", "model.norm.weight"):
        del held[name]
    save_file(held, folder / "model.safetensors", {"format": "pt"})
    assert commands.main(["generate", str(config), f"generate.model={folder}"]) == 2
    said = capsys.readouterr().err
    assert (
        "the files have no weight model.layers.1.mlp.up_proj.weight and 1 others: is the folder complete?"
        in said
    )


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("adapter_config.json", "has no config.json: it is an adapter of peft: make a model of it with `convert`"),
        ("latest_checkpointed_iteration.txt", "it is a checkpoint of Megatron: name it in generate.checkpoint"),
    ],
)  # fmt: skip
def test_folders_of_another_kind_are_told(config, tmp_path, capsys, file, said):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / file).touch()
    assert commands.main(["generate", str(config), f"generate.model={tmp_path / 'other'}"]) == 2
    assert said in capsys.readouterr().err


def test_a_tokenizer_without_a_token_to_fill_with(config, model_folder, tmp_path, capsys):
    """One text at a time needs none."""
    folder = _copy(model_folder, tmp_path / "plain")
    for name in ("tokenizer_config.json", "special_tokens_map.json"):
        if (folder / name).is_file():
            facts = json.loads((folder / name).read_text())
            kept = {key: value for key, value in facts.items() if key not in ("pad_token", "eos_token")}
            (folder / name).write_text(json.dumps(kept))
    words = ["generate", str(config), f"generate.model={folder}", "generate.max_new_tokens=2"]
    assert commands.main(words) == 0
    assert commands.main([*words, "generate.batch_size=2"]) == 2
    assert "generate.batch_size: must be 1, because the tokenizer has neither" in capsys.readouterr().err


def test_a_mark_of_the_order_of_bytes_is_no_part_of_a_prompt(config, tmp_path, capsys):
    words = [
        "generate",
        str(config),
        "generate.prompts=[]",
        f"generate.prompt_file={tmp_path / 'prompts.txt'}",
    ]
    found = []
    for encoding in ("utf-8", "utf-8-sig"):
        (tmp_path / "prompts.txt").write_text("The sea\n", encoding=encoding)
        assert commands.main(words) == 0
        found.append(capsys.readouterr().out)
    assert found[0] == found[1]


def test_a_link_that_leads_nowhere_is_not_overwritten(config, tmp_path, capsys):
    """It is found before the texts are made."""
    (tmp_path / "out.jsonl").symlink_to(tmp_path / "nothing")
    assert commands.main(["generate", str(config), f"generate.output={tmp_path / 'out.jsonl'}"]) == 2
    assert "out.jsonl exists and is not overwritten" in capsys.readouterr().err
    assert not list(tmp_path.glob("*.part"))


def test_a_prompt_that_is_too_long_is_named(model_folder, capsys, config):
    assert commands.main(["generate", str(config), f"generate.prompts=[{'x' * 300}]"]) == 2
    assert "the model takes 256" in capsys.readouterr().err
