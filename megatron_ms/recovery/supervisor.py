"""Decides what happens when an attempt to train has ended, and watches the ranks of the running attempt."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from ..monitor import events
from . import beats, last_parts, manifest, memory

FAILED, STOPPED = 1, 3  # exit codes: the work failed; a rule of health or recovery stopped the run for good
_LONGEST = 300.0  # seconds of the longest pause before a restart


@dataclass(frozen=True)
class Rules:
    """restarts: the most restarts. backoff: seconds before the first one, which double. silence: seconds after which a rank
    without a sign of life is ended, 0 for never. saves: whether the run writes checkpoints. machines: of the run. stall: seconds
    after which a rank whose step does not end is ended, 0 for never."""

    restarts: int = 0
    backoff: float = 1.0
    silence: float = 60.0
    saves: bool = False
    machines: int = 1
    stall: float = 0.0


@dataclass(frozen=True)
class Verdict:
    """What follows after an attempt: `code` is the exit code, or None for a restart after `pause` seconds."""

    code: int | None
    text: str = ""
    pause: float = 0.0


class Supervisor:
    """Supervises the attempts of a run on this machine.

    folder: of the run on this machine. memory: of the checkpoints in memory, or None. checkpoints: of those on the disk.
    """

    def __init__(
        self, folder: Path, rules: Rules, memory: Path | None = None, checkpoints: Path | None = None
    ) -> None:
        self.folder, self.rules, self.memory = folder, rules, memory
        self.checkpoints = checkpoints or folder / "checkpoints"
        self.attempt = _last_attempt(folder)
        self.restarts = 0
        self.asked = ""  # the signal that asked the run to end
        self.launcher: Any = None  # the process that has started the ranks of the running attempt
        self._wake = threading.Event()
        self.crashed: int | None = None  # the iteration in which the last attempt crashed
        self.named: list[str] = []  # the silent ranks because of which this attempt was ended

    @property
    def signs(self) -> Path:
        """The folder of this attempt, in which its ranks leave their signs."""
        return self.folder / "attempts" / str(self.attempt)

    def begin(self) -> Path:
        """Begins an attempt and returns its folder."""
        self._keep()  # of a command that was killed
        if self.memory is not None:
            memory.prepare(self.memory)
        self.attempt += 1
        self.signs.mkdir(parents=True)
        self.named = []
        events.append(self.folder, "attempt", f"attempt {self.attempt} begins", attempt=self.attempt)
        return self.signs

    def after(self, code: int, fault: str) -> Verdict:
        """Judges an attempt that has ended. fault: what the launcher says of its failure, "" if it did not fail."""
        found = beats.reasons(self.signs)
        final = next((one for one in found if one["final"]), None)
        where = max((beat.iteration for beat in beats.read(self.signs).values()), default=0)
        if self.asked:
            return self._asked(code, where)
        if final is not None:
            return self._end(STOPPED, final["text"])
        if not fault:
            events.append(self.folder, "done", "the run is complete")
            return Verdict(0)
        causes = [one["text"] for one in found if one["kind"] != "other rank"]
        text = "; ".join(self.named or causes[:1]) or fault
        events.append(self.folder, "failure", text, iteration=where, code=code)
        self._keep()
        return self._restart(text, where)

    def close(self) -> None:
        """Removes the checkpoints in memory."""
        if self.memory is not None:
            memory.remove(self.memory)
            memory.discard(self.checkpoints)

    def _keep(self) -> None:
        """Copies the newest checkpoint from memory to the disk, and makes one of what the ranks have written before their end."""
        number = None if self.memory is None else memory.keep(self.memory, self.checkpoints)
        if number is not None:
            self._kept(f"checkpoint {number} was kept from memory", number)
        if self.rules.saves and self.rules.machines == 1:  # on several machines other ranks may still write
            number = last_parts.put_together(self.checkpoints, self.folder)
            if number is not None:
                self._kept(last_parts.said(number), number)
            last_parts.discard(self.checkpoints)

    def _kept(self, text: str, number: int) -> None:
        print(text, file=sys.stderr, flush=True)
        events.append(self.folder, "kept", text, iteration=number)

    def _restart(self, text: str, where: int) -> Verdict:
        if self.rules.restarts == 0:
            return Verdict(FAILED, text)
        # A machine that comes back may meet the end of the attempt of before, in which it then does no step.
        if where == self.crashed and (where or self.rules.machines == 1):
            return self._end(STOPPED, f"two attempts in a row failed in iteration {where}: {text}")
        self.crashed = where
        if self.restarts == self.rules.restarts:
            return self._end(
                STOPPED, f"{text}; all {self.rules.restarts} restarts are used (recovery.restarts)"
            )
        self.restarts += 1
        pause = min(self.rules.backoff * 2 ** (self.restarts - 1), _LONGEST)
        said = f"{text}; restart {self.restarts} of {self.rules.restarts} in {pause:g} s" + self._lost(where)
        events.append(self.folder, "restart", said, pause=pause)
        return Verdict(None, said, pause)

    def _lost(self, where: int) -> str:
        """The steps before a failure in iteration `where` that no checkpoint has, if checkpoints in memory would have kept them."""
        saved = self._saved()
        if (
            not self.rules.saves
            or self.memory is not None
            or self.rules.machines > 1
            or where - 1 <= saved + 1
        ):
            return ""
        return f"; steps {saved + 1} to {where - 1} are computed again (with recovery.memory=1 it would be one at most)"

    def _asked(self, code: int, where: int) -> Verdict:
        """The end that a signal asked for. It is a success if nothing that was computed is lost."""
        began = any(beat.finished for beat in beats.read(self.signs).values())
        if not began:
            return self._end(0, f"ended by {self.asked} before the first step")
        if code == 0 or self._saved() >= where:
            return self._end(0, f"ended by {self.asked}, with a checkpoint")
        if not self.rules.saves:
            text = f"ended by {self.asked} without a checkpoint, because save.interval is not set"
            return self._end(FAILED, text)
        self._keep()
        return self._end(FAILED, f"ended by {self.asked}, but the ranks failed to write a checkpoint")

    def _saved(self) -> int:
        """The newest checkpoint that was finished; 0 if there is none."""
        place = self.checkpoints
        numbers = manifest.iterations(place)
        whole = (one for one in numbers if not manifest.fault(manifest.place_of(place, one), content=False))
        return next(whole, 0)

    def rest(self, pause: float) -> Verdict | None:
        """Waits before a restart. Returns a verdict if a signal asks the run to end meanwhile."""
        if self._wake.wait(pause):
            return self._end(0, f"ended by {self.asked} before a restart")
        return None

    def _end(self, code: int, text: str) -> Verdict:
        events.append(self.folder, "end", text, code=code)
        return Verdict(code, text)

    @contextmanager
    def watching(self, launcher: Any) -> Iterator[None]:
        """While it is open, a rank that is silent, or whose step does not end, is ended.

        launcher: the process (with `pid` and `terminate`) that has started the ranks.
        """
        over = threading.Event()
        thread = threading.Thread(target=self._watch, args=(launcher, over), daemon=True)
        if self.rules.silence or self.rules.stall:
            thread.start()
        self.launcher = launcher
        try:
            yield
        finally:
            self.launcher = None
            over.set()
            if thread.is_alive():
                thread.join()

    def _watch(self, launcher: Any, over: threading.Event) -> None:
        limits = [one for one in (self.rules.silence, self.rules.stall) if one]
        while not over.wait(min(*limits, 4.0) / 4):
            now = time.monotonic()
            late = [("silent", beat, beat.said(now)) for beat in self.silent(now)]
            late += [("stalled", beat, beat.said_stalled(now)) for beat in self.stalled(now)]
            for kind, beat, text in late:
                if beat.parent == launcher.pid:
                    self.named.append(text)
                    print(text, file=sys.stderr, flush=True)
                    events.append(self.folder, kind, text, rank=beat.rank, iteration=beat.iteration)
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(beat.pid, signal.SIGKILL)
                    return  # the launcher ends the other ranks

    def silent(self, now: float) -> list[beats.Beat]:
        """The ranks of this attempt that have been silent for too long."""
        return beats.silent(beats.read(self.signs), self.rules.silence, now) if self.rules.silence else []

    def stalled(self, now: float) -> list[beats.Beat]:
        """The ranks of this attempt whose step does not end."""
        return beats.stalled(beats.read(self.signs), self.rules.stall, now) if self.rules.stall else []

    @contextmanager
    def signals(self) -> Iterator[None]:
        """While it is open, SIGTERM and SIGUSR1 let the ranks save and end."""
        if threading.current_thread() is not threading.main_thread():
            yield  # signals reach the main thread, which belongs to the caller here
            return
        before = {number: signal.signal(number, self._ask) for number in (signal.SIGTERM, signal.SIGUSR1)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        """Lets the ranks end. The second signal, or one before all ranks have begun a step, ends the launcher."""
        again, self.asked = self.asked, self.asked or signal.Signals(number).name
        self._wake.set()
        if self.launcher is None:
            return
        ranks = [beat for beat in beats.read(self.signs).values() if beat.parent == self.launcher.pid]
        ready = bool(ranks) and all(beat.iteration for beat in ranks)
        if again or not ready or not self.rules.saves:
            self.launcher.terminate()
            return
        for beat in ranks:
            with contextlib.suppress(ProcessLookupError):
                os.kill(beat.pid, signal.SIGTERM)


def _last_attempt(folder: Path) -> int:
    """The number of the last attempt that an earlier command began in this folder."""
    names = [place.name for place in (folder / "attempts").glob("*")]
    return max((int(name) for name in names if name.isdigit()), default=0)
