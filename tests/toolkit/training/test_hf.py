"""The backend hf: the command line of the Trainer's program, its errors, and a real training where accelerate is installed."""

from __future__ import annotations

import importlib.metadata
import json
import math
import shutil
import zipfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from megatron_ms import commands, config
from megatron_ms.errors import UserError
from megatron_ms.training import folder as folders
from megatron_ms.training import hf
from megatron_ms.training.hf_program import Own, _cut, _rows, loaded
from megatron_ms.upstream.flags import Flags
from tests.toolkit.inference.conftest import model_folder  # noqa: F401
from tests.toolkit.packages import needs_packages

SMALL = {
    "model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], "vocab_size": 128, "hidden_size": 32, "intermediate_size": 64,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64, "eos_token_id": 1,
}  # fmt: skip
FILE = """\
name: small
run: {backend: hf, task: sft, device: cpu}
dataset: {path: rows.jsonl}
train: {iterations: 4, micro_batch: 4, global_batch: 8, lr: 1e-2}
save: {interval: 2}
resume: {load: model}
"""
_WORDS = (
    "model_folder rows tokenizer_folder row_length lora_rank lora_alpha lora_targets resumed output_dir max_steps"
    " per_device_train_batch_size gradient_accumulation_steps learning_rate lr_scheduler_type warmup_steps weight_decay"
    " max_grad_norm seed logging_steps report_to save_strategy save_steps save_only_model disable_tqdm bf16 fp16 use_cpu"
    " adam_beta2 lora_load gradient_checkpointing beta dataloader_num_workers profile_first profile_count profile_folder"
)


