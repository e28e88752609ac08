"""The state of distributed autograd on one worker: which tensors went to other workers, and which came from them.

A context has the same number on every worker that takes part in it. A message that carries tensors which require grad leaves a
node in the graph of its sender, whose gradients come from the receiver later, and a node in the graph of its receiver, whose
gradients go back to the sender. A message is known by its number in both graphs.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Any

from ... import ops
from ..._host.native import load
from ...autograd._passes import without_leaves
from ...futures import Future, collect_all

_C = load()
_BITS = 48  # the numbers of contexts and messages have the worker's number above these bits
_NAME = "torch::distributed::autograd::{}RpcBackward"


class DistAutogradContext:
    """The nodes of one context on this worker, and the gradients of its leaves."""

    def __init__(self, number: int, ask: Callable[..., Future]):
        self.number, self.ask = number, ask
        self.sent: dict[int, Any] = {}  # message -> the node whose gradients come from the receiver
        self.received: dict[int, tuple[Any, int]] = {}  # message -> (node, the worker that sent it)
        self.workers: set[int] = set()  # that this one has called in the context
        self.gradients: dict = {}
        self.passes: dict[Any, _Pass] = {}
        self.lock = threading.RLock()

    def _context_id(self) -> int:
        return self.number

    def _send_functions(self) -> dict:
        return dict(self.sent)

    def _recv_functions(self) -> dict:
        return {message: node for message, (node, _) in self.received.items()}

    def _known_worker_ids(self) -> set[int]:
        return set(self.workers)

    def record_sent(self, message: int, tensors: list) -> None:
        """Put a node behind tensors that are sent in a message and require grad."""
        with self.lock:
            self.sent[message] = _C.make_called_node(
                _NAME.format("Send"), lambda grads: grads, tensors, len(tensors)
            )

    def record_received(self, message: int, worker: int, tensors: list) -> None:
        """Make a node the history of tensors that a worker has sent in a message."""
        likes = [(tuple(t.shape), t.dtype, t.device) for t in tensors]
        for tensor in tensors:
            tensor.requires_grad_(False)

        def give_back(grads):
            full = [
                ops.zeros(shape, dtype=dtype, device=device) if grad is None else grad
                for grad, (shape, dtype, device) in zip(grads, likes, strict=True)
            ]
            _running.outgoing.append((worker, message, full))
            return ()

        with self.lock:
            node = _C.make_called_node(_NAME.format("Recv"), give_back, (), tensors)
            self.received[message] = node, worker

    # -- a backward pass ---------------------------------------------------------------------------------
    def pass_of(self, number) -> _Pass:
        """Return this worker's part of the pass with this number."""
        with self.lock:
            if number not in self.passes:
                self.passes[number] = _Pass(self, number)
            return self.passes[number]

    def take_gradient(self, leaf, grad) -> None:
        """Add to the gradient of a leaf. Others may use the memory of ``grad``, so it is copied."""
        have = self.gradients.get(leaf)
        self.gradients[leaf] = grad.detach().clone() if have is None else have + grad


class _Running(threading.local):
    """What the pass that runs in this thread has to send: (worker, message, gradients)."""

    def __init__(self):
        self.outgoing: list = []


_running = _Running()


class _Pass:
    """One worker's part of a backward pass, in two phases.

    First the workers find out which messages the pass will go through, because a node may run only when all gradients that it
    will ever get have arrived. Then the gradients are sent.
    """

    def __init__(self, context: DistAutogradContext, number):
        self.context, self.number = context, number
        self.roots: list = []  # edges
        self.messages: set[int] = set()  # sent ones, whose gradients will come
        self.native = None
        self.others: set[int] = set()  # workers that the pass goes to from here

    def reach(self, roots: list, messages: list[int]) -> Future:
        """Note that the pass begins at ``roots`` or comes to sent messages. The future is done when all workers know."""
        context = self.context
        with context.lock:
            new = [message for message in messages if message not in self.messages]
            self.messages.update(new)
            self.roots += roots
            nodes = [node for node, _ in context.received.values()]
            start = roots + [(context.sent[message], 0) for message in new]
            reached = _C.reached_nodes(start, nodes) if start else []
            origins = dict(zip(nodes, context.received.items(), strict=True))
        by_worker: dict[int, list[int]] = {}
        for node in reached:
            message, (_, worker) = origins[node]
            by_worker.setdefault(worker, []).append(message)
        self.others.update(by_worker)
        return collect_all(
            context.ask(worker, "reach", (context.number, self.number, found))
            for worker, found in by_worker.items()
        )

    def feed(self, edges: list, grads: list, keep_graph: bool) -> Future:
        """Run what these gradients make ready. The future is done when what follows on other workers is done."""
        context = self.context
        with context.lock:
            if self.native is None:
                starts = self.roots + [(context.sent[message], 0) for message in sorted(self.messages)]
                self.native = _C.open_pass(starts, context.take_gradient, keep_graph)
            outer, _running.outgoing = _running.outgoing, []
            try:
                with without_leaves():
                    _C.feed_pass(self.native, edges, grads)
                outgoing = _running.outgoing
            finally:
                _running.outgoing = outer
        return collect_all(
            context.ask(
                worker, "gradients", (context.number, self.number, message, keep_graph), tensors=tensors
            )
            for worker, message, tensors in outgoing
        )

    def receive(self, message: int, grads: list, keep_graph: bool) -> Future:
        """Run with the gradients of a sent message."""
        node = self.context.sent[message]
        return self.feed([(node, place) for place in range(len(grads))], grads, keep_graph)

    def end(self) -> None:
        """Forget the pass, here and on the workers that it went to."""
        context = self.context
        if context.passes.pop(self.number, None) is not None:
            for worker in self.others:
                context.ask(worker, "end pass", (context.number, self.number))


