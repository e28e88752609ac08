"""The worker processes of a DataLoader."""

import os
import queue
import random

import numpy as np

from ...._utils import ExceptionWrapper
from ...._values.base import _C
from ....multiprocessing import reductions
from ....random import manual_seed
from . import fetch

ALIVE_CHECK = 5.0
_worker_info = None


class WorkerInfo:
    """Facts about this worker: id, num_workers, seed, dataset (and worker_method for libraries)."""

    def __init__(self, **facts):
        self.__dict__.update(facts)
        self.__dict__["_closed"] = True

    def __setattr__(self, name, value):
        raise RuntimeError("Cannot assign attributes to WorkerInfo objects")

    def __repr__(self):
        facts = ", ".join(f"{k}={v}" for k, v in self.__dict__.items() if k != "_closed")
        return f"WorkerInfo({facts})"


def get_worker_info():
    """Return the WorkerInfo of this worker process, or None in other processes."""
    return _worker_info


class Resume:
    """Sent to persistent workers at the start of a new epoch. It contains the seed of shared shuffles."""

    def __init__(self, seed=None):
        self.seed = seed


class Ended:
    """Sent by a worker whose stream is at its end."""

    def __init__(self, worker_id):
        self.worker_id = worker_id


def numpy_seed(base_seed: int, worker_id: int):
    """Return seed words for numpy, which differ between workers and epochs."""
    words = [worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    return np.random.SeedSequence(words).generate_state(4)


def _seed_all(base_seed, worker_id):
    seed = base_seed + worker_id
    random.seed(seed)
    manual_seed(seed)
    np.random.seed(numpy_seed(base_seed, worker_id))
    return seed


def _report_unsent(results, where: str) -> None:
    """Let a queue send the error in place of an answer that cannot be pickled. Without it, the loader would wait for ever.

    The queue pickles in a thread of its own, so `put` does not raise the error.
    """
    otherwise = results._on_queue_feeder_error

    def send_error(error, answer):
        if not isinstance(answer, tuple):  # it was pickled, and the pipe refused it
            otherwise(error, answer)
            return
        number, data = answer
        instead = ExceptionWrapper((type(error), error, error.__traceback__), where)
        if isinstance(data, ExceptionWrapper):  # an error whose class cannot be pickled: its text can
            instead.exc_type, instead.exc_msg = RuntimeError, data.exc_msg
        results.put((number, instead))

    results._on_queue_feeder_error = send_error


def worker_loop(setup, indices, results, done):
    """Answer requests (number, indices) with (number, batch or ExceptionWrapper) until a request is None.

    setup: dict of dataset, iterable, auto_collation, collate_fn, drop_last, base_seed, init_fn, worker_id, num_workers.
    """
    global _worker_info
    reductions.send_copies()
    _C.set_num_threads(1)  # the parent's thread pool does not exist in a forked child
    worker_id, parent = setup["worker_id"], os.getppid()
    where = f"in DataLoader worker process {worker_id}"
    _report_unsent(results, where)
    seed = _seed_all(setup["base_seed"], worker_id)
    _worker_info = WorkerInfo(
        id=worker_id, num_workers=setup["num_workers"], seed=seed, dataset=setup["dataset"]
    )
    parts = [setup[k] for k in ("dataset", "iterable", "auto_collation", "collate_fn", "drop_last")]
    failure, fetcher, ended = None, None, False
    try:
        if setup["init_fn"] is not None:
            setup["init_fn"](worker_id)
        fetcher = fetch.make(*parts)
    except Exception:  # sent to the main process with the first batch
        failure = ExceptionWrapper(where=where)
    while True:
        request = _next_request(indices, done, parent)
        if request is None:
            break
        if isinstance(request, Resume):
            results.put((request, None))
            ended = False
            fetcher = fetch.make(*parts)
            continue
        number, index = request
        if ended:
            continue
        try:
            if failure is not None:
                data, failure = failure, None
            else:
                data = fetcher.fetch(index)
        except Exception as err:
            ended = setup["iterable"] and isinstance(err, StopIteration)
            data = Ended(worker_id) if ended else ExceptionWrapper(where=where)
        results.put((number, data))
        del data
    if done.is_set():
        results.cancel_join_thread()
        results.close()


def _next_request(indices, done, parent):
    """Return the next request, or None if the worker has to end: the queue contains None, or the parent process has ended."""
    while True:
        try:
            request = indices.get(timeout=ALIVE_CHECK)
        except queue.Empty:
            if done.is_set() or os.getppid() != parent:
                return None
            continue
        return None if done.is_set() else request
