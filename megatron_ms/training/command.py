"""The command `train`."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..commands import add_config_arguments

if TYPE_CHECKING:
    from ..config import Document, Section
    from ..recovery.supervisor import Supervisor
    from . import hf
    from .folder import RunFolder
    from .megatron import Command
    from .settings import Settings

HELP = "train: pretrain, or tune a model (sft, lora, dpo, grpo)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_config_arguments(parser)
    parser.add_argument(
        "--print-command",
        action="store_true",
        help="print upstream's exact command for a shell, and run nothing",
    )
    parser.add_argument(
        "--resume", action="store_true", help="go on with the last run of this name from its last checkpoint"
    )
    parser.add_argument("--resume-from", metavar="RUN", help="go on with the run in the folder RUN")


def run(arguments: argparse.Namespace) -> int:
    """Trains in a new folder, or with --resume in an earlier one."""
    from .. import config
    from ..config.training import Run
    from . import folder as folders
    from . import hf
    from . import settings as checks

    document = config.load(arguments.config, arguments.overrides)
    chosen_by = document.section("run", Run).backend
    settings = hf.read(document) if chosen_by == "hf" else checks.read(document)
    root = Path(settings.run.folder)
    if settings.run.id and isinstance(settings, checks.Settings):
        return _start_by_name(arguments, settings, root)
    resumed = arguments.resume or arguments.resume_from is not None
    if resumed:
        chosen = folders.to_resume(root, settings.name, arguments.resume_from)
        if isinstance(settings, checks.Settings):
            _same_model(settings, chosen)
        elif (before := chosen.status().get("task")) not in (None, settings.run.task):
            message = f"the run {chosen.path} is of the task {before}: name another with --resume-from"
            raise document.error("run.task", message)
    else:
        chosen = folders.RunFolder((root / settings.name / folders.next_name()).absolute())
    return _train(arguments, settings, chosen, resumed)


def _start_by_name(arguments: argparse.Namespace, settings: Settings, root: Path) -> int:
    """Trains in the folder that run.id names, on the first machine or another one, anew or from what is there."""
    from . import folder as folders

    if arguments.resume or arguments.resume_from is not None:
        message = "a start with run.id goes on from the checkpoints in its folder: leave out --resume"
        raise settings.document.error("run.id", message)
    whole, own = folders.named(root, settings.name, str(settings.run.id), settings.run.node_rank)
    if (own.path / "config.yaml").is_file():
        _same_model(settings, own)
    return _train(arguments, settings, own, True, whole)


def _command(settings: Settings | hf.Settings, folder: Path, resumed: bool) -> Command:
    """The command of the backend."""
    from . import hf, megatron

    if settings.flag("qlora"):
        message = "is not supported: weights of 4 bits need the kernels of bitsandbytes, which there are for neither device"
        raise settings.document.error("tune.qlora", f"{message}; run.task: lora trains with whole weights")
    if isinstance(settings, hf.Settings):
        settings.check_length("num_train_epochs")
        return megatron.Command(*hf.command(settings, folder, resumed))
    settings.check_length("train_samples")
    return megatron.command(settings, folder, resumed)


def _train(
    arguments: argparse.Namespace,
    settings: Settings | hf.Settings,
    chosen: RunFolder,
    resumed: bool,
    shared: Path | None = None,
) -> int:
    """Trains in a folder. shared: the folder of the run, if the one of this machine is in it (run.id)."""
    from ..monitor.report import SIMULATED
    from . import folder as folders
    from . import inputs, megatron, runner
    from . import settings as checks

    made = _command(settings, shared or chosen.path, resumed and shared is None)
    simulated = os.environ.get("MSADAPTER_SIMULATED_NPU") == "1"
    if arguments.print_command:
        sys.stdout.write(made.shell(Path.cwd()))
        return 0
    _check_port(settings)
    _check_space(settings)
    if isinstance(settings, checks.Settings):
        inputs.check(settings)
    if not resumed:
        chosen = folders.new(Path(settings.run.folder), settings.name)
        made = _command(settings, chosen.path, False)
    with chosen.held():
        _describe(settings.document, chosen, made)
        print(
            f"{settings.name}: {settings.run.task} on {settings.run.world} processes in {_short(chosen.path)}",
            flush=True,
        )
        if simulated:
            print(f"  {SIMULATED}", flush=True)
        about = {
            "name": settings.name,
            "task": settings.run.task,
            "pid": os.getpid(),
            "processes": settings.run.world,
            "machines": settings.run.nodes,
            "simulated": simulated,
        }
        code = runner.run(
            _starter(settings, shared or chosen.path, made),
            megatron.environment(made),
            chosen,
            about,
            _supervisor(settings, chosen, shared or chosen.path),
        )
    if (
        isinstance(settings, checks.Settings)
        and settings.monitor.watch
        and settings.monitor.report
        and not settings.run.node_rank
    ):
        _report(settings.name, chosen)
    if code == 0:
        _farewell(chosen)
    return code


def _report(name: str, chosen: RunFolder) -> None:
    from ..monitor import report

    title = f"{name} {chosen.path.name}"
    if (page := report.write(chosen.path, title, chosen.status())) is not None:
        print(f"report: {_short(page)}")


def _starter(
    settings: Settings | hf.Settings, folder: Path, made: Command
) -> Callable[[Path], Sequence[str]]:
    """What gives the words of the command for the folder of an attempt."""
    from . import settings as checks
    from . import watching

    def start(signs: Path) -> Sequence[str]:
        if not made.program or not isinstance(settings, checks.Settings):
            return made.words
        place = signs / "watch.json"
        place.write_text(watching.settings_of(settings, folder, signs).text(), encoding="utf-8")
        return made.watched(place)

    return start


def _supervisor(settings: Settings | hf.Settings, chosen: RunFolder, shared: Path) -> Supervisor:
    from ..recovery.memory import place_for
    from ..recovery.supervisor import Rules, Supervisor
    from . import settings as checks

    if not isinstance(settings, checks.Settings):
        return Supervisor(chosen.path, Rules())
    rules = settings.recovery
    saves = settings.save.interval is not None and settings.monitor.watch
    memory = None if rules.memory is None else place_for(shared, settings.run.node_rank)
    nodes, stall = settings.run.nodes, rules.stall if settings.monitor.watch else 0.0
    limits = Rules(rules.restarts, rules.backoff, rules.silence, saves, nodes, stall)
    return Supervisor(chosen.path, limits, memory, shared / "checkpoints")


def _describe(document: Document, chosen: RunFolder, made: Command) -> None:
    """Writes the configuration and the command into the run's folder; those of later attempts get a number."""
    from omegaconf import OmegaConf

    from ..convert.steps import write_atomically

    attempt = 1 + len(list(chosen.path.glob("command*.sh")))
    number = "" if attempt == 1 else f"-{attempt}"
    text = OmegaConf.to_yaml(OmegaConf.create(dict(document.values)))
    write_atomically(chosen.path / f"config{number}.yaml", text)
    write_atomically(chosen.path / f"command{number}.sh", made.shell(Path.cwd()))