class Contexts:
    """All contexts of this worker. ``ask(worker, kind, fields, tensors=())`` sends a message and returns a future."""

    def __init__(self, worker: int, ask: Callable[..., Future]):
        self.worker, self.ask = worker, ask
        self._by_number: dict[int, DistAutogradContext] = {}
        self._contexts, self._messages, self._passes = itertools.count(), itertools.count(), itertools.count()
        self._lock = threading.Lock()
        self._current = threading.local()

    # -- the context of a thread -------------------------------------------------------------------------
    def current(self) -> DistAutogradContext | None:
        """Return the context in which this thread runs, or None."""
        number = getattr(self._current, "number", None)
        return None if number is None else self._by_number.get(number)

    def enter(self, number: int | None) -> int | None:
        """Let this thread run in a context. Returns the number of the previous one."""
        previous = getattr(self._current, "number", None)
        self._current.number = number
        return previous

    def new(self) -> DistAutogradContext:
        """Begin a context in this thread."""
        if self.current() is not None:
            raise RuntimeError(
                f"Already have an autograd context id for this thread: {self._current.number}. "
                "Contexts cannot be nested"
            )
        number = self.worker << _BITS | next(self._contexts)
        context = self._by_number[number] = DistAutogradContext(number, self.ask)
        self._current.number = number
        return context

    def of(self, number: int) -> DistAutogradContext:
        """Return the context with a number. RuntimeError if there is none on this worker."""
        context = self._by_number.get(number)
        if context is None:
            raise RuntimeError(f"Could not find autograd context with id: {number}")
        return context

    def joined(self, number: int) -> DistAutogradContext:
        """Return the context with a number, in which this worker takes part from now on."""
        with self._lock:
            if number not in self._by_number:
                self._by_number[number] = DistAutogradContext(number, self.ask)
            return self._by_number[number]

    def release(self, number: int) -> None:
        """End a context here and on all workers that were called in it."""
        with self._lock:
            context = self._by_number.pop(number, None)
        if context is None:
            return
        if getattr(self._current, "number", None) == number:
            self._current.number = None
        for worker in context.workers:
            self.ask(worker, "forget context", (number,))

    def largest_number(self) -> int:
        """Return the largest number of a context or message that this worker could give."""
        return self.worker << _BITS | (1 << _BITS) - 1

    def next_message(self) -> int:
        return self.worker << _BITS | next(self._messages)

    def next_pass(self) -> tuple[int, int]:
        return self.worker, next(self._passes)

    def __len__(self) -> int:
        return len(self._by_number)

    def numbers(self) -> list[int]:
        return list(self._by_number)


_contexts: Contexts | None = None


def begin(worker: int, ask: Callable[..., Future]) -> None:
    """Let this process take part in distributed autograd as a worker."""
    global _contexts
    _contexts = Contexts(worker, ask)


def stop() -> None:
    global _contexts
    _contexts = None


def contexts() -> Contexts:
    """Return the contexts of this worker. RuntimeError before ``rpc.init_rpc``."""
    if _contexts is None:
        raise RuntimeError(
            "Need to initialize distributed autograd using torch.distributed.autograd.init(). "
            "torch.distributed.rpc.init_rpc does so."
        )
    return _contexts
