"""The command behind auto_convert.sh and tests/run.sh."""

from __future__ import annotations

import argparse
import fcntl
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from . import environment, job, shell, upstream
from .steps import ROOT, Console, ConvertError

_HELP = """\
Sets everything up and converts Megatron Core so that it trains on MindSpore.

Without options: makes .venv with the project and its pinned dependencies, builds the CPU kernels, takes
megatron-core==0.12.1 from the package index (its hash checked), applies the rules of patches/ to a copy, and writes
OUTPUT/megatron (with manifest.json) and OUTPUT/env.sh. With --train it also preprocesses the bundled text and trains
a small GPT with a plain PyTorch script.

Steps that are already done are recognised, a broken earlier run is repaired: run it as often as you like.
"""
_AFTER = """\
afterwards:
  source OUTPUT/env.sh                      python and torchrun find torch (this project) and megatron in this shell
  .venv/bin/python -m msadapter script.py   the same for one command
  .venv/bin/python -m msadapter doctor      versions, device, kernels, and what is wrong

exit code: 0 done, 1 something is wrong (the last lines say what), 2 wrong arguments, 130 stopped by Ctrl-C
"""


def parse_args(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bash auto_convert.sh",
        description=_HELP,
        epilog=_AFTER,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--train", action="store_true", help="then train a GPT on the bundled text (the main job)"
    )
    parser.add_argument(
        "--source", type=Path, metavar="DIR", help="a local Megatron-LM checkout instead of the wheel"
    )
    parser.add_argument(
        "--output", type=Path, default=ROOT / "build", metavar="DIR", help="where to write (build)"
    )
    parser.add_argument(
        "--tests", action="store_true", help=argparse.SUPPRESS
    )  # tests/run.sh: test packages as well
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    args = parse_args(arguments)
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        convert(args)
    except ConvertError as error:
        print(f"\nauto_convert: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(
            "\nauto_convert: stopped. Nothing is half-written; the same command goes on from here.",
            file=sys.stderr,
        )
        return 130
    except OSError as error:
        print(f"\nauto_convert: {error.strerror or error}: {error.filename or ''}", file=sys.stderr)
        return 1
    return 0


def convert(args: argparse.Namespace) -> None:
    """All steps in order. What is cheap to find wrong is found before anything is installed."""
    began = time.monotonic()
    output: Path = args.output.resolve()
    environment.check_python()
    if args.source is not None:
        upstream.check_source(args.source)
    check_writable(output)
    with _alone(output):
        logs = output / "logs"
        if not environment.PYTHON.exists():
            environment.check_compiler()  # a machine without one would find out only after the downloads
        extras = ("megatron", "test") if args.tests else ("megatron",)
        console = Console(total=3 + (args.source is None) + 2 * args.train)
        console.step("Python environment", lambda progress: environment.prepare_venv(extras, logs, progress))
        console.step("CPU kernels", lambda progress: environment.build_kernels(logs, progress))
        if args.source is None:
            downloads = output / "downloads"
            console.step(
                f"Download {upstream.MEGATRON_CORE.requirement}",
                lambda progress: upstream.fetch_wheel(downloads, logs, progress),
            )
            console.step(
                "Convert Megatron Core", lambda progress: upstream.convert_wheel(output, logs, progress)
            )
        else:
            console.step(
                f"Convert {args.source}",
                lambda progress: upstream.convert_checkout(args.source, output, logs, progress),
            )
        env = shell.write_env(output)
        if args.train:
            console.step("Tokenizer and data set", lambda progress: job.preprocess(output, logs, progress))
            console.step("Train a GPT", lambda progress: job.train(output, progress))
    if not args.tests:
        _farewell(args, output, env, time.monotonic() - began)


def check_writable(output: Path) -> None:
    """An error before any work if the output folder cannot be made or written."""
    try:
        output.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=output):
            pass
    except OSError as error:
        raise ConvertError(
            f"the output folder {output} cannot be written ({error.strerror}): choose another one with --output"
        ) from None


@contextmanager
def _alone(output: Path) -> Iterator[None]:
    """Only one run at a time works on this clone's environment and output."""
    with open(output / ".lock", "w") as own, open(ROOT / "pyproject.toml") as clone:
        for lock in (own, clone):
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ConvertError(
                    "another run is at work in this clone or output folder: wait for it"
                ) from None
        yield


def _interrupt(signum: int, frame: object) -> None:
    raise KeyboardInterrupt


def _farewell(args: argparse.Namespace, output: Path, env: Path, seconds: float) -> None:
    def short(path: Path) -> str:
        relative = os.path.relpath(path)
        return relative if not relative.startswith("..") else str(path)

    print(f"\nDone in {seconds:.0f} s.\n")
    print(
        f"  converted Megatron   {short(output / 'megatron')}  (manifest.json lists every file and every rule)"
    )
    if args.train:
        folder, loss = output / "train" / "gpt", job.losses(output)
        print(
            f"  loss                 {loss['first']:.3f} at first, {loss['last']:.3f} over the last 10 iterations, "
            f"{loss['validation']:.3f} on validation; knowing nothing is {loss['uniform']:.3f}"
        )
        print(
            f"  curve                {short(folder / 'loss.png')}, TensorBoard events in {short(folder / 'tensorboard')}"
        )
        print(f"  checkpoint           {short(folder / 'checkpoint.pt')}  (PyTorch's torch.load reads it)")
        print(f"  tokenizer and data   {short(output / 'train')}/shakespeare.{{model,bin,idx}}")
    print("\nWhat to try next:")
    print(f"  source {short(env)}      then python script.py and torchrun find torch and megatron")
    if args.train:
        script = short(job.TRAIN)
        print(
            f"  python {script} --data-prefix {short(output / 'train' / 'shakespeare')} \\\n"
            f"      --save {short(output / 'train' / 'gpt')} --train-iters 400      train on (after the line above)"
        )
        print(f"  tensorboard --logdir {short(output / 'train' / 'gpt' / 'tensorboard')}")
    else:
        print("  bash auto_convert.sh --train      train a small GPT (about two minutes)")
    print(f"  {short(environment.PYTHON)} -m msadapter doctor      versions, device, kernels, what is wrong")


if __name__ == "__main__":
    sys.exit(main())
