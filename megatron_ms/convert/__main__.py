"""The command behind auto_convert.sh and tests/run.sh."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from patches import PatchError
from patches.rules import number

from .. import locks
from . import environment, job, llm_job, mm_job, packages, places, rl_job, scenario, shell, sources, upstream
from .steps import ROOT, Console, ConvertError

_HELP = """\
Sets everything up and converts Megatron Core so that it trains on MindSpore.

Without options, the command creates .venv with the project and its pinned dependencies, builds the CPU kernels,
downloads megatron-core==0.12.1 from the package index, checks its hash, applies the rules of patches/ to a copy, and
writes OUTPUT/megatron (with manifest.json) and OUTPUT/core/env.sh. With --train it also preprocesses the bundled text and
trains a small GPT with a plain PyTorch script. With llm --train it trains a small Qwen2.5 with MindSpeed-LLM's
pretrain_gpt.py on two processes.

Scenarios:
  core   Megatron Core, as described above (the default). --release 0.16.1 or 0.19.0: in OUTPUT/core-RELEASE, from its
         wheel, or from git where it has none for this Python. 0.19.0 needs Python 3.12
  llm    Megatron-LM, MindSpeed and MindSpeed-LLM 26.1.0 from git at pinned commits, in OUTPUT/llm, and the Python
         packages that they import (600 MB). --release 2.3.0: in OUTPUT/llm-2.3.0
  mm     Megatron-LM, MindSpeed and MindSpeed-MM 26.1.0 in OUTPUT/mm, and their packages (550 MB). --train: LoRA of a small
         Qwen2.5-VL with pretrain_vlm.py, which learns to say the colour and the longer side of pictures
  rl     the same as llm of release 2.3.0, and MindSpeed-RL with ray, in OUTPUT/rl. On a CPU megatron_ms/rollout answers
         for vllm. --train: GRPO with train_grpo.py on two processes; a small model learns to add (about five minutes)

Conversions live side by side. Each has its own env.sh (OUTPUT/llm/env.sh); OUTPUT/env.sh is the one made last, and
--list shows them all. Files that runs write into a tree are yours, and stay there when the tree is converted again.

Running the command again skips steps that are already done and repairs an incomplete earlier run.
"""
_AFTER = """\
afterwards:
  source OUTPUT/env.sh                      python and torchrun find torch (this project) and megatron in this shell
  .venv/bin/python -m msadapter script.py   the same for one command
  .venv/bin/python -m msadapter doctor      shows versions, device and kernels, and reports problems
  source auto_convert.sh llm                converts and then sources env.sh; a failure does not change the shell

sources: MSADAPTER_GIT_MEGATRON_LM, MSADAPTER_GIT_MINDSPEED ... set other repository addresses; the commits stay pinned.
OUTPUT/<scenario>/lock.json records the origin and commit of each source.

exit code: 0 success, 1 failure (the last lines say why), 2 wrong arguments, 130 stopped by Ctrl-C
"""


def _folder(name: str) -> Path:
    """The path of an option. A name that is empty or starts with ~ is refused, because it is a mistake in the shell's command."""
    if not name:
        raise argparse.ArgumentTypeError("the name of the folder is empty")
    if name.startswith("~"):
        raise argparse.ArgumentTypeError(
            f"the shell has not replaced the ~ in {name!r}: write $HOME, or ./{name} for a folder of this name"
        )
    return Path(name)


def parse_args(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bash auto_convert.sh",
        description=_HELP,
        epilog=_AFTER,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,  # auto_convert.sh parses --output itself and knows no abbreviations
    )
    parser.add_argument(
        "--train",
        action="store_true",
        help="train a small model afterwards: on the bundled text (core, llm), on pictures (mm), or on sums (rl)",
    )
    parser.add_argument(
        "scenario",
        nargs="?",
        choices=sorted(sources.SCENARIOS),
        default="core",
        help="the set of upstreams to convert (default: core)",
    )
    parser.add_argument(
        "--release",
        metavar="NUMBER",
        help="the release to convert: "
        + "; ".join(
            f"{name} {', '.join(release.number for release in releases)}"
            for name, releases in sources.SCENARIOS.items()
        )
        + " (default: the first)",
    )
    parser.add_argument("--list", action="store_true", help="show the conversions in the output folder")
    parser.add_argument(
        "--source",
        action="append",
        default=[],
        metavar="DIR",
        help="a local checkout: of Megatron-LM, instead of the wheel (core), or NAME=DIR, may be repeated (llm, mm, rl)",
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="write nothing; check whether everything is up to date (exit code 1 if not)",
    )
    parser.add_argument("--offline", action="store_true", help="use only sources that are in the cache")
    parser.add_argument(
        "--cache", type=_folder, metavar="DIR", help="folder for git sources (default: OUTPUT/sources)"
    )
    parser.add_argument(
        "--output",
        type=_folder,
        default=ROOT / "build",
        metavar="DIR",
        help="folder to write to (default: build)",
    )
    parser.add_argument(
        "--tests", action="store_true", help=argparse.SUPPRESS
    )  # used by tests/run.sh: installs the packages for tests too
    args = parser.parse_args(arguments)
    if args.scenario == "core" and len(args.source) > 1:
        parser.error("the scenario core accepts only one --source")
    args.checkout = Path(args.source[0]) if args.scenario == "core" and args.source else None
    if args.checkout is not None and args.release:
        parser.error("--source of the scenario core is a release of its own: leave out --release")
    return args