def _same_model(settings: Settings, chosen: RunFolder) -> None:
    """Raises UserError if the run that is to go on trained another model, or has a checkpoint of another layout."""
    from .. import config
    from ..config.training import Model, Parallel, Run, Save

    before, document = config.load(chosen.path / "config.yaml"), settings.document
    _compare(document, "model", before.section("model", Model), settings.model, chosen, "start a new run")
    if before.section("save", Save).format != "torch_dist":
        advice = "keep it, or save with save.format=torch_dist, which other layouts can load"
        parallel = before.section("parallel", Parallel)
        _compare(document, "parallel", parallel, settings.parallel, chosen, advice)
        if settings.parallel.distributed_optimizer:
            _compare(
                document,
                "run",
                before.section("run", Run),
                settings.run,
                chosen,
                advice,
                ("processes", "nodes"),
            )


def _compare(
    document: Document,
    name: str,
    before: Section,
    now: Section,
    chosen: RunFolder,
    advice: str,
    keys: Sequence[str] = (),
) -> None:
    """Raises UserError for the first key of a section that differs."""
    old, new = before.model_dump(), now.model_dump()
    for key in keys or sorted({*old, *new}):
        if old.get(key) != new.get(key):
            message = f"is {new.get(key)}, but the run {chosen.path} has {old.get(key)}: {advice}"
            raise document.error(f"{name}.{key}", message)


