"""A rank's side: it reports, obeys the controller, and gives signs of life.

Orders arrive in a thread. It stops the device itself, because the program waits for other ranks then. What comes after that runs
in the program's own thread, which has got an error from the stopped device and waits in serve().
"""

import contextlib
import logging
import os
import queue
import signal
import sys
import threading
import time
import traceback

from .. import npu
from ..distributed import mpi_world, reinit_process_group
from ..distributed.aborting import FORCE_STOP
from ..distributed.errors import DistError
from ..distributed.setup import is_initialized
from .board import Board, agent_keeps_store
from .controller import Controller
from .names import EXIT_CODE, RET_ERROR, RET_OK, ReportState, patience, refused
from .plan import Copies

log = logging.getLogger("mindio_ttp")

BEAT = 1.0  # seconds between signs of life
_LEAVE = 10.0  # seconds in which a rank must end after the order to do so, or without an order after SIGTERM


class Processor:
    """The state of this rank."""

    def __init__(self, rank: int, world_size: int, repairs_memory: bool):
        if not 0 <= rank < world_size:
            raise ValueError(f"mindio_ttp: there is no rank {rank} of {world_size}")
        self.rank, self.world_size, self.repairs_memory = rank, world_size, repairs_memory
        self.patience = patience()
        self.device = npu.current_device()
        self.arguments: list = []  # of the function that trains
        self.callbacks: dict[str, tuple] = {}
        self.faults: dict[str, tuple] = {}  # text of an error -> (state, function)
        self.groups: list[Copies] = []
        self.step: int | None = None
        self.updating = False
        self.update_began = self.update_ended = 0
        self.repair_type = ""
        self.repair_step = 0
        self.stopping = threading.Event()
        self.reported = threading.Event()
        self.state = ReportState.RS_NORMAL.value
        self.over = threading.Event()
        self.board: Board | None = None
        self._loaded: int | None = None
        self._inbox: queue.Queue = queue.Queue()
        self._terminated = 0.0

    # -- life -----------------------------------------------------------------------------------------------
    def start(self, board: Board) -> None:
        """Begins to obey and to give signs of life."""
        self.board = board
        board.ask_patience(2 * self.patience)
        board.set(f"beat/{self.rank}", 0)
        board.store.compare_set("leader", "", "0")
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, self._asked_to_end)
        for work in (self._beat, self._obey, Controller(self).run):
            threading.Thread(target=self._until_over, args=(work,), name="mindio_ttp", daemon=True).start()

    def _until_over(self, work) -> None:
        """Runs a thread's work, which ends with the store at the latest."""
        try:
            work()
        except (DistError, OSError):
            if not self.over.is_set():
                log.warning("rank %d: the job's store has gone, so no failure can be handled", self.rank)

    def _asked_to_end(self, number, frame) -> None:
        """The launcher has seen a failure, or the job is to end. If it is a failure, the controller will give orders."""
        self._terminated = self._terminated or time.monotonic()

    def _beat(self) -> None:
        count, known = 0, set()
        while not self.over.wait(BEAT):
            count += 1
            self.board.set(f"beat/{self.rank}", count)
            if dead := set(self.dead()) - known:
                known |= dead
                self.board.tell(self.rank, "gone", ranks=sorted(dead))
            handled = self.stopping.is_set() or known
            if self._terminated and not handled and time.monotonic() - self._terminated > _LEAVE:
                self._leave(128 + signal.SIGTERM)

    def dead(self) -> list[int]:
        """The ranks of this machine whose processes have ended abnormally."""
        return mpi_world.job.dead(range(self.world_size)) if is_initialized() else []

    def finish(self) -> None:
        """The training has ended well on this rank, or nothing of this package is wanted any more."""
        if self.board is not None and not self.over.is_set():
            self.over.set()
            with contextlib.suppress(DistError, OSError):  # the launcher may have gone before
                self.board.tell(self.rank, "done")

    @staticmethod
    def _leave(code: int) -> None:
        """Ends the process at once: functions that run at exit would wait for ranks that have gone."""
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)

    # -- orders ---------------------------------------------------------------------------------------------
    def _obey(self) -> None:
        number = 1
        while not self.over.is_set():
            order = self.board.order(number, BEAT)
            if order is None:
                continue
            if self.rank in order["ranks"]:
                if order["action"] == "stop":
                    self.board.answer(number, self.rank, **self._stop())
                else:
                    self._inbox.put((number, order))
                if order["action"] == "exit":
                    time.sleep(_LEAVE)
                    self._leave(EXIT_CODE)
            number += 1

    def _stop(self) -> dict:
        """Stops the device and waits until the program has noticed it."""
        self.stopping.set()
        result = self._call("stop", self.arguments)
        if not self.reported.wait(self.patience):
            log.error("rank %d: the training did not stop within %g s", self.rank, self.patience)
            result = RET_ERROR
        groups = [[list(one.ranks), one.count] for one in self.groups]
        return {
            "ret": result,
            "state": self.state,
            "step": self.step,
            "updating": self.updating,
            "groups": groups,
        }

    def report(self, state: int, text: str = "") -> None:
        """Tells the controller what is wrong with this rank."""
        self._require_board()
        self.state = state
        if state != ReportState.RS_NORMAL.value or not self.stopping.is_set():
            self.board.tell(self.rank, "error", state=state, text=text[:2000], dead=self.dead())
        self.reported.set()

    def serve(self, until: str) -> bool:
        """Does what the controller orders, in this thread. True when `until` is ordered, False when this rank must end."""
        while True:
            try:
                number, order = self._inbox.get(timeout=3 * self.patience)
            except queue.Empty:
                log.error("rank %d: no order came within %g s", self.rank, 3 * self.patience)
                return False
            action = order["action"]
            if action == "exit":
                self._call("exit")
                return False
            result = RET_OK if action == until else getattr(self, f"_do_{action}")(order)
            if action == "go on":
                self._go_on()
            self.board.answer(number, self.rank, ret=result, loaded=self._loaded)
            if action == until:
                return True

    def _go_on(self) -> None:
        self.state, self.updating, self._loaded = ReportState.RS_NORMAL.value, False, None
        self.reported.clear()
        self.stopping.clear()

    def _do_clean(self, order) -> int:
        self.repair_type = order["type"]
        lost = self.state in (ReportState.RS_UCE.value, ReportState.RS_UCE_CORRUPTED.value)
        return self._call("clean", lost, self.arguments)

    def _do_repair(self, order) -> int:
        info = order["infos"][str(self.rank)]
        self.repair_step = order["step"] or 0
        rebuild = info["repair_type"] in (1, 6)
        result = self._call("repair", self.repair_step, rebuild, info["dst"], info, self.arguments)
        if self._loaded is not None:
            self.step = self._loaded
        return result

    def _do_rollback(self, order) -> int:
        self.repair_step = order["step"]
        self.step = self.repair_step
        return self._call("rollback", self.repair_step, self.arguments)

    def _do_save(self, order) -> int:
        return self._call("save", order["step"], order["infos"][str(self.rank)], self.arguments)

    def _do_rename(self, order) -> int:
        function, _ = self.callbacks.get("rename", (None, None))
        return (
            RET_OK if function is None else self._guarded("rename", function, order["step"], self.arguments)
        )

    def _call(self, name: str, *arguments) -> int:
        """Calls a registered function, or what takes its place. Returns its result, RET_ERROR if it failed."""
        function, context = self.callbacks.get(name, (None, None))
        if function is None:
            default = getattr(self, f"_default_{name}", None)
            return RET_OK if default is None else self._guarded(name, default, *arguments)
        return self._guarded(name, function, *arguments, context)

    def _guarded(self, name: str, function, *arguments) -> int:
        npu.set_device(self.device)
        try:
            result = function(*arguments)
        except Exception:
            # The controller decides what follows; the cause is for the user.
            log.error("rank %d: the callback %r failed:\n%s", self.rank, name, traceback.format_exc())
            return RET_ERROR
        return RET_OK if result is None else int(result)

    def _default_stop(self, arguments) -> None:
        npu.stop_device(self.device)

    def _default_clean(self, lost: bool, arguments) -> None:
        if lost:
            raise refused("the repair of memory without a clean handler")
        if self.repair_type == "retry":
            reinit_process_group(rebuild_link=False)
        npu.restart_device(self.device)

    def _default_save(self, *arguments) -> None:
        raise refused("a last checkpoint without a save handler")

    # -- what the program tells -----------------------------------------------------------------------------
    def start_updating(self) -> None:
        self.check_stopped("the optimizer's step")
        self.updating = True

    def end_updating(self, step: int) -> None:
        self.step, self.updating = int(step), False

    def loaded(self, step: int) -> None:
        self._loaded = int(step)

    def check_stopped(self, what: str) -> None:
        """RuntimeError with torch_npu's word if the controller has stopped this rank."""
        if self.stopping.is_set():
            raise RuntimeError(f"{FORCE_STOP}: {what} does not begin, because another rank has failed")

    def _require_board(self) -> None:
        if self.board is None:
            raise RuntimeError("mindio_ttp: tft_start_processor was not called")

    @property
    def keeps_store(self) -> bool:
        return self.rank == 0 and not agent_keeps_store()
