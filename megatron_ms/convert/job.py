"""The main job: tokenizer and data set from the bundled text, then the training of a GPT."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Sequence
from pathlib import Path

from patches.tree import keep_aside

from .environment import PYTHON, clean_environment
from .steps import ROOT, ChildError, ConvertError, Progress, Stamp, digest, run

TEXT = ROOT / "megatron_ms" / "data" / "shakespeare.txt"
PREPROCESS = ROOT / "megatron_ms" / "data" / "preprocess.py"
TRAIN = ROOT / "megatron_ms" / "examples" / "train_gpt.py"
ITERATIONS = 200


def preprocess(megatron: Path, folder: Path, logs: Path, progress: Progress) -> bool:
    """folder/shakespeare.{bin,idx,model} from the bundled text, with a converted Megatron."""
    prefix = folder / "shakespeare"
    files = [prefix.with_name(f"{prefix.name}.{ending}") for ending in ("bin", "idx", "model")]
    stamp = Stamp(folder / "data.json")
    key = data_key(megatron)
    if stamp.holds(key):
        return False
    stamp.keep_strangers(files)
    command = _adapter(PREPROCESS, "--input", TEXT, "--output-prefix", prefix)
    try:
        run(command, logs / "preprocess.log", progress, job_environment(megatron))
    except ChildError as error:
        raise ConvertError(f"the text could not be preprocessed:\n{error.tail()}") from None
    stamp.write(key, files)
    return True


def train(output: Path, progress: Progress) -> bool:
    """output/train/gpt: checkpoint, losses, curve, events. Continues a run that was stopped."""
    folder = output / "train" / "gpt"
    results = [folder / name for name in ("checkpoint.pt", "losses.json", "loss.png")]
    stamp = Stamp(output / "train" / "gpt.json")
    key = digest(TRAIN, data_key(output / "megatron"), str(ITERATIONS))
    if stamp.holds(key):
        return False
    forget_other_run(folder, key, _is_whole_zip(folder / "checkpoint.pt"))
    progress.pause()
    try:
        run(
            train_command(output),
            output / "logs" / "train.log",
            environment=job_environment(output / "megatron"),
            show=True,
        )
    except ChildError as error:
        raise ConvertError(f"the training ended with exit code {error.code}; its words are above") from None
    missing = [path.name for path in results if not path.is_file()]
    if missing:
        raise ConvertError(f"the training left no {', '.join(missing)} in {folder}")
    stamp.write(key, results)
    return True


def train_command(output: Path) -> list[str | Path]:
    return _adapter(
        TRAIN,
        "--data-prefix",
        output / "train" / "shakespeare",
        "--save",
        output / "train" / "gpt",
        "--train-iters",
        str(ITERATIONS),
    )


def losses(output: Path) -> dict:
    """First, last and validation loss of the finished run, and ln(vocabulary)."""
    summary = json.loads((output / "train" / "gpt" / "losses.json").read_text(encoding="utf-8"))
    history = summary["iterations"]
    last = [record["loss"] for record in history[-10:]]
    return {
        "first": history[0]["loss"],
        "last": sum(last) / len(last),
        "validation": summary["validation_loss"],
        "uniform": summary["ln_vocabulary"],
    }


def data_key(megatron: Path) -> str:
    """Changes with the text, the script or the converted Megatron."""
    manifest = json.loads((megatron / "manifest.json").read_text(encoding="utf-8"))
    return digest(TEXT, PREPROCESS, json.dumps(manifest["files"], sort_keys=True))


def job_environment(megatron: Path) -> dict[str, str]:
    device = {"MSADAPTER_DEVICE": clean_environment().get("MSADAPTER_DEVICE", "cuda")}
    return clean_environment() | device | {"PYTHONPATH": str(megatron)}


def _adapter(script: Path, *arguments: str | Path) -> list[str | Path]:
    words: Sequence[str | Path] = [PYTHON, "-m", "msadapter", script, *arguments]
    return list(words)


def forget_other_run(folder: Path, key: str, whole: bool = True) -> None:
    """A run of another script or data, or with a checkpoint that is not whole, cannot be continued.

    Its folder is kept under another name: hours of training may be in it.
    """
    mark = folder / "run.key"
    same = mark.is_file() and mark.read_bytes() == key.encode()
    if os.path.lexists(folder) and not (same and whole):
        keep_aside(folder)
    folder.mkdir(parents=True, exist_ok=True)
    mark.write_text(key, encoding="utf-8")


def _is_whole_zip(path: Path) -> bool:
    """Whether the archive, if there is one, can be read to its end."""
    if not path.exists():
        return True
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.testzip() is None
    except (zipfile.BadZipFile, OSError, EOFError):
        return False