@pytest.fixture
def place(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.yaml").write_text(FILE)
    (tmp_path / "model").mkdir()
    (tmp_path / "model/config.json").write_text(json.dumps(SMALL))
    rows = [[(start + step) % 120 + 3 for step in range(8 + start % 5)] for start in range(32)]
    lines = [json.dumps({"input_ids": row, "labels": [-100] * 4 + row[4:]}) for row in rows]
    (tmp_path / "rows.jsonl").write_text("\n".join(lines) + "\n")
    return tmp_path


@pytest.fixture
def flags(place, monkeypatch) -> None:
    """The flags of the program, without starting it."""
    several = {"rows", "lora_targets"}
    other = {"type": None, "choices": None, "both": False, "help": ""}
    known = [
        {"names": [f"--{name}"], "nargs": "+" if name in several else None, **other}
        for name in _WORDS.split()
    ]
    monkeypatch.setattr(
        hf.upstream_flags, "read", lambda trees, program: Flags(known, "transformers' program")
    )
    monkeypatch.setattr(hf.importlib.metadata, "version", lambda name: "1")


def words(*overrides: str, resumed: bool = False) -> str:
    settings = hf.read(config.load("small.yaml", overrides))
    return " ".join(hf.command(settings, Path("/run"), resumed)[0])


def test_keys_become_the_trainers_flags(flags, place) -> None:
    line = words("train.adam_beta2=0.9", "train.precision=bf16")
    for part in (f"--model_folder {place / 'model'} --rows {place / 'rows.jsonl'}", "--max_steps 4", "--learning_rate 0.01",
                 "--per_device_train_batch_size 4 --gradient_accumulation_steps 2", "--save_strategy steps --save_steps 2",
                 "--output_dir /run/checkpoints", "--report_to none",
                 "--adam_beta2 0.9", "--bf16 True"):  # fmt: skip
        assert part in line
    assert "--row_length" not in line and "--lora_rank" not in line
    assert "--row_length 16" in words("run.task=pretrain", "dataset.sequence_length=16")
    lora = words("run.task=lora", "tune.rank=4")
    assert (
        "--lora_rank 4 --lora_alpha 16" in lora and "--lora_targets" not in lora and "hf_program.py" in lora
    )
    assert "--lora_targets q_proj v_proj" in words("run.task=lora", "tune.targets=[q_proj,v_proj]")
    assert "--dataloader_num_workers 2" in words("dataset.workers=2")
    assert "--resumed" not in words()
    traced = words("profile.steps=[2,4]")
    assert "--profile_first 2 --profile_count 2 --profile_folder /run/profile" in traced


def checkpoint(folder: Path, step: int) -> Path:
    """A checkpoint of the Trainer."""
    numpy = pytest.importorskip("safetensors.numpy")
    place = folder / f"checkpoint-{step}"
    place.mkdir(parents=True)
    numpy.save_file({"a": np.zeros(9, np.float32)}, place / "model.safetensors")
    with zipfile.ZipFile(place / "optimizer.pt", "w") as file:
        file.writestr("archive/data.pkl", b"x")
    (place / "trainer_state.json").write_text('{"global_step": 1}')
    return place


@pytest.mark.parametrize(
    ("name", "size", "fault"),
    [
        ("trainer_state.json", None, "trainer_state.json is missing"),
        ("trainer_state.json", 9, "trainer_state.json is truncated"),
        ("model.safetensors", None, "it has no weights"),
        ("model.safetensors", 0, "model.safetensors is truncated"),
        ("model.safetensors", 90, "model.safetensors is truncated"),
        ("optimizer.pt", 9, "optimizer.pt is truncated"),
    ],
)
def test_a_resumed_training_passes_over_a_half_checkpoint(flags, tmp_path, capsys, name, size, fault) -> None:
    """The Trainer would take the last folder. One at which it was killed lacks files, or has half of one."""
    folder = tmp_path / "runs/small/20260101-000000"
    for step in (2, 4, 10):
        checkpoint(folder / "checkpoints", step)
    (folder / "status.json").write_text("{}")
    settings = hf.read(config.load("small.yaml"))

    def goes_on_from(step: int) -> None:
        line = " ".join(hf.command(settings, folder, True)[0])
        assert f"--resumed {folder}/checkpoints/checkpoint-{step} " in line
        assert folders.RunFolder(folder).checkpointed() == step

    goes_on_from(10)
    file = folder / "checkpoints/checkpoint-10" / name
    whole = file.read_bytes()
    file.unlink()
    if size is not None:
        file.write_bytes(whole[:size])
    goes_on_from(4)
    for words, said in (([], "complete"), (["--verify"], "its content cannot be verified")):
        assert commands.main(["status", *words]) == 1
        out = capsys.readouterr().out
        assert f"  checkpoint 4  safetensors  0.0 MB  {said}" in out
        assert f"  checkpoint 10  safetensors  0.0 MB  {fault}\n" in out


def test_preferences_are_learned_by_trl(flags) -> None:
    whole = words("run.task=dpo")
    assert (
        "hf_dpo_program.py" in whole and "--bf16 False" in whole and "--gradient_checkpointing False" in whole
    )
    assert "--lora_rank" not in whole
    assert "--lora" not in (ipo := words("run.task=dpo", "tune.beta=0.3")) and "--beta 0.3" in ipo
    tuned = words("run.task=dpo", "tune.rank=2", "tune.beta=0.3")
    assert "--lora_rank 2" in tuned and "--beta 0.3" in tuned


def test_a_folder_that_is_not_complete_is_not_trained(model_folder, tmp_path, torch_by_name) -> None:  # noqa: F811
    """transformers would take random numbers for what is missing, and train them."""
    from safetensors.torch import load_file, save_file

    options = SimpleNamespace(bf16=False)
    assert loaded(Own(str(model_folder)), options).config.num_hidden_layers == 2
    shutil.copytree(model_folder, tmp_path / "half")
    file = tmp_path / "half/model.safetensors"
    held = load_file(file)
    del held["model.layers.0.self_attn.k_proj.weight"]
    save_file(held, file, {"format": "pt"})
    with pytest.raises(
        SystemExit, match=r"half: the files have no weight model.layers.0.self_attn.k_proj.weight: is"
    ):
        loaded(Own(str(tmp_path / "half")), options)


def test_a_flag_by_its_own_name_counts(flags) -> None:
    line = words("train.lr_scheduler_type=linear")
    assert "--lr_scheduler_type linear" in line and "cosine" not in line


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["parallel.tensor=2"], "parallel: has no effect with run.backend: hf"),
        (["train.min_lr=1e-5"], "train.min_lr: has no effect with run.backend: hf; remove the key"),
        (["resume.schedule=new"], "resume.schedule: has no effect with run.backend: hf; remove the key"),
        (["run.task=lora", "tune.load=none"], "tune.load: there is no "),
        (["run.task=lora", "tune.load=model"], "has no adapter_config.json"),
        (["tran.iterations=1"], "did you mean train?"),
        (["run.processes=2"], "the backend hf trains on one process"),
        (["train.global_batch=6"], "global batch 6 is not divisible by micro batch 4"),
        (["resume.load=null"], "resume.load: is missing"),
        (["resume.load=."], "has no config.json"),
        (["dataset.path=none.jsonl"], "dataset.path: there is no "),
        (["dataset.path=null"], "dataset.path: is missing"),
        (["dataset.path=model"], "is not a file of JSON lines"),
        (["train.adam_betta2=1"], "did you mean adam_beta2?"),
    ],
)
def test_wrong_input(flags, overrides, message) -> None:
    with pytest.raises(UserError) as error:
        words(*overrides)
    assert message in str(error.value)