def _check_port(settings: Settings | hf.Settings) -> None:
    """Raises UserError if a port of this machine is taken."""
    from . import settings as checks

    run = settings.run
    if run.port and run.node_rank == 0:
        _check_free(settings.document, "run.port", "", run.port)
    if isinstance(settings, checks.Settings) and settings.monitor.prometheus and run.node_rank == 0:
        _check_free(settings.document, "monitor.prometheus", "127.0.0.1", settings.monitor.prometheus)


def _check_free(document: Document, key: str, address: str, port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError as error:
            message = f"port {port} cannot be used ({error.strerror}): name another"
            raise document.error(key, message) from None


def _check_space(settings: Settings | hf.Settings) -> None:
    """Raises UserError if the disk has no room for a checkpoint of this model."""
    from ..plan import estimate
    from . import settings as checks

    if (
        not isinstance(settings, checks.Settings)
        or not settings.save.interval
        or not settings.model.vocab_size
    ):
        return
    needed = estimate.checkpoint(settings)
    place = Path(settings.run.folder).absolute()
    while not place.exists():
        place = place.parent
    if settings.recovery.memory is not None:
        from ..recovery.memory import ROOT

        room = shutil.disk_usage(ROOT).free
        if room < 2 * needed:
            message = f"two checkpoints need {2 * needed / 1e9:.3g} GB of memory, but {ROOT} has {room / 1e9:.3g} GB free"
            raise settings.document.error("recovery.memory", message)
    free = shutil.disk_usage(place).free
    if free < needed:
        message = f"a checkpoint needs {needed / 1e9:.3g} GB, but {place} has {free / 1e9:.3g} GB free: name another folder"
        raise settings.document.error("run.folder", message)


def _farewell(chosen: RunFolder) -> None:
    from . import lines

    records = [record for record in chosen.records() if lines.loss_of(record) is not None]
    if not records:
        return
    first, last = lines.loss_of(records[0]), lines.loss_of(records[-1])
    print(
        f"done: loss {first:.4f} at step {records[0]['iteration']}, {last:.4f} at step {records[-1]['iteration']}"
    )
    if (file := chosen.path / "validation.json").is_file():
        found = json.loads(file.read_text(encoding="utf-8"))
        print(
            f"validation: mean reward {found['before']:.3f} before, {found['after']:.3f} after ({found['rows']} rows)"
        )
    if (number := chosen.checkpointed()) is not None:
        print(f"checkpoint of step {number}: {_short(chosen.checkpoints)}")
    _show_traces(chosen)


def _show_traces(chosen: RunFolder) -> None:
    """Prints the operators of each new trace of the run, and writes them beside it."""
    from ..convert.steps import write_atomically
    from ..status import traces

    for file in traces.files(chosen.path):
        table = file.with_name(f"{file.name}.txt")
        if table.exists():
            continue  # of an earlier start of this run
        text = traces.table(file)
        write_atomically(table, text + "\n")
        print(f"trace for chrome://tracing: {_short(file)}\n{text}")


def _short(path: Path) -> str:
    relative = os.path.relpath(path)
    return relative if not relative.startswith("..") else str(path)