def main(arguments: list[str] | None = None) -> int:
    args = parse_args(arguments)
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        if args.list:
            return _list(args)
        _use_right_python(args, sys.argv[1:] if arguments is None else arguments)
        if args.check:
            return _check(args)
        (convert if args.scenario == "core" else convert_scenario)(args)
    except (ConvertError, PatchError) as error:
        print(f"\nauto_convert: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(
            "\nauto_convert: stopped. No file is incomplete; run the same command again to continue.",
            file=sys.stderr,
        )
        return 130
    except OSError as error:
        print(f"\nauto_convert: {error.strerror or error}: {error.filename or ''}", file=sys.stderr)
        return 1
    finally:
        signal.signal(signal.SIGTERM, before)
    return 0


def _use_right_python(args: argparse.Namespace, words: list[str]) -> None:
    """Starts the command again with a Python that the release accepts, if this one is none."""
    if args.checkout is not None:
        stated, what = upstream.python_of(args.checkout), f"the Megatron-LM in {args.checkout}"
    else:
        release = sources.release_of(args.scenario, args.release)
        stated, what = release.python, f"release {release.number} of the scenario {args.scenario}"
    other = environment.python_for(stated, what)
    if other is not None:
        start = Path(__file__).with_name("start.py")
        sys.stdout.flush()
        os.execv(other, [other, str(start), *words])


def convert(args: argparse.Namespace) -> None:
    """Runs all steps of the scenario core in order. Cheap checks come before anything is installed."""
    began = time.monotonic()
    output = _output(args)
    environment.check_python()
    if args.checkout is not None:
        upstream.check_source(args.checkout)
        places.check_output(output, {"--source": args.checkout})
    else:
        places.check_output(output, {})
    work = _core(args, output)
    wheel = upstream.wheel_of(work.release)
    check_writable(output)
    places.claim(output)
    with _alone(output):
        logs = output / "logs"
        if not environment.PYTHON.exists():
            environment.check_compiler()  # checked before the downloads, to fail early
        newer = ("megatron-newer",) if upstream.is_newer(work.version) else ()
        extras = ("megatron", "dist", *newer, *(("test", "hf", "toolkit", "course") if args.tests else ()))
        console = Console(total=3 + args.tests + (args.checkout is None) + 2 * args.train)
        work.home.mkdir(exist_ok=True)
        console.step("Python environment", lambda progress: environment.prepare_venv(extras, logs, progress))
        if args.tests:
            console.step(
                "Packages that ask for PyTorch",
                lambda progress: environment.add_packages_beside_torch(logs, progress),
            )
        console.step("CPU kernels", lambda progress: environment.build_kernels(logs, progress))
        if args.checkout is not None:
            console.step(
                f"Convert {args.checkout}",
                lambda progress: upstream.convert_checkout(args.checkout, work.home, logs, progress),
            )
        elif wheel is not None:
            downloads = output / "downloads"
            console.step(
                f"Download {wheel.requirement}",
                lambda progress: upstream.fetch_wheel(downloads, logs, progress, wheel),
            )
            console.step(
                "Convert Megatron Core",
                lambda progress: upstream.convert_wheel(work.home, downloads, logs, progress, wheel),
            )
        else:
            (source,) = work.release.sources
            console.step(
                f"Fetch {source.name} {source.ref}",
                lambda progress: sources.fetch(source, work.cache, args.offline),
            )
            console.step(
                "Convert Megatron Core",
                lambda progress: upstream.convert_git(source, work.cache, work.home, logs, progress),
            )
        megatron = work.home / "megatron"
        env = shell.write_env(work.env, megatron=megatron, triton=upstream.is_newer(work.version))
        shell.record(work.env, work.version, {"Megatron Core": megatron})
        if args.train:
            console.step(
                "Tokenizer and data set",
                lambda progress: job.preprocess(megatron, work.home / "train", logs, progress),
            )
            console.step("Train a GPT", lambda progress: job.train(work.home, logs, progress))
    if not args.tests:  # which must not change what the user has chosen
        shell.choose(output, env)
        _farewell(args, work.home, env, time.monotonic() - began)


