"""Around upstream's functions that save and load checkpoints: manifests, and the choice of a whole and healthy checkpoint.

All ranks take part. Each measures or checks its share of the files; rank 0 writes.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from patches.tree import aside_of

from ..monitor import events
from . import apart, copies, last_parts, manifest, memory


class Saving:
    """folder: of the run, for its events. reasons(iteration): why a checkpoint of this iteration is unhealthy, as rank 0 knows it.
    divided: the tensors go into safetensors. about(): what the event of a checkpoint tells besides."""

    def __init__(
        self,
        folder: Path,
        reasons: Callable[[int], tuple[str, ...]],
        divided: bool = False,
        about: Callable[[], Mapping[str, Any]] = dict,
    ) -> None:
        self.folder, self.reasons, self.divided, self.about = folder, reasons, divided, about
        self.seconds = 0.0  # of all checkpoints on the disk so far, with their manifests
        self.memory_seconds = 0.0  # of all checkpoints in memory so far
        self.machine = copies.here()
        self.newest = 0  # the iteration of the last checkpoint that this rank has written or loaded
        self._remembering = False  # a checkpoint is written into memory now
        self._alone = False  # this rank saves without the others
        self._context: dict[str, Any] = {}  # upstream's, for the checkpoints in memory
        self.chosen: dict[str, int] = {}  # folder of checkpoints -> the one that is loaded from it

    def save(self, original: Callable[..., Any], iteration: int, *arguments: Any, **named: Any) -> Any:
        """Around save_checkpoint(iteration, ...)."""
        given = _arguments()
        if named.get("non_persistent_ckpt") or not given.save:
            return original(iteration, *arguments, **named)
        divided = apart.writing() if self.divided else contextlib.nullcontext()
        if self._alone:
            with divided:
                return original(iteration, *arguments, **named)
        if given.async_save:
            raise NotImplementedError(
                "--async-save writes files after save_checkpoint has returned, which manifests do not know: "
                "remove async_save, or set monitor.watch: false"
            )
        place = manifest.place_of(Path(given.save), iteration)
        began = time.monotonic()
        if self._leads():
            manifest.demand(place.parent)
            if (place / manifest.NAME).exists():
                place.rename(aside_of(place))  # refused, or of a part of the run that is computed again
            if self._apart:
                place.mkdir(exist_ok=True)
        _barrier()
        with divided:
            result = original(iteration, *arguments, **named)
        size, health = self._finish(place, iteration)
        self.newest = iteration
        if not self._remembering:
            seconds = time.monotonic() - began
            self.seconds += seconds
            self._say(iteration, seconds, size, health)
        return result

    def _finish(self, place: Path, iteration: int) -> tuple[int, manifest.Health]:
        """Writes the manifest, when all ranks have written their files. Returns the size in bytes and the health."""
        health = self._health(iteration)
        if self._apart:
            measured = self._finish_apart(place, health)
        else:
            measured = {}
            for part in together(manifest.measure(place, _rank(), _world())):
                measured |= part
            if _rank() == 0:
                manifest.write(place, measured, health)
            _barrier()
        return sum(size for size, _ in measured.values()), health

    def _say(self, iteration: int, seconds: float, size: int, health: manifest.Health) -> None:
        """Records a checkpoint that is on the disk. seconds: the time that it took, with the manifest."""
        if _rank() != 0:
            return
        text = f"checkpoint {iteration} is written" + ("" if health.healthy else ", but unhealthy")
        more = {"iteration": iteration, "seconds": seconds, "bytes": size, "healthy": health.healthy}
        events.append(self.folder, "save", text, **more, **self.about())
        if not health.healthy:
            print(f"{text}: {'; '.join(health.reasons)}", flush=True)

    def _health(self, iteration: int) -> manifest.Health:
        """Rank 0's judgement, on all ranks: the others do not know the spikes."""
        reasons = _same(self.reasons(iteration))
        return manifest.Health(not reasons, reasons)

    def _leads(self) -> bool:
        """Whether this rank does what is done once: in the run's folder, or on each machine if each has a folder of its own."""
        return self.machine.leads if self._apart else _rank() == 0

    @property
    def _apart(self) -> bool:
        """Whether what is saved now is in folders of several machines."""
        return self._remembering and self.machine.count > 1

    def _finish_apart(self, place: Path, health: manifest.Health) -> manifest.Measured:
        """Copies the files to neighbours, and writes the manifest of the whole on each machine when all have their copies."""
        machine = self.machine
        own = manifest.measure(place, machine.local, machine.ranks)
        files: dict[int, manifest.Measured] = {number: {} for number in range(machine.count)}
        leaders: dict[int, int] = {}
        for rank, (number, leads, part) in enumerate(together((machine.number, machine.leads, own))):
            files[number] |= part
            if leads:
                leaders[number] = rank
        if machine.leads:
            copies.exchange(place, machine, files, [leaders[number] for number in range(machine.count)])
        _barrier()
        whole = {name: facts for part in files.values() for name, facts in part.items()}
        if machine.leads:
            manifest.write(place, whole, health)
        _barrier()
        return whole

    def remember(
        self,
        place: Path,
        iteration: int,
        model: Any,
        optimizer: Any,
        scheduler: Any,
        operations: float,
        data: Any,
    ) -> None:
        """Saves into a folder in memory and removes the checkpoint that was there before.

        After a spike nothing is written, because an unhealthy checkpoint would never be used: the last healthy one stays.
        """
        from megatron.training import checkpointing

        began = time.monotonic()
        if not self._health(iteration).healthy:
            return
        given = _arguments()
        before, given.save = given.save, str(place)
        self._remembering = True
        try:
            checkpointing.save_checkpoint(
                iteration, model, optimizer, scheduler, operations, self._context, train_data_iterator=data
            )
        finally:
            given.save, self._remembering = before, False
        if self.machine.leads:
            memory.prune(place, iteration)
        self.memory_seconds += time.monotonic() - began

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """While it is open, this rank saves its own file without the others and without a manifest."""
        self._alone = True
        try:
            yield
        finally:
            self._alone = False

    def load(self, original: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """Around load_checkpoint(model, optimizer, scheduler, load_arg="load", ...). Divided files are read whatever is written."""
        with apart.reading():
            return self._load(original, *arguments, **named)

    def _load(self, original: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        given = _arguments()
        where = getattr(given, named.get("load_arg") or (arguments[3:4] or ["load"])[0], None)
        if not where or not _same(manifest.demanded(Path(where))):
            return original(*arguments, **named)
        folder = Path(where)
        if named_one := getattr(given, "ckpt_step", None):
            if found := self._fault(manifest.place_of(folder, named_one)):
                raise manifest.NothingWhole(f"checkpoint {named_one} in {folder} cannot be used: {found}")
            return original(*arguments, **named)
        if _rank() == 0 and given.save and folder == Path(given.save):
            self._put_together(folder)
        choice = manifest.choose(folder, self._fault, _same(manifest.iterations(folder)))
        self._tell(choice, folder)
        if choice.iteration is None:
            return 0, 0  # as upstream's, when there is no checkpoint
        self.chosen[str(folder)] = self.newest = choice.iteration
        if _rank() == 0 and not (folder / manifest.LATEST).is_file():
            manifest.point(folder, choice.iteration)
        _barrier()
        return original(*arguments, **named)

    def _put_together(self, folder: Path) -> None:
        """Makes a checkpoint of what the ranks of a failed attempt have written last. The machines of that attempt have ended."""
        # The lines of upstream's log are in the folder of the machine with the last rank.
        records = last_parts.RECORDS if self.machine.count == 1 else last_parts.RECORDS[:1]
        number = last_parts.put_together(folder, self.folder, records)
        last_parts.discard(folder)
        if number is not None:
            events.append(self.folder, "kept", last_parts.said(number), iteration=number)

    def metadata(self, original: Callable[..., Any], tracker: str) -> Any:
        """Around read_metadata(tracker): the iteration, and whether it is a release."""
        number = self.chosen.get(str(Path(tracker).parent))
        return original(tracker) if number is None else (number, False)

    def _fault(self, place: Path) -> str:
        """What is wrong with a checkpoint. Each rank reads a share of its files."""
        found = together(manifest.fault(place, _rank(), _world()))
        return next((text for text in found if text), "")

    def _tell(self, choice: manifest.Choice, folder: Path) -> None:
        if _rank() == 0:
            for text in choice.said(folder):
                print(text, flush=True)
            for number, text in choice.refused:
                events.append(
                    self.folder, "refused", f"checkpoint {number} is not used: {text}", iteration=number
                )
            if choice.iteration is not None:
                text = f"goes on from checkpoint {choice.iteration}"
                events.append(self.folder, "resume", text, iteration=choice.iteration)


def _arguments() -> Any:
    from megatron.training import get_args

    return get_args()


def _rank() -> int:
    import torch

    return torch.distributed.get_rank() if torch.distributed.is_initialized() else 0


def _world() -> int:
    import torch

    return torch.distributed.get_world_size() if torch.distributed.is_initialized() else 1


def _barrier() -> None:
    import torch

    if _world() > 1:
        torch.distributed.barrier()


def together(own: Any) -> list[Any]:
    """The objects of all ranks."""
    import torch

    if _world() == 1:
        return [own]
    found: list[Any] = [None] * _world()
    torch.distributed.all_gather_object(found, own)
    return found


def _same(own: Any) -> Any:
    """Rank 0's object, on all ranks."""
    return together(own)[0]
