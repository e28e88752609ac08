"""The training job of the scenario core: makes a tokenizer and a data set from the bundled text, then trains a GPT."""

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
    """Makes folder/shakespeare.{bin,idx,model} from the bundled text with the converted Megatron."""
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


def train(output: Path, logs: Path, progress: Progress) -> bool:
    """Trains in output/train/gpt, which receives checkpoint, losses, curve and events. Resumes an interrupted run."""
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
            logs / "train.log",
            environment=job_environment(output / "megatron"),
            show=True,
        )
    except ChildError as error:
        raise ConvertError(f"the training ended with exit code {error.code}; its output is above") from None
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
    """The first, last and validation loss of the finished run, and ln(vocabulary size)."""
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
    """A hash of the text, the script and the converted Megatron."""
    manifest = json.loads((megatron / "manifest.json").read_text(encoding="utf-8"))
    return digest(TEXT, PREPROCESS, json.dumps(manifest["files"], sort_keys=True))


def job_environment(megatron: Path) -> dict[str, str]:
    device = {"MSADAPTER_DEVICE": clean_environment().get("MSADAPTER_DEVICE", "cuda")}
    return clean_environment() | device | {"PYTHONPATH": str(megatron)}


def _adapter(script: Path, *arguments: str | Path) -> list[str | Path]:
    words: Sequence[str | Path] = [PYTHON, "-m", "msadapter", script, *arguments]
    return list(words)


def forget_other_run(folder: Path, key: str, whole: bool = True) -> None:
    """Puts a run aside that cannot be resumed: one of another script or data, or with an incomplete checkpoint.

    Its folder is renamed and not deleted, because it may contain hours of training.
    """
    mark = folder / "run.key"
    same = mark.is_file() and mark.read_bytes() == key.encode()
    if os.path.lexists(folder) and not (same and whole):
        keep_aside(folder)
    folder.mkdir(parents=True, exist_ok=True)
    mark.write_text(key, encoding="utf-8")


def _is_whole_zip(path: Path) -> bool:
    """True if the archive can be read to its end, or does not exist."""
    if not path.exists():
        return True
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.testzip() is None
    except (zipfile.BadZipFile, OSError, EOFError):
        return False