def convert_scenario(args: argparse.Namespace) -> None:
    """Runs the steps of a scenario that has several upstreams."""
    began = time.monotonic()
    output = _output(args)
    environment.check_python()
    work = _work(args, output)
    checkouts = {f"--source {name}": place for name, place in work.checkouts.items()}
    places.check_output(output, checkouts)
    trees = [work.tree(source) for source in work.sources]
    places.check_trees([*trees, *checkouts.values()], {"--cache": work.cache})
    scenario.check_checkouts(work)
    check_writable(output)
    places.claim(output)
    with _alone(output):
        logs = output / "logs"
        if not environment.PYTHON.exists():
            environment.check_compiler()
        console = Console(total=5 + (2 if args.scenario == "llm" else 1) * args.train)
        console.step(
            "Python environment",
            lambda progress: environment.prepare_venv(("megatron", "dist", "toolkit"), logs, progress),
        )
        console.step("CPU kernels", lambda progress: environment.build_kernels(logs, progress))
        console.step("Sources", lambda progress: scenario.fetch_all(work, progress))
        console.step(
            f"Convert {len(work.sources)} trees", lambda progress: scenario.convert_all(work, logs, progress)
        )
        console.step(
            "Python packages that they import",
            lambda progress: packages.install(output, work.release, work.cache, logs, progress, work.offline),
        )
        trees = [work.tree(source) for source in reversed(work.sources)]
        env = shell.write_env(
            work.home,
            trees,
            packages.folder_of(output, work.release),
            device="npu",
            torch=shell.TORCH_OF_MINDSPEED,
            answers=rl_job.NAMES if args.scenario == "rl" else None,
        )
        shell.record(
            work.home, work.release.number, {source.name: work.tree(source) for source in work.sources}
        )
        if args.train and args.scenario == "rl":
            console.step("Learn sums by GRPO", lambda progress: rl_job.train(work, logs, progress))
        elif args.train and args.scenario == "mm":
            console.step("LoRA of a Qwen2.5-VL", lambda progress: mm_job.train(work, logs, progress))
        elif args.train:
            console.step("Tokenizer and data set", lambda progress: llm_job.preprocess(work, logs, progress))
            console.step("Train a Qwen2.5", lambda progress: llm_job.train(work, logs, progress))
    if not args.tests:  # which must not change what the user has chosen
        shell.choose(output, env)
        _farewell_scenario(args, work, env, time.monotonic() - began)


@dataclass(frozen=True)
class Core:
    """The settings of one run of the scenario core.

    home: receives the tree. env: receives env.sh. cache: holds git sources. version: that of the tree.
    """

    release: sources.Release
    home: Path
    env: Path
    cache: Path
    version: str


def _core(args: argparse.Namespace, output: Path) -> Core:
    """The default release and checkouts of its line are in the output folder itself, others in a folder of their own."""
    release = sources.release_of("core", args.release)
    version = release.number if args.checkout is None else upstream.check_source(args.checkout)
    default = sources.release_of("core").number
    same = number(version)[:2] == number(default)[:2]
    name = sources.folder_of("core", default if same else version)
    home = output if same else output / name
    cache = places.clean_path(args.cache or output / "sources", "--cache")
    return Core(release, home, output / name, cache, version)


def _output(args: argparse.Namespace) -> Path:
    """The absolute output folder; ConvertError if its path, or that of the clone, cannot be written into a shell file."""
    places.check_characters(str(ROOT), "the folder of this project")
    if args.checkout is not None:
        places.clean_path(args.checkout, "--source")
    return places.clean_path(args.output, "--output")


def _work(args: argparse.Namespace, output: Path) -> scenario.Run:
    release = sources.release_of(args.scenario, args.release)
    return scenario.Run(
        args.scenario,
        output,
        places.clean_path(args.cache or output / "sources", "--cache"),
        sources.parse_locals(args.source, args.scenario, release),
        args.offline,
        packages=True,
        number=release.number,
    )


def _list(args: argparse.Namespace) -> int:
    """Runs --list. Writes nothing."""
    output = _output(args)
    found = shell.listed(output)
    print("\n".join(found) if found else f"{output} has no conversion yet: bash auto_convert.sh --help")
    return 0


def _check(args: argparse.Namespace) -> int:
    """Runs --check: returns 0 if everything is current, else prints the reasons and returns 1. Writes nothing."""
    output = _output(args)
    if args.scenario == "core":
        work = _core(args, output)
        found = upstream.why_stale(work.home, work.release, args.checkout)
    else:
        found = scenario.check(_work(args, output))
    print("\n".join(found) if found else f"{args.scenario}: everything in {output} is current")
    return 1 if found else 0


