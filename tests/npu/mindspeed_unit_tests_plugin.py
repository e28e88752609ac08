"""A pytest plugin for tests that give the ranks of a test to a pool of processes, as MindSpeed's `DistributedTest` does.

It changes when a test ends and how long a pool takes to start, nothing of what a test does.

MSADAPTER_UT_LIFTED   if set, only the tests that their authors skip without condition run: without that mark
"""

from __future__ import annotations

import multiprocessing
import os
from multiprocessing import pool

import pytest

# The process that the ranks are forked from has imported what each of them would import first.
multiprocessing.set_forkserver_preload(["torch", "torch_npu", "mindspore.common", "pytest"])


class _FirstError(pool.MapResult):
    """A result that is ready at the first error, because the other ranks may wait for the failed one forever."""

    def _set(self, i, success_result):
        super()._set(i, success_result)
        if not success_result[0] and not self.ready():
            self._cache.pop(self._job, None)
            self._event.set()


pool.MapResult = _FirstError


def _unconditional(mark) -> bool:
    return mark.name == "skip" or (mark.name == "skipif" and not mark.args and "condition" not in mark.kwargs)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items) -> None:
    if not os.environ.get("MSADAPTER_UT_LIFTED"):
        return
    skipped = [item for item in items if any(map(_unconditional, item.iter_markers()))]
    for node in {node for item in skipped for node in item.listchain()}:
        node.own_markers[:] = [mark for mark in node.own_markers if not _unconditional(mark)]
    config.hook.pytest_deselected(items=[item for item in items if item not in skipped])
    items[:] = skipped


def _give_up(processes: pool.Pool) -> None:
    """Kill the workers. Pool.terminate waits for threads, which may wait for a rank."""
    processes._worker_handler._state = pool.TERMINATE  # a killed process is not replaced
    processes._terminate.cancel()
    for process in processes._pool:
        process.kill()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item):
    """After an error the ranks are in different states, so the next test gets new ones."""
    try:
        return (yield)
    except BaseException:
        pools = getattr(item.cls, "_pool_cache", {})
        for processes in pools.values():
            _give_up(processes)
        pools.clear()
        raise
