"""Runs a function in several processes."""

import multiprocessing
import multiprocessing.connection
import os
import pickle
import signal
import sys
import tempfile
import traceback

__all__ = [
    "ProcessContext",
    "ProcessException",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "spawn",
    "start_processes",
]


class ProcessException(Exception):
    """A process failed."""

    def __init__(self, msg: str, error_index: int, pid: int):
        super().__init__(msg)
        self.msg = msg
        self.error_index = error_index
        self.pid = pid

    def __reduce__(self):
        return type(self), (self.msg, self.error_index, self.pid)


class ProcessRaisedException(ProcessException):
    """A process raised an exception. The message contains its traceback."""


class ProcessExitedException(ProcessException):
    """A process ended with a nonzero exit code or by a signal."""

    def __init__(self, msg, error_index, error_pid, exit_code, signal_name=None):
        super().__init__(msg, error_index, error_pid)
        self.exit_code = exit_code
        self.signal_name = signal_name

    def __reduce__(self):
        return type(self), (self.msg, self.error_index, self.pid, self.exit_code, self.signal_name)


def _run(fn, i, args, error_file):
    try:
        fn(i, *args)
    except KeyboardInterrupt:
        return
    except Exception:
        with open(error_file, "wb") as stream:
            pickle.dump(traceback.format_exc(), stream)
        sys.exit(1)


class ProcessContext:
    """The processes that have been started."""

    def __init__(self, processes, error_files):
        self.processes = processes
        self.error_files = error_files
        self.sentinels = {process.sentinel: i for i, process in enumerate(processes)}

    def pids(self) -> list:
        """Return the process ids."""
        return [int(process.pid) for process in self.processes]

    def join(self, timeout=None, grace_period=None) -> bool:
        """Wait until a process ends. Return True when all have ended.

        If a process fails, the others are terminated and its error is raised.
        """
        if not self.sentinels:
            return True
        ready = multiprocessing.connection.wait(list(self.sentinels), timeout=timeout)
        failed = None
        for sentinel in ready:
            index = self.sentinels.pop(sentinel)
            process = self.processes[index]
            process.join()
            if process.exitcode != 0:
                failed = index
                break
        if failed is None:
            return not self.sentinels
        for process in self.processes:
            if process.is_alive():
                process.terminate()
        for process in self.processes:
            process.join(grace_period)
            if process.is_alive():
                process.kill()
                process.join()
        self._raise(failed)
        return False

    def _raise(self, index):
        process, file = self.processes[index], self.error_files[index]
        if os.path.getsize(file):
            with open(file, "rb") as stream:
                text = pickle.load(stream)
            message = f"\n\n-- Process {index} terminated with the following error:\n{text}"
            raise ProcessRaisedException(message, index, process.pid)
        code = process.exitcode
        if code < 0:
            name = signal.Signals(-code).name
            raise ProcessExitedException(
                f"process {index} terminated with signal {name}", index, process.pid, code, name
            )
        raise ProcessExitedException(
            f"process {index} terminated with exit code {code}", index, process.pid, code
        )


SpawnContext = ProcessContext


def start_processes(fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn"):
    """Run fn(i, *args) in nprocs processes. With ``join`` wait for all, else return their ProcessContext."""
    context = multiprocessing.get_context(start_method)
    processes, files = [], []
    folder = tempfile.mkdtemp(prefix="spawn-")
    for i in range(nprocs):
        file = os.path.join(folder, f"error{i}.pickle")
        with open(file, "wb"):
            pass
        process = context.Process(target=_run, args=(fn, i, args, file), daemon=daemon)
        process.start()
        processes.append(process)
        files.append(file)
    started = ProcessContext(processes, files)
    if not join:
        return started
    while not started.join():
        pass
    return None


def spawn(fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn"):
    """Like start_processes, in new Python interpreters."""
    return start_processes(fn, args, nprocs, join, daemon, start_method="spawn")
