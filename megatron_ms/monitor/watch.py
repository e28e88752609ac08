"""Observes the training of one rank. Its methods are called around upstream's functions, which `hooks` lists."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import math
import os
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..recovery.beats import Heart
from ..recovery.last_words import LastWords
from ..recovery.saving import Saving, together
from . import events, goodput, outputs, past, tensors
from .health import Skips, Spikes
from .stragglers import Stragglers
from .waiting import Waiting

_GRAD_NORM = 5  # place of the gradient norm in what train_step returns
_FIRST = "the first tensor with NaN or infinity is the"
STOPPED = 3  # exit code of a rank that a rule of health stops


@dataclass(frozen=True)
class Settings:
    """What the toolkit tells the ranks of an attempt. The names are those of the configuration."""

    folder: Path
    signs: Path
    interval: int = 1
    parameters: tuple[str, ...] = ()
    weights: bool = False
    optimizer: bool = False
    peak_tflops: float | None = None
    prometheus: int | None = None
    tensorboard: bool = False
    straggler: float = 1.5
    skip_norm: float | None = None
    skip_limit: int = 10
    window: int = 20
    spike: float | None = None
    trace: bool = True
    memory: str | None = None  # folder of the checkpoints in memory
    memory_interval: int = 1
    safetensors: bool = False  # the tensors of checkpoints are in safetensors

    def text(self) -> str:
        return json.dumps(self.__dict__ | {"folder": str(self.folder), "signs": str(self.signs)}, indent=1)

    @classmethod
    def of_text(cls, text: str) -> Settings:
        content = json.loads(text)
        places = {name: Path(content[name]) for name in ("folder", "signs")}
        return cls(**content | places | {"parameters": tuple(content["parameters"])})


class Unobserved(Exception):
    """Steps were done by a function that is not observed, so no setting of monitoring, health and memory had an effect."""


class TooManySkips(SystemExit):
    """So many steps in a row were over the threshold that the training is stopped."""


class Watch:
    """The observer of a rank."""

    def __init__(self, settings: Settings, rank: int) -> None:
        self.settings, self.rank = settings, rank
        self.heart: Heart | None = None
        self.waiting = Waiting()
        self.skips = Skips(settings.skip_norm, settings.skip_limit)
        self.spikes = Spikes(settings.spike, settings.window)
        self.saving = Saving(settings.folder, self._reasons, settings.safetensors, self._unrecorded)
        self.last_words = LastWords(self.saving, rank)
        self.patterns = [re.compile(pattern) for pattern in settings.parameters]
        self.stragglers = Stragglers(settings.straggler)
        self.writers: list[Any] = []
        self.named: tensors.Named | None = None
        self.trace: tensors.Trace | None = None
        self.iteration = 0
        self._own: dict[str, Any] = {}
        self._embedding: float | None = None  # this rank's part of the square of the step's embedding norm
        self._pending: list[tuple[int, past.Values]] = []  # this rank's values, not judged yet
        self._judged: list[tuple[int, past.Values]] = []  # of all ranks, that no record has yet
        self._losses: list[tuple[Any, Any]] = []
        self._seconds = self._waited = 0.0
        self._steps = 0
        self._before = goodput.Spent()  # the use of the time until this attempt's first step
        self._began = 0.0  # the time of that step
        self._steps_here = 0  # steps of this attempt that have begun
        # upstream's count of floating point operations before this step and after it
        self._operations = self._operations_after = 0.0
        self._gained = 0.0  # seconds of this attempt's steps
        self._remembered = 0.0  # seconds of checkpoints in memory that are in the records already
        self._result: Any = None  # what train_step has returned for the last finished step
        self._trained: tuple[Any, ...] = ()  # model, optimizer and scheduler
        self._consumed = self._consumed_after = (
            0  # samples before this step and after it, by upstream's count
        )
        self._spoken = False  # this rank has written after a failure, or tried to
        self._newest: dict[
            str, Any
        ] = {}  # the record of the last measured step, on ranks that do not write it
        self._skipped = False
        self._first = (
            ""  # the first tensor of this step with NaN or infinity, where the step goes on nevertheless
        )

    @classmethod
    def of_file(cls, place: str) -> Watch:
        settings = Settings.of_text(Path(place).read_text(encoding="utf-8"))
        return cls(settings, int(os.environ.get("RANK", "0")))

    # -- upstream's functions -------------------------------------------------------------------------------
    def save(self, original: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        result = self.saving.save(original, *arguments, **named)
        self._must_have_seen_steps()
        return result

    def load(self, original: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        return self.saving.load(original, *arguments, **named)

    def metadata(self, original: Callable[..., Any], tracker: str) -> Any:
        return self.saving.metadata(original, tracker)

    def step(
        self,
        original: Callable[..., Any],
        forward: Callable[..., Any],
        data: Any,
        model: Any,
        optimizer: Any,
        scheduler: Any,
        *rest: Any,
        **named: Any,
    ) -> Any:
        """Around train_step."""
        from megatron.training import get_args

        arguments = get_args()
        self.iteration = arguments.curr_iteration + 1
        if self.named is None:
            self._begin(model, optimizer, arguments)
        self._beat(lambda heart: heart.running(self.iteration))
        self._count(arguments)
        if self.settings.memory is not None:
            self._remember(model, optimizer, scheduler, data, arguments)
        self.last_words.begins(self.iteration - 1)
        self._trained = model, optimizer, scheduler
        self._consumed = arguments.consumed_train_samples
        try:
            result = self._train(
                original, self._forward(forward), data, model, optimizer, scheduler, *rest, **named
            )
            self.last_words.finished(self.iteration)
            self._result, self._consumed_after = result, self._consumed + _batch(arguments)
            if self.iteration % self.settings.interval == 0:
                self._measure(result, optimizer, arguments)
        except Exception:
            self.speak()
            raise
        self._beat(lambda heart: heart.done())
        self._stop_if_too_many()
        return result

    def _train(self, original: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """The step itself, its time, and what it has shown."""
        began, waited = time.perf_counter(), self.waiting.seconds
        self._skipped, self._first, self._embedding = False, "", None
        self._own.clear()
        try:
            result = original(*arguments, **named)
        except Exception as error:
            self._failed(error)
            raise
        self._seconds += time.perf_counter() - began
        self._waited += self.waiting.seconds - waited
        self._steps += 1
        self.skips.count(self._skipped)
        self._note(result)
        self._tell_first()
        return result

    def _must_have_seen_steps(self) -> None:
        """Raises Unobserved at the first checkpoint, which is whole, if upstream has trained with a function of its own."""
        from megatron.training import get_args

        arguments = get_args()
        done = getattr(arguments, "curr_iteration", None) or 0
        if self.named is None and done > arguments.iteration:
            text = (
                "a feature of upstream has replaced train_step by a function that is not observed: leave the feature out, or "
                "set monitor.watch: false to train without monitoring, health and checkpoints in memory"
            )
            self._beat(lambda heart: heart.reason("unobserved", text, final=True))
            raise Unobserved(text)

    # -- inside of a step -----------------------------------------------------------------------------------
    def _begin(self, model: Any, optimizer: Any, arguments: Any) -> None:
        """At the first step: model and optimizer are complete, and the process groups exist."""
        import torch
        from torch.distributed import distributed_c10d

        self.named = tensors.Named(model)
        if self.settings.trace:
            self.trace = tensors.Trace(self.named)
        optimizer.prepare_grads = functools.partial(self._prepared, optimizer, optimizer.prepare_grads)
        group = distributed_c10d._get_default_group()
        self.waiting.install(type(group._backend), torch.distributed.Work)
        found = past.Past()
        if self.rank == 0:
            self.writers = _writers(self.settings)
            folder, text = self.settings.folder, f"iteration {self.iteration} begins"
            events.append(folder, "step", text, iteration=self.iteration)
            self._began = time.time()
            records, happened = events.read(folder, outputs.MEASURED), events.read(folder)
            self._before = goodput.spent(records, happened, self._began, self.iteration)
            found = past.read(records, happened, self.iteration, 4 * self.spikes.window)
        found = together(found)[0]  # all ranks count and judge alike
        self.spikes.refill(found)
        self.skips.refill(found, self.iteration)
        if self.settings.memory is None or self.settings.memory_interval > 1:
            self.last_words.prepare(arguments, optimizer)

    def _count(self, arguments: Any) -> None:
        """Counts floating point operations as upstream does, which has them in a local variable."""
        from megatron.training import training

        first = self._steps_here == 0
        self._operations = arguments.num_floating_point_operations_so_far if first else self._operations_after
        self._operations_after = self._operations + training.num_floating_point_operations(
            arguments, _batch(arguments)
        )
        self._steps_here += 1

    def _remember(self, model: Any, optimizer: Any, scheduler: Any, data: Any, arguments: Any) -> None:
        """Writes a checkpoint of the steps so far into memory, as upstream would write it to the disk after the last step."""
        from megatron.training import training

        done = self.iteration - 1
        if self._steps_here == 1 or done % self.settings.memory_interval != 0:
            return
        hooked = training.should_disable_forward_pre_hook(arguments)
        if hooked:
            training.disable_forward_pre_hook(model)
        self.saving.remember(
            Path(str(self.settings.memory)), done, model, optimizer, scheduler, self._operations, data
        )
        if hooked:
            training.enable_forward_pre_hook(model)

    def speak(self) -> None:
        """After a failure, in a step or between two: lets this rank write its part of a checkpoint of the last finished step.

        An error in this is told, and the failure itself goes on to its end.
        """
        if self._spoken or not self._trained:
            return
        from megatron.training import get_args

        self._spoken, arguments = True, get_args()
        model, optimizer, scheduler = self._trained
        operations, arguments.consumed_train_samples = self._operations, self._consumed
        if self.last_words.whole == self.iteration:  # upstream may have counted the step or not
            operations, arguments.consumed_train_samples = self._operations_after, self._consumed_after
        try:
            told = self._told(optimizer, arguments)
            self.last_words.speak(model, optimizer, scheduler, operations, self._reasons_alone, told)
        except Exception as error:
            text = f"rank {self.rank} has failed to write before its end: {type(error).__name__}: {error}"
            print(text, flush=True)
            events.append(self.settings.folder, "last words", text, iteration=self.iteration)

    def _told(self, optimizer: Any, arguments: Any) -> dict[str, dict[str, Any]]:
        """The numbers of the last finished step, by file, because the ranks that write them may have ended before they did so."""
        number, found = self.last_words.whole, {}
        if number is not None and self._newest.get("iteration") == number:
            found[outputs.MEASURED] = self._newest
        if number is not None and self._result is not None and arguments.log_interval == 1:
            losses = {name: float(value) for name, value in self._result[0].items()}
            norm = None if self._result[_GRAD_NORM] is None else float(self._result[_GRAD_NORM])
            logged = outputs.logged(number, arguments.train_iters, losses, _rate(optimizer), norm)
            found[outputs.LOGGED] = logged | {"time": time.time()}
        return found

    def _forward(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Upstream's forward step, whose loss is noted before it is reduced over the ranks."""
        self._losses.clear()

        @functools.wraps(function)
        def around(*arguments: Any, **named: Any) -> Any:
            if self.trace is not None:
                self.trace.clear()
            result = function(*arguments, **named)
            if isinstance(result, tuple) and len(result) == 2 and callable(result[1]):
                self._check(result[0])
                return result[0], self._noted(result[1])
            return result

        return around

    def _check(self, output: Any) -> None:
        """Looks for NaN and infinity in the output of this stage of a pipeline, before others receive it.

        Raises FloatingPointError if upstream would stop at them too, which it does not with loss scaling and health.skip_norm.
        """
        from megatron.training import get_args

        if self.trace is None or self._first or all(map(tensors.finite, tensors.tensors(output))):
            return
        if get_args().check_for_nan_in_loss_and_grad:
            raise FloatingPointError("the output of the forward pass has NaN or infinity")
        self._first = self.trace.first()

    def _tell_first(self) -> None:
        """Reports this rank's first tensor with NaN or infinity, if the step has ended and it has not been reported yet."""
        if self._first and not self._skipped:
            text = f"rank {self.rank}, iteration {self.iteration}: {_FIRST} {self._first}"
            print(text, flush=True)
            events.append(self.settings.folder, "nan", text, iteration=self.iteration)

    def _noted(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def around(*arguments: Any, **named: Any) -> Any:
            result = function(*arguments, **named)
            if isinstance(result, tuple) and len(result) in (2, 3) and hasattr(result[0], "detach"):
                count = result[1].detach().clone() if len(result) == 3 else 1
                self._losses.append((result[0].detach().clone(), count))  # upstream divides it in place
            return result

        return around

    def _prepared(self, optimizer: Any, original: Callable[[], bool]) -> bool:
        """Around the optimizer's prepare_grads, which has unscaled the gradients. True skips the step, as an overflow does."""
        overflow = original()
        if overflow:
            return True
        assert self.named is not None
        measured, judged = self.iteration % self.settings.interval == 0, self.spikes.factor is not None
        parts = tensors.parts_of(optimizer) if measured or judged else None
        if measured:
            self._own["norm"] = tensors.gradient_norms(self.named.chosen(self.patterns), parts)
        if judged:
            chosen = self.named.chosen([tensors.EMBEDDING])
            self._embedding = tensors.embedding_square(chosen, parts, _replicas())
        if self.skips.threshold is None:
            return False
        norm = float(optimizer.get_grad_norm())
        self._own["skipped norm"] = norm
        self._skipped = _any(self.skips.over(norm))
        if self._skipped:
            self._tell_skip(norm)
        return self._skipped

    def _tell_skip(self, norm: float) -> None:
        """Reports a step that changes no parameter. If it has NaN or infinity, also where these began. All ranks take part."""
        if self.trace is not None and not self._first and not math.isfinite(norm):
            self._first = self.trace.first()
        found = together((norm, self._first))
        if self.rank != 0:
            return
        norm = next(one for one, _ in found if self.skips.over(one))
        text = f"iteration {self.iteration} changes no parameter: gradient norm {norm:.4g} is over {self.skips.threshold:g}"
        named = [(rank, first) for rank, (_, first) in enumerate(found) if first]
        if named:
            rank, first = min(named, key=lambda one: (tensors.passed_on(one[1]), one[0]))
            text += f"; rank {rank}: {_FIRST} {first}"
        print(text, flush=True)
        events.append(self.settings.folder, "skip", text, iteration=self.iteration, norm=norm)

    def _stop_if_too_many(self) -> None:
        if self.skips.too_many:
            text = (
                f"{self.skips.row} steps in a row, up to iteration {self.iteration}, had a gradient norm over "
                f"health.skip_norm = {self.skips.threshold:g} (health.skip_limit)"
            )
            self._beat(lambda heart: heart.reason("skips", text, final=True, iteration=self.iteration))
            if self.rank == 0:
                print(text, flush=True)
            raise TooManySkips(STOPPED)

    def _failed(self, error: Exception) -> None:
        """Leaves the reason for which the step failed on this rank."""
        found = self._first or (self.trace.first() if self.trace is not None else "")
        where = f"rank {self.rank}, iteration {self.iteration}"
        if not found:
            self._beat(lambda heart: heart.failed(error, where))
            return
        text = f"{where}: {_FIRST} {found}"
        print(text, flush=True)
        self._beat(lambda heart: heart.reason("nan", text, iteration=self.iteration))

    def _beat(self, action: Callable[[Heart], None]) -> None:
        if self.heart is not None:
            action(self.heart)

    # -- spikes ---------------------------------------------------------------------------------------------
    def _note(self, result: Any) -> None:
        """Notes this rank's values of the step, which all ranks judge together later."""
        if self.spikes.factor is None:
            return
        loss = next(iter(result[0].values()), None)
        norm = self._own.get("skipped norm") if result[_GRAD_NORM] is None else result[_GRAD_NORM]
        values = {"loss": loss, "gradient norm": norm, "embedding norm": self._embedding}
        known = {name: None if value is None else float(value) for name, value in values.items()}
        self._pending.append((self.iteration, known))

    def _judge(self) -> None:
        """Judges each step since the last time. All ranks take part, and all of them know the spikes."""
        if self.spikes.factor is None:
            return
        gathered = together(self._pending)
        self._pending = []
        for steps in zip(*gathered, strict=True):
            values = _whole([own for _, own in steps])
            number = steps[0][0]
            self._judged.append((number, values))
            for text in self.spikes.add(number, values):
                if self.rank == 0:
                    print(f"spike: {text}", flush=True)
                    events.append(self.settings.folder, "spike", text, iteration=number)

    def _reasons(self, iteration: int) -> tuple[str, ...]:
        """Why a checkpoint that is written now is unhealthy."""
        self._judge()
        return self.spikes.reasons(iteration)

    def _reasons_alone(self, iteration: int) -> tuple[str, ...]:
        """The same when the other ranks cannot be asked any more: by what this rank knows about the last steps and its weights."""
        for number, values in self._pending:
            self.spikes.add(number, values | {"embedding norm": None})
        self._pending = []
        parameters = () if self.named is None else self.named.parameters
        bad = next((name for name, parameter in parameters if not tensors.finite(parameter)), None)
        found = self.spikes.reasons(iteration)
        return found if bad is None else (*found, f"weight {bad} has NaN or infinity")

    # -- after a step ---------------------------------------------------------------------------------------
    def _measure(self, result: Any, optimizer: Any, arguments: Any) -> None:
        """Collects the numbers of all ranks, or of this one alone if the others have gone. Rank 0 writes them."""
        import torch

        own, self._own = self._own, {}
        with torch.no_grad():
            own |= self._local(result, optimizer)
        own["seconds"] = (self._seconds - self._waited) / self._steps
        try:
            self._judge()
            gathered = together(own)
        except Exception:
            self._keep([own], optimizer, arguments)
            raise
        self._keep(gathered, optimizer, arguments)
        self._seconds = self._waited = 0.0
        self._steps = 0
        self._judged.clear()

    def _local(self, result: Any, optimizer: Any) -> dict[str, Any]:
        """This rank's own numbers."""
        assert self.named is not None
        reported, norm = result[0], result[_GRAD_NORM]
        losses = [float(loss) / max(float(count), 1.0) for loss, count in self._losses]
        return {
            "reported": {name: float(value) for name, value in reported.items()},
            "whole norm": None if norm is None else float(norm),
            "loss": sum(losses) / len(losses) if losses else None,
            "memory": _memory(),
            "weight": tensors.weight_norms(self.named.chosen(self.patterns)) if self.settings.weights else {},
            "state": tensors.state_norms(optimizer) if self.settings.optimizer else {},
        }

    def _keep(self, gathered: list[dict[str, Any]], optimizer: Any, arguments: Any) -> None:
        """Writes the record on rank 0. The other ranks keep it until the next one."""
        record = self._record(gathered, optimizer, arguments)
        if self.rank == 0:
            self._write(record | self._use_of_time(record))
        else:
            self._newest = record

    def _write(self, record: dict[str, Any]) -> None:
        own, lasted = [one["seconds"] for one in record["ranks"]], record["seconds"] * record["steps"]
        lines = self.stragglers.add(own, lasted)
        for text in lines:
            print(text, flush=True)
            events.append(self.settings.folder, "straggler", text, iteration=self.iteration)
        for writer in self.writers:
            writer.write(record)

    def _record(self, gathered: list[dict[str, Any]], optimizer: Any, arguments: Any) -> dict[str, Any]:
        """The line of a measured step."""
        reported: dict[str, float] = next((one["reported"] for one in gathered if one["reported"]), {})
        norms = [one.pop("whole norm") for one in gathered]
        attempts = [one.pop("skipped norm", None) for one in gathered]
        for one in gathered:
            del one["reported"]
        seconds = self._seconds / self._steps
        record: dict[str, Any] = {"iteration": self.iteration, "time": time.time(), "seconds": seconds}
        record |= {"steps": self._steps, "skipped": self.skips.total, "skipped in a row": self.skips.row}
        record["loss"] = next(iter(reported.values()), None)
        record |= {name: value for name, value in reported.items() if len(reported) > 1}
        record["grad norm"] = next((norm for norm in [*norms, *attempts] if norm is not None), None)
        if self._judged:
            record |= {"embedding norm": self._judged[-1][1]["embedding norm"], "judged": list(self._judged)}
        record["learning rate"] = _rate(optimizer)
        record |= self._speed(seconds, arguments)
        record["memory"] = max(one["memory"] for one in gathered)
        unknown: list[dict[str, Any]] = [{}] * (self.rank if len(gathered) == 1 else 0)
        record["ranks"] = unknown + [
            {name: value for name, value in one.items() if value not in ({}, None)} for one in gathered
        ]
        return record

    def _speed(self, seconds: float, arguments: Any) -> dict[str, float]:
        """Throughput and MFU of a step of that many seconds, by upstream's own count of operations."""
        from megatron.training.training import num_floating_point_operations

        batch = _batch(arguments)
        tflops = num_floating_point_operations(arguments, batch) / seconds / arguments.world_size / 1e12
        found = {"tokens per second": batch * arguments.seq_length / seconds, "tflops": tflops}
        if self.settings.peak_tflops:
            found["mfu"] = tflops / self.settings.peak_tflops
        return found

    def _use_of_time(self, record: dict[str, Any]) -> dict[str, float]:
        """Seconds of the run so far by their use, and the share that was spent on steps that count."""
        self._gained += record["seconds"] * record["steps"]
        remembering = self.saving.memory_seconds - self._remembered
        self._remembered = self.saving.memory_seconds
        before = self._before
        spent = dataclasses.replace(
            before,
            training=before.training + self._gained,
            saving=before.saving + self.saving.seconds + self.saving.memory_seconds,
            total=before.total + record["time"] - self._began,
        )
        names = ("training", "lost", "restarting", "saving")
        seconds = {f"{name} seconds": getattr(spent, name) for name in names}
        return {"goodput": spent.goodput, **seconds, "memory saving": remembering}

    def _unrecorded(self) -> dict[str, float]:
        """The steps that no record has yet, and the seconds of one: for the event of a checkpoint."""
        return {"steps": self._steps, "step": self._seconds / self._steps} if self._steps else {}


def _writers(settings: Settings) -> list[Any]:
    """The outputs of rank 0."""
    found: list[Any] = [outputs.Lines(settings.folder)]
    if settings.tensorboard:
        found.append(outputs.Board(settings.folder))
    if settings.prometheus is not None:
        metrics = outputs.Metrics(settings.prometheus)
        print(f"metrics: http://{outputs.HOST}:{metrics.port}/metrics", flush=True)
        found.append(metrics)
    return found


def _batch(arguments: Any) -> int:
    """The samples of the present step."""
    from megatron.core.num_microbatches_calculator import get_num_microbatches

    return arguments.micro_batch_size * arguments.data_parallel_size * get_num_microbatches()


def _rate(optimizer: Any) -> float | None:
    """The learning rate of the first group of parameters; None if this rank has none."""
    return next(iter(group["lr"] for group in optimizer.param_groups), None)


def _whole(parts: Sequence[past.Values]) -> past.Values:
    """The values of a step from those of all ranks."""
    found = {name: next((own[name] for own in parts if own[name] is not None), None) for name in parts[0]}
    squares = [square for own in parts if (square := own["embedding norm"]) is not None]
    return found | {"embedding norm": math.sqrt(sum(squares)) if squares else None}


def _replicas() -> int:
    """The ranks that have the same parameters."""
    from megatron.core import parallel_state

    return parallel_state.get_data_parallel_world_size(with_context_parallel=True)


def _any(flag: bool) -> bool:
    """True on all ranks if the flag is true on one of them."""
    import torch

    found = torch.tensor([int(flag)], dtype=torch.int32, device="cuda")
    torch.distributed.all_reduce(found, op=torch.distributed.ReduceOp.MAX)
    return bool(found.item())


def _memory() -> float:
    """GB of memory that this process occupies: on the accelerator if there is one, else of the host."""
    import torch

    with contextlib.suppress(RuntimeError, AttributeError):
        used = torch.cuda.max_memory_allocated()
        if used:
            return used / 1e9
    pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e9
