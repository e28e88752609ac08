"""The command `train` with a fake upstream: the command line, the run's folder, failures and resuming."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import socket
import subprocess
import threading
from pathlib import Path

import pytest

from megatron_ms import commands
from megatron_ms.training import folder as folders
from megatron_ms.training.folder import RunFolder


def train(*words: str) -> int:
    return commands.main(["train", "toy.yaml", *words])


def only_run() -> RunFolder:
    (found,) = folders.runs(Path("runs"))
    return found


def printed_words(capsys, *words: str) -> list[str]:
    """The words after the program in what --print-command prints."""
    assert train("--print-command", *words) == 0
    text = capsys.readouterr().out
    found = shlex.split(text.replace("\\\n", " "))
    return found[next(i for i, word in enumerate(found) if word.endswith("pretrain_gpt.py")) + 1 :]


def test_a_run_leaves_a_record(fake, capsys) -> None:
    assert train("save.interval=2") == 0
    out = capsys.readouterr().out
    assert (
        "3/3  loss 8.7000  lr 0.001  norm 1.500" in out
        and "done: loss 8.9000 at step 1, 8.7000 at step 3" in out
    )
    run = only_run()
    assert [record["lm loss"] for record in run.records()] == [8.9, 8.8, 8.7]
    status = run.status()
    assert (status["state"], status["iteration"], status["loss"], status["exit_code"]) == ("done", 3, 8.7, 0)
    assert "iteration        3" in run.log.read_text() and run.checkpointed() == 2
    assert "vocab_size: 4096" in (run.path / "config.yaml").read_text()


def test_two_runs_have_two_folders(fake, monkeypatch) -> None:
    monkeypatch.setattr(folders, "next_name", lambda: "20260101-000000")
    assert train() == 0 and train() == 0
    assert [run.path.name for run in folders.runs(Path("runs"))] == ["20260101-000000", "20260101-000000-2"]


def test_the_printed_command_works_by_hand(fake, capsys) -> None:
    assert train("--print-command") == 0
    text = capsys.readouterr().out
    assert not Path("runs").exists()
    out = subprocess.run(["bash", "-c", text], capture_output=True, text=True, check=True, cwd="/").stdout
    assert "iteration        3/       3 " in out and "lm loss: 8.700000E+00" in out
    assert train() == 0
    assert "lm loss: 8.700000E+00" in only_run().log.read_text()


def test_flags_of_keys_and_of_upstream(fake, capsys) -> None:
    words = printed_words(
        capsys, "train.lr=1e-5", "train.adam-beta1=0.8", "upstream.pair=[1,2]", "upstream.fused=false", "train.precision=bf16",
        "save.optimizer=false", "save.interval=5",
    )  # fmt: skip
    line = " ".join(words)
    for part in ("--lr 1e-05", "--adam-beta1 0.8", "--pair 1 2", "--no-fused", "--bf16", "--no-save-optim --no-save-rng",
                 "--global-batch-size 8", "--mock-data",
                 "--tokenizer-type NullTokenizer --vocab-size 4095", "--no-rope-fusion"):  # fmt: skip
        assert part in line
    assert len([word for word in words if word.startswith("--")]) == len(
        {word for word in words if word.startswith("--")}
    )


def test_what_this_machine_needs_can_be_switched_off(fake, capsys) -> None:
    assert "--no-rope-fusion" not in printed_words(capsys, "model.no_rope_fusion=false")


def test_data_and_tokenizer(fake, capsys) -> None:
    for name in ("a.bin", "a.idx", "b.bin", "b.idx", "t.model"):
        Path(name).write_text("")
    words = printed_words(
        capsys, "dataset.mock=false", "dataset.path=[0.3,a,0.7,b]", "dataset.tokenizer=t.model"
    )
    line = " ".join(words)
    assert f"--data-path 0.3 {fake / 'a'} 0.7 {fake / 'b'}" in line
    assert (
        f"--tokenizer-type Llama2Tokenizer --tokenizer-model {fake / 't.model'}" in line
        and "/data-cache" in line
    )


def test_the_data_that_the_command_data_made(fake, capsys) -> None:
    """Without dataset.path the section `data` tells where they are."""
    Path("t").mkdir()
    for name in ("set_text_document.bin", "set_text_document.idx"):
        Path(name).write_text("")
    words = ["dataset.mock=false", "data.sources=[a.jsonl]", "data.tokenizer=t", "data.output=set"]
    line = " ".join(printed_words(capsys, *words))
    assert f"--data-path {fake / 'set_text_document'} " in line
    assert f"--tokenizer-type HuggingFaceTokenizer --tokenizer-model {fake / 't'}" in line


def test_blended_data_that_the_command_data_made(fake, capsys) -> None:
    """Sources with weights are named with them."""
    Path("t").mkdir()
    for name in ("set_a_text_document", "set_b_text_document"):
        for ending in (".bin", ".idx"):
            Path(name + ending).write_text("")
    sources = "data.sources=[{path: a.jsonl, weight: 3}, {path: b.jsonl, weight: 1}]"
    words = ["dataset.mock=false", sources, "data.tokenizer=t", "data.output=set"]
    line = " ".join(printed_words(capsys, *words))
    assert f"--data-path 3.0 {fake / 'set_a_text_document'} 1.0 {fake / 'set_b_text_document'} " in line


def test_starting_from_weights(fake, capsys) -> None:
    Path("weights").mkdir()
    line = " ".join(printed_words(capsys, "resume.load=weights"))
    assert f"--load {fake / 'weights'} --finetune --no-load-optim --no-load-rng" in line


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["upstream.adam-beta=1"], "command line, upstream.adam-beta=1: upstream.adam_beta: there is no such key, and Megatron-LM's"
                                   " pretrain_gpt.py has no such flag; did you mean adam_beta1?"),
        (["train.decay=square"], "train.decay: --lr-decay-style is one of constant, cosine; not 'square'"),
        (["upstream.pair=[1]"], "--pair takes 2 values, not 1"),
        (["upstream.pair=[1,x]"], "--pair takes a whole number, not 'x'"),
        (["upstream.finetune=3"], "--finetune is a switch: write true or false, not 3"),
        (["upstream.fail=[1,2]"], "--fail takes one value, not a list"),
        (["train.adam_beta1=fast"], "--adam-beta1 takes a number, not 'fast'"),
        (["dataset.mock=false", "dataset.tokenizer=none.model"], "dataset.tokenizer: there is no "),
        (["dataset.mock=false"], "dataset.tokenizer: is missing"),
        (["model.vocab_size=512"], "model.vocab_size: must be at least 4096"),
        (["run.trees=nowhere"], "run.trees: there is no folder "),
        (["run.trees=."], "contains no tree of Megatron-LM or MindSpeed-LLM: make one with"),
        (["run.trees=[.]"], "contains no Megatron-LM, MindSpeed or MindSpeed-LLM"),
        (["run.device=cpu"], "run.device: is cpu, which Megatron-LM refuses: write cuda; without an accelerator the CPU"),
        (["run.task=sft"], "run.task: sft needs MindSpeed-LLM"),
        (["resume.load=none"], "resume.load: there is no "),
        (["--resume"], "has a checkpoint: start a new one, with save.interval"),
        (["--resume-from", "none"], "this is not a folder of a run"),
        (["run.folder=toy.yaml"], "Not a directory: "),
    ],
)  # fmt: skip
def test_wrong_input_is_one_line_and_leaves_nothing(fake, capsys, words, message) -> None:
    before = sorted(fake.iterdir())
    assert train(*words) == 2
    out, error = capsys.readouterr()
    assert message in error and error.count("\n") == 1 and "Traceback" not in error and out == ""
    assert sorted(fake.iterdir()) == before


def test_a_port_that_is_taken(fake, capsys) -> None:
    with socket.socket() as other:
        other.bind(("", 0))
        other.listen()
        port = other.getsockname()[1]
        assert train(f"run.port={port}") == 2
    assert f"run.port: port {port} cannot be used" in capsys.readouterr().err


def test_a_disk_that_is_full(fake, monkeypatch, capsys) -> None:
    """A checkpoint in float32 has twelve bytes for each of some 467,000 parameters."""
    full = shutil._ntuple_diskusage(10**9, 10**9, 10**6)
    monkeypatch.setattr(shutil, "disk_usage", lambda place: full)
    assert train("save.interval=2") == 2
    assert "run.folder: a checkpoint needs 0.00" in capsys.readouterr().err and not Path("runs").exists()
    assert train() == 0


def test_a_simulated_device_is_named(fake, monkeypatch, capsys) -> None:
    assert train() == 0 and "SIMULATED" not in capsys.readouterr().out
    monkeypatch.setenv("MSADAPTER_SIMULATED_NPU", "1")
    assert train("name=other") == 0 and "SIMULATED NPU" in capsys.readouterr().out
    (run,) = folders.runs(Path("runs"), "other")
    assert run.status()["simulated"] is True


def test_another_schedule_on_resuming(fake, capsys) -> None:
    assert "--override-opt_param-scheduler" in printed_words(capsys, "resume.schedule=new")
    assert "--use-checkpoint-opt_param-scheduler" in printed_words(capsys, "resume.schedule=old")


def test_a_failure_shows_its_reason_and_the_log(fake, capsys) -> None:
    assert train("upstream.fail=2") == 1
    error = capsys.readouterr().err
    run = only_run()
    assert "ValueError: the numbers went bad" in error and f"The whole output: {run.log}" in error
    assert (run.status()["state"], run.status()["iteration"]) == ("failed", 1)


def test_a_run_without_a_loss_has_failed(own, capsys) -> None:
    program = own / "tree/megatron/pretrain_gpt.py"
    program.write_text(program.read_text().replace("range(first, args.train_iters + 1)", "()"))
    assert train() == 1
    assert "the training ended without a loss" in capsys.readouterr().err


def test_a_run_goes_on_from_its_checkpoint(fake, capsys) -> None:
    assert train("save.interval=2") == 0
    capsys.readouterr()
    assert train("save.interval=2", "train.iterations=5", "--resume") == 0
    run = only_run()
    assert [record["iteration"] for record in run.records()] == [1, 2, 3, 4, 5]
    assert run.log.read_text().count("iteration        3/") == 2, "the log has both attempts"
    assert (
        "--load " not in (run.path / "command.sh").read_text()
        and "--load " in (run.path / "command-2.sh").read_text()
    )
    assert capsys.readouterr().out.splitlines()[1].startswith("  3/5  loss 8.7000")


def test_another_model_does_not_go_on(fake, capsys) -> None:
    assert train("save.interval=2") == 0
    assert train("save.interval=2", "model.num_layers=2", "--resume") == 2
    assert "model.num_layers: is 2, but the run " in capsys.readouterr().err


def test_the_format_torch_wants_the_same_layout(fake, capsys) -> None:
    more = ["run.processes=2", "parallel.tensor=2"]
    assert train("save.interval=2") == 0
    assert train("save.interval=2", "--resume", *more) == 2
    assert "parallel.tensor: is 2, but the run " in capsys.readouterr().err
    assert train("save.interval=2", "save.format=torch_dist") == 0
    assert train("save.interval=2", "save.format=torch_dist", "--resume", "train.iterations=4", *more) == 0


def test_only_one_process_trains_in_a_folder(fake, capsys) -> None:
    assert train("save.interval=2") == 0
    run = only_run()
    with run.held():
        assert run.is_held()
        assert train("save.interval=2", "--resume-from", str(run.path)) == 2
    assert "another process trains in this folder" in capsys.readouterr().err


def test_a_run_that_was_killed_is_lost(fake) -> None:
    assert train() == 0
    run = only_run()
    run.write_status(run.status() | {"state": "running"})
    assert run.status()["state"] == "lost"
    with run.held():
        assert run.status()["state"] == "running"


def test_half_a_line_of_losses_is_left_out(fake) -> None:
    assert train() == 0
    with open(only_run().losses, "a") as file:
        file.write('{"iteration": 4, "lm lo')
    assert len(only_run().records()) == 3


def test_ctrl_c_ends_upstream_and_says_so(fake, monkeypatch, capsys) -> None:
    """Stopped at the first record: the child ends, and the state says that the user stopped it."""
    from megatron_ms.training import runner

    def stop(progress, record, now) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(runner.Progress, "show", stop)
    before = threading.active_count()
    assert train() == 130
    assert only_run().status()["state"] == "stopped"
    assert threading.active_count() == before and json.loads(only_run().losses.read_text())["iteration"] == 1


def test_flags_are_read_once_and_again_when_the_tree_changes(own, capsys) -> None:
    printed_words(capsys)
    (stored,) = (own / "cache/msadapter/megatron_ms").glob("flags-*.json")
    stored.write_text("[")  # damaged: it is read again
    printed_words(capsys)
    assert len(json.loads(stored.read_text())) > 40
    os.utime(own / "tree/megatron/megatron/training/arguments.py", (1, 1))
    printed_words(capsys)
    assert len(list((own / "cache/msadapter/megatron_ms").glob("flags-*.json"))) == 2


def test_an_upstream_that_does_not_start(own, capsys) -> None:
    (own / "tree/megatron/pretrain_gpt.py").write_text("import no_such_package\n")
    assert train() == 2
    error = capsys.readouterr().err
    assert (
        "cannot be started, so its flags are unknown" in error
        and "No module named 'no_such_package'" in error
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["recovery.memory=1"], "recovery.memory: needs save.interval"),
        (["recovery.memory=1", "save.interval=1", "monitor.watch=false"], "recovery.memory: needs monitor.watch: true"),
        (["upstream.async_save=true"], "upstream.async_save: writes files after the manifest"),
        (["monitor.parameters=['(']"], "monitor.parameters: value error, '(' is not a regular expression"),
        (["health.spike=0.5"], "health.spike: input should be greater than 1"),
    ],
)  # fmt: skip
def test_what_monitoring_and_recovery_need(fake, capsys, words, message) -> None:
    assert train(*words) == 2
    assert message in capsys.readouterr().err and not Path("runs").exists()


def test_a_failed_run_starts_again_and_stops_at_the_same_iteration(fake, capsys) -> None:
    assert train("upstream.fail=2", "recovery.restarts=5", "recovery.backoff=0") == 3
    err = capsys.readouterr().err
    assert "restart 1 of 5 in 0 s" in err and "two attempts in a row failed in iteration 0" in err
    status = only_run().status()
    assert status["state"] == "failed" and "ValueError: the numbers went bad" in status["reason"]


def test_a_model_that_the_release_cannot_have_is_refused(own, capsys) -> None:
    """The recipes of GPT-OSS have parts that Megatron Core has since 0.19.0."""
    about = 'about: {core: "0.19.0"}\n'
    (own / "toy.yaml").write_text((own / "toy.yaml").read_text() + about)
    info = own / "tree" / "megatron" / "megatron" / "core" / "package_info.py"
    for version, code in (("", 2), ("0.16.1", 2), ("0.19.0", 0), ("1.2.0", 0)):
        if version:
            info.parent.mkdir(parents=True, exist_ok=True)
            parts = zip(("MAJOR", "MINOR", "PATCH"), version.split("."), strict=True)
            info.write_text("".join(f"{name} = {part}\n" for name, part in parts))
        assert train("--print-command") == code, version
        error = capsys.readouterr().err
        wanted = (
            f"needs Megatron Core 0.19.0 or newer, but the version of the trees is {version or 'unknown'}"
        )
        assert (wanted in error) == bool(code)


@pytest.mark.parametrize("recipe", ["gpt-oss-20b", "gpt-oss-120b"])
def test_the_recipes_of_gpt_oss_name_their_release(fake, capsys, recipe) -> None:
    text = (fake / "toy.yaml").read_text()
    kept = [line for line in text.splitlines() if not line.startswith(("model:", "dataset:"))]
    (fake / "toy.yaml").write_text("\n".join([*kept, f"recipe: {recipe}", "dataset: {mock: true}"]) + "\n")
    assert train() == 2
    assert "run.trees: the model needs Megatron Core 0.19.0" in capsys.readouterr().err