def test_documents_are_joined_and_cut() -> None:
    rows = [{"input_ids": list(range(5)), "labels": []}, {"input_ids": [5, 6, 7], "labels": []}]
    assert [row["input_ids"] for row in _cut(rows, 3)] == [[0, 1, 2], [3, 4, 5]]


def test_a_damaged_row_is_named(place) -> None:
    (place / "rows.jsonl").write_text('{"input_ids": [1]}\n{"input": [1]}\n')
    with pytest.raises(SystemExit, match="rows.jsonl, line 2: no row with input_ids"):
        list(_rows(["rows.jsonl"]))


def test_a_package_that_is_absent_is_named(place, monkeypatch) -> None:
    def version(name: str) -> str:
        if name == "trl":
            raise importlib.metadata.PackageNotFoundError(name)
        return "1"

    monkeypatch.setattr(hf.importlib.metadata, "version", version)
    with pytest.raises(UserError, match="package trl: pip install --no-deps -r .*requirements-hf.txt"):
        words("run.task=dpo")
    assert hf.REQUIREMENTS.is_file()


@needs_packages
def test_training_and_going_on(place, capsys) -> None:
    """Four steps, and two with two more from the checkpoint, have the same losses."""
    assert commands.main(["train", "small.yaml", "profile.steps=[2,3]"]) == 0
    assert "aten::" in capsys.readouterr().out.partition("trace for chrome://tracing: ")[2]
    (whole,) = folders.runs(Path("runs"))
    losses = [record["loss"] for record in whole.records()]
    assert len(losses) == 4 and losses[-1] < losses[0]
    assert (whole.checkpoints / "final/model.safetensors").is_file() and whole.checkpointed() == 4
    (whole.checkpoints / "checkpoint-4").rename(place / "aside")
    assert commands.main(["train", "small.yaml", "--resume"]) == 0
    assert [record["loss"] for record in whole.records()] == losses
    assert whole.log.read_text().count('"iteration": 3') == 2


@needs_packages
@pytest.mark.extended
def test_preferences_with_lora(place, model_folder) -> None:  # noqa: F811
    """Before it has learned, a model prefers no answer: the loss is ln 2. The adapter alone is saved."""
    pairs = [[(start + step) % 120 + 3 for step in range(8)] for start in range(16)]
    lines = [
        {"prompt_input_ids": row[:4], "chosen_input_ids": row[4:], "rejected_input_ids": row[:3:-1]}
        for row in pairs
    ]
    (place / "pairs.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    words = [
        "run.task=dpo",
        "dataset.path=pairs.jsonl",
        f"resume.load={model_folder}",
        "tune.rank=4",
        "train.iterations=3",
    ]
    assert commands.main(["train", "small.yaml", *words]) == 0
    (run,) = folders.runs(Path("runs"))
    losses = [record["loss"] for record in run.records()]
    assert losses[0] == pytest.approx(math.log(2), abs=1e-6) and losses[-1] < losses[0] - 0.05
    final = run.checkpoints / "final"
    assert (final / "adapter_model.safetensors").is_file() and not (final / "model.safetensors").exists()
    (place / "pairs.jsonl").write_text('{"prompt_input_ids": [1]}\n')
    assert commands.main(["train", "small.yaml", *words]) == 1
