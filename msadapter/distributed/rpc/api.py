"""torch.distributed.rpc.api: calls of functions on other workers, and what all workers do together."""

from __future__ import annotations

import collections
import logging
import threading

from ..autograd import _contexts
from . import state
from .agent import RpcAgent
from .calls import _thread_local_var, _use_rpc_pickler, _wait_all, get_worker_info, rpc_async, rpc_sync
from .constants import DEFAULT_SHUTDOWN_TIMEOUT, UNSET_RPC_TIMEOUT
from .rref import RRef, remote

__all__ = [
    "RRef",
    "_thread_local_var",
    "_use_rpc_pickler",
    "_wait_all",
    "get_worker_info",
    "remote",
    "rpc_async",
    "rpc_sync",
    "shutdown",
]

logger = logging.getLogger(__name__)
_rounds: collections.Counter = collections.Counter()  # of gatherings, by the names that take part
_rounds_lock = threading.Lock()


def _is_current_rpc_agent_set() -> bool:
    return state.has_agent()


def _get_current_rpc_agent() -> RpcAgent:
    return state.agent()


def get_rpc_timeout() -> float:
    """Return the timeout of calls, in seconds, unless a call has its own."""
    return state.agent().timeout


def _set_rpc_timeout(seconds: float) -> None:
    state.agent().timeout = float(seconds)


def _all_gather(obj, worker_names=None, timeout: float = UNSET_RPC_TIMEOUT) -> dict:
    """Return the objects of the workers by name. Each of them must call this function, as often as the others."""
    agent = state.agent()
    names = frozenset(worker_names or (info.name for info in agent.get_worker_infos()))
    if agent.info.name not in names:
        raise AssertionError(f"{agent.info.name} is not expected by leader.")
    with _rounds_lock:
        number = _rounds[names]
        _rounds[names] += 1
    seconds = agent.timeout if timeout == UNSET_RPC_TIMEOUT else timeout
    key = (*sorted(names), number)
    leader = agent.get_worker_info(min(names)).id
    answers = agent.ask(leader, "gather", (key, sorted(names), obj), timeout=seconds)
    try:
        return answers.wait().fields[0]
    except RuntimeError as error:
        raise RuntimeError(
            f"Followers {sorted(names - {agent.info.name})} timed out in _all_gather after {seconds:.2f} seconds. "
            f"The first exception is {error}"
        ) from error


def _barrier(worker_names) -> None:
    """Wait until all of these workers have called this function."""
    try:
        _all_gather(None, set(worker_names))
    except RuntimeError:
        logger.exception("Failed to complete barrier")


def _wait_all_workers(timeout: float = DEFAULT_SHUTDOWN_TIMEOUT) -> None:
    """Wait until all workers have called this function."""
    try:
        _all_gather(None, timeout=timeout)
    except RuntimeError:
        logger.exception("Failed to respond to 'Shutdown Proceed' in time")
        raise


def _join(agent: RpcAgent, timeout: float) -> None:
    """Wait until no worker waits for another or serves one.

    That is so when two rounds in which every worker was quiet have found no new message between them.
    """
    before = None
    while True:
        asked = _all_gather(agent.quiet(timeout), timeout=timeout)
        if asked == before:
            return
        before = asked


def shutdown(graceful: bool = True, timeout: float = DEFAULT_SHUTDOWN_TIMEOUT) -> None:
    """End remote procedure calls on this worker.

    If ``graceful``, wait until all workers have called this function and all calls have been answered; at most ``timeout``
    seconds in each step, if that is not 0.
    """
    agent = state.agent()
    try:
        if graceful:
            _wait_all_workers(timeout)
            state.references().drop_all()
            _join(agent, timeout)
    finally:
        _finish(agent)


def _finish(agent: RpcAgent) -> None:
    state.stop()
    _rounds.clear()
    agent.shutdown()
    _contexts.stop()
