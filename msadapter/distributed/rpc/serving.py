"""What a worker does with the messages of others."""

from __future__ import annotations

import threading

from ...futures import Future
from ..autograd import _contexts
from . import state
from .agent import Message, RpcAgent, told
from .functions import is_async
from .internal import serialize
from .payload import unpacked
from .results import RemoteException, answer, failure
from .rref import Identity, References

_DONE = Message("done")
_NOT_DEFINED = (
    " Default RPC pickler does not serialize function code. Ensure that UDFs are defined on both caller and callee "
    "modules."
)


def _run(agent: RpcAgent, message: Message, finish) -> None:
    """Run the function of a message, and call ``finish`` with its value, or with a RemoteException."""

    def later(future):
        try:
            value = future.wait()
        except Exception as error:
            value = failure(agent.info, error)
        finish(value)

    try:
        try:
            with state.references().confirmed():
                function, args, kwargs = unpacked(message.data, message.tensors, state.references())
        except AttributeError as error:
            raise RuntimeError(f"{error}{_NOT_DEFINED}") from error
        value = function(*args, **kwargs)
        if is_async(function) and not isinstance(value, Future):
            raise RuntimeError(
                "Functions decorated with @rpc.async_function must return a torch.futures.Future object, "
                f"but got {type(value).__name__}"
            )
    except Exception as error:
        finish(failure(agent.info, error))
        return
    if is_async(function):
        value.add_done_callback(later)
    else:
        finish(value)


def _call(agent, message, sender, reply) -> None:
    context = _contexts.contexts().current()
    _run(agent, message, lambda value: reply(_sendable(agent, value, context)))


def _sendable(agent, value, context) -> Message:
    """Return the answer with a value; if it cannot be pickled, the answer with that error."""
    try:
        return answer(value, context, serialize)
    except Exception as error:
        return answer(failure(agent.info, error), None, serialize)


def _remote(agent, message, sender, reply) -> None:
    identity, fork = message.fields
    here = state.references()
    value = here.owned(Identity(*identity))
    if fork is not None:
        here.add_fork(value.identity, Identity(*fork))

    def finish(result):
        if isinstance(result, RemoteException):
            value.future.set_exception(result)
        else:
            value.future.set_result(result)
        reply(_DONE)

    _run(agent, message, finish)


def _fetch(agent, message, sender, reply) -> None:
    context = _contexts.contexts().current()
    value = state.references().owned(Identity(*message.fields[0]))

    def ready(future):
        reply(_sendable(agent, future._error or future.wait(), context))

    value.future.add_done_callback(ready)


def _fork(agent, message, sender, reply) -> None:
    identity, fork = message.fields
    state.references().add_fork(Identity(*identity), Identity(*fork))
    reply(_DONE)


def _drop(agent, message, sender, reply) -> None:
    identity, fork = message.fields
    state.references().drop_fork(Identity(*identity), Identity(*fork))
    reply(_DONE)


def _accepted(agent, message, sender, reply) -> None:
    state.references().accepted(Identity(*message.fields[0]))
    reply(_DONE)


# -- distributed autograd ----------------------------------------------------------------------------------
def _reply_after(future: Future, reply) -> None:
    def done(finished):
        error = finished._error
        reply(_DONE if error is None else Message("error", (told(error),)))

    future.add_done_callback(done)


def _reach(agent, message, sender, reply) -> None:
    context, number, messages = message.fields
    _reply_after(_contexts.contexts().of(context).pass_of(number).reach([], messages), reply)


def _gradients(agent, message, sender, reply) -> None:
    context, number, sent, keep_graph = message.fields
    part = _contexts.contexts().of(context).pass_of(number)
    _reply_after(part.receive(sent, message.tensors, keep_graph), reply)


def _end_pass(agent, message, sender, reply) -> None:
    context, number = message.fields
    here = _contexts.contexts()
    if context in here.numbers():
        here.of(context).pass_of(number).end()
    reply(_DONE)


def _forget_context(agent, message, sender, reply) -> None:
    _contexts.contexts().release(message.fields[0])
    reply(_DONE)


# -- all workers together ----------------------------------------------------------------------------------
class Gathering:
    """Collects one object of each of several workers, on one of them, and gives the table of all to each."""

    def __init__(self):
        self._lock = threading.Lock()
        self._open: dict = {}

    def add(self, key, names: frozenset, name: str, obj, reply) -> None:
        with self._lock:
            objects, replies = self._open.setdefault(key, ({}, []))
            objects[name] = obj
            replies.append((name, reply))
            if len(objects) < len(names):
                return
            del self._open[key]
        # this worker's own last, because it may end when it has its answer
        own = min(names)
        for _, send in sorted(replies, key=lambda pair: pair[0] == own):
            send(Message("gathered", (objects,)))


def begin(store, name: str, rank: int, size: int, options) -> RpcAgent:
    """Start the agent of this worker, and what it keeps."""
    agent = RpcAgent(store, name, rank, size, options, _kinds())
    _contexts.begin(rank, agent.ask)
    state.begin(agent, References(agent))
    try:
        agent.open()
    except BaseException:
        state.stop()
        agent.shutdown()
        _contexts.stop()
        raise
    return agent


def _kinds() -> dict:
    """Return the handler of each kind of message."""
    gathering = Gathering()

    def gather(agent, message, sender, reply) -> None:
        key, names, obj = message.fields
        gathering.add(key, frozenset(names), agent.get_worker_info(sender).name, obj, reply)

    return {
        "call": _call,
        "remote": _remote,
        "fetch": _fetch,
        "fork": _fork,
        "drop": _drop,
        "accepted": _accepted,
        "reach": _reach,
        "gradients": _gradients,
        "end pass": _end_pass,
        "forget context": _forget_context,
        "gather": gather,
    }