def check_writable(output: Path) -> None:
    """Raises ConvertError, before any other work, if the output folder cannot be created or written."""
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
    """Holds locks so that only one run at a time uses this clone's environment and the output folder."""
    with open(output / places.MARK, "a") as own, open(ROOT / "pyproject.toml") as clone:
        for lock in (own, clone):
            if not locks.take(lock):
                raise ConvertError("another run is using this clone or output folder: wait until it ends")
        yield


def _interrupt(signum: int, frame: object) -> None:
    raise KeyboardInterrupt


def _short(path: Path) -> str:
    relative = os.path.relpath(path)
    return relative if not relative.startswith("..") else str(path)


def _farewell_scenario(args: argparse.Namespace, work: scenario.Run, env: Path, seconds: float) -> None:
    print(f"\nDone in {seconds:.0f} s.\n")
    for source in work.sources:
        print(f"  {source.name:<14} {_short(work.tree(source))}")
    print(f"  sources        {_short(work.home / scenario.LOCK)}")
    folder = llm_job.folder_of(work)
    if args.train and work.scenario == "rl":
        before, after = rl_job.shares(work)
        print(
            f"  right sums     {before:.1%} before GRPO, {after:.1%} after, of 512 that no training has seen"
        )
        print(f"  log            {_short(rl_job.folder_of(work) / 'log.txt')}")
    elif args.train and work.scenario == "mm":
        first, last = mm_job.losses(work)
        print(f"  loss           {first:.3f} in the first iteration, {last:.3f} in the last")
        print(f"  checkpoint     {_short(mm_job.folder_of(work) / 'lora')}, of LoRA alone")
    elif args.train:
        loss = llm_job.losses(work)
        print(
            f"  loss           {loss['first']:.3f} in the first iteration, {loss['last']:.3f} in the last, "
            f"{loss['validation']:.3f} on validation"
        )
        print(
            f"  curve          {_short(folder / 'qwen25' / 'loss.png')}, with TensorBoard events in the same folder"
        )
    print(f"\nWhat to try next:\n  source {_short(env)}      then python and torchrun find these sources")
    if work.scenario == "rl":
        print(
            f"  bash {_short(rl_job.SCRIPT)} {_short(rl_job.folder_of(work))}      train (after the command above)"
        )
    elif work.scenario == "mm" and args.train:
        print(
            f"  bash {_short(mm_job.SCRIPT)} {_short(mm_job.folder_of(work))} --train-iters 80 "
            "--override-opt_param-scheduler      continue training (after the command above)"
        )
    elif args.train:
        places = f"{_short(folder / 'shakespeare')} {_short(folder / 'qwen25')}"
        more = "--train-iters 200 --override-opt_param-scheduler"
        print(
            f"  bash {_short(llm_job.SCRIPT)} {places} {more}      continue training (after the command above)"
        )
    elif work.scenario == "mm":
        print("  bash auto_convert.sh mm --train      LoRA of a small Qwen2.5-VL (about two minutes)")
    elif work.scenario == "llm":
        print("  bash auto_convert.sh llm --train      train a small Qwen2.5 (about two minutes)")


def _farewell(args: argparse.Namespace, home: Path, env: Path, seconds: float) -> None:
    print(f"\nDone in {seconds:.0f} s.\n")
    print(
        f"  converted Megatron   {_short(home / 'megatron')}  (manifest.json lists every file and every rule)"
    )
    if args.train:
        folder, loss = home / "train" / "gpt", job.losses(home)
        print(
            f"  loss                 {loss['first']:.3f} in the first iteration, {loss['last']:.3f} over the last 10, "
            f"{loss['validation']:.3f} on validation; a uniform guess has {loss['uniform']:.3f}"
        )
        print(
            f"  curve                {_short(folder / 'loss.png')}, TensorBoard events in {_short(folder / 'tensorboard')}"
        )
        print(f"  checkpoint           {_short(folder / 'checkpoint.pt')}  (PyTorch's torch.load reads it)")
        print(f"  tokenizer and data   {_short(home / 'train')}/shakespeare.{{model,bin,idx}}")
    print("\nWhat to try next:")
    print(f"  source {_short(env)}      then python script.py and torchrun find torch and megatron")
    if args.train:
        script = _short(job.TRAIN)
        print(
            f"  python {script} --data-prefix {_short(home / 'train' / 'shakespeare')} \\\n"
            f"      --save {_short(home / 'train' / 'gpt')} --train-iters 400      continue training (after the command above)"
        )
        print(f"  tensorboard --logdir {_short(home / 'train' / 'gpt' / 'tensorboard')}")
    else:
        print("  bash auto_convert.sh --train      train a small GPT (about two minutes)")
    print(
        f"  {_short(environment.PYTHON)} -m msadapter doctor      shows versions, device and kernels, and reports problems"
    )


if __name__ == "__main__":
    sys.exit(main())
