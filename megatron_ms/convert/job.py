"""The main job: tokenizer and data set from the bundled text, then the training of a GPT."""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Sequence
from pathlib import Path

from .environment import PYTHON, clean_environment
from .steps import ROOT, ChildError, ConvertError, Progress, Stamp, digest, run

TEXT = ROOT / "megatron_ms" / "data" / "shakespeare.txt"
PREPROCESS = ROOT / "megatron_ms" / "data" / "preprocess.py"
TRAIN = ROOT / "megatron_ms" / "examples" / "train_gpt.py"
ITERATIONS = 200


def preprocess(output: Path, logs: Path, progress: Progress) -> bool:
    """output/train/shakespeare.{bin,idx,model} from the bundled text."""
    prefix = output / "train" / "shakespeare"
    files = [prefix.with_name(f"{prefix.name}.{ending}") for ending in ("bin", "idx", "model")]
    stamp = Stamp(output / "train" / "data.json")
    key = data_key(output)
    if stamp.holds(key):
        return False
    command = _adapter(PREPROCESS, "--input", TEXT, "--output-prefix", prefix)
    try:
        run(command, logs / "preprocess.log", progress, job_environment(output))
    except ChildError as error:
        raise ConvertError(f"the text could not be preprocessed:\n{error.tail()}") from None
    stamp.write(key, files)
    return True


def train(output: Path, progress: Progress) -> bool:
    """output/train/gpt: checkpoint, losses, curve, events. Continues a run that was stopped."""
    folder = output / "train" / "gpt"
    results = [folder / name for name in ("checkpoint.pt", "losses.json", "loss.png")]
    stamp = Stamp(output / "train" / "gpt.json")
    key = digest(TRAIN, data_key(output), str(ITERATIONS))
    if stamp.holds(key):
        return False
    _forget_other_run(folder, key)
    progress.pause()
    try:
        run(
            train_command(output),
            output / "logs" / "train.log",
            environment=job_environment(output),
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


def data_key(output: Path) -> str:
    """Changes with the text, the script or the converted Megatron."""
    manifest = json.loads((output / "megatron" / "manifest.json").read_text(encoding="utf-8"))
    return digest(TEXT, PREPROCESS, json.dumps(manifest["files"], sort_keys=True))


def job_environment(output: Path) -> dict[str, str]:
    device = {"MSADAPTER_DEVICE": clean_environment().get("MSADAPTER_DEVICE", "cuda")}
    return clean_environment() | device | {"PYTHONPATH": str(output / "megatron")}


def _adapter(script: Path, *arguments: str | Path) -> list[str | Path]:
    words: Sequence[str | Path] = [PYTHON, "-m", "msadapter", script, *arguments]
    return list(words)


def _forget_other_run(folder: Path, key: str) -> None:
    """A run of another script or data, or with a broken checkpoint, cannot be continued: it goes."""
    mark = folder / "run.key"
    checkpoint = folder / "checkpoint.pt"
    same = mark.is_file() and mark.read_text(encoding="utf-8") == key
    whole = not checkpoint.exists() or _is_whole_zip(checkpoint)
    if folder.exists() and not (same and whole):
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    mark.write_text(key, encoding="utf-8")


def _is_whole_zip(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.testzip() is None
    except (zipfile.BadZipFile, OSError, EOFError):
        return False
