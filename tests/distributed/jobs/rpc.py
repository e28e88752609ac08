"""Remote procedure calls between three workers. Every rank calls each check; the names of the workers are worker0 to worker2."""

from __future__ import annotations

import pickle
import socket
import threading
import time

import pytest
import torch
from torch import nn
from torch.distributed import autograd as dist_autograd
from torch.distributed import rpc
from torch.distributed.optim import DistributedOptimizer

from tests.distributed.rpc_workers import LAST, NEXT, RANK, SIZE, seeded_layer


def setup():
    rpc.init_rpc(f"worker{RANK}", rank=RANK, world_size=SIZE)


def teardown():
    rpc.shutdown()
    with pytest.raises(RuntimeError, match="RPC has not been initialized"):
        rpc.rpc_sync(NEXT, torch.ones, args=(1,))


# -- what workers run for each other -----------------------------------------------------------------------
def times(x, factor=2):
    return x * factor


def needs_gradient(x):
    return x.requires_grad


def who():
    return rpc.get_worker_info().name


def fails():
    raise ValueError("a wrong value")


def sleeps(seconds):
    time.sleep(seconds)
    return seconds


def through(other, x):
    """Ask another worker, from within a call."""
    return rpc.rpc_sync(other, times, args=(x,)) + 1


class Counter:
    def __init__(self, start):
        self.value = start

    def add(self, amount=1):
        self.value += amount
        return self.value

    @rpc.functions.async_execution
    def add_later(self, other, amount):
        return rpc.rpc_async(other, times, args=(amount,)).then(lambda done: self.add(done.wait()))


@rpc.functions.async_execution
def chained(other, x):
    return rpc.rpc_async(other, times, args=(x,)).then(lambda done: done.wait() + 1)


@rpc.functions.async_execution
def not_a_future():
    return 3


class Unpicklable:
    def __reduce__(self):
        raise TypeError("cannot be sent")


def unpicklable():
    return Unpicklable()


# -- calls -------------------------------------------------------------------------------------------------
def check_results_and_names(rank, size):
    assert rpc.rpc_sync(NEXT, who) == NEXT
    assert rpc.rpc_sync(rpc.get_worker_info(LAST), who) == LAST
    assert rpc.rpc_sync((RANK + 1) % SIZE, who) == NEXT
    assert rpc.rpc_sync(f"worker{RANK}", who) == f"worker{RANK}"
    assert torch.equal(rpc.rpc_sync(NEXT, torch.add, args=(torch.ones(2, 2), 3)), torch.full((2, 2), 4.0))
    assert torch.equal(rpc.rpc_sync(NEXT, times, (torch.arange(3),), {"factor": 3}), torch.arange(3) * 3)
    with rpc._wait_all():
        answers = [rpc.rpc_async(NEXT, times, args=(number,)) for number in range(50)]
    assert [answer.value() for answer in answers] == [2 * number for number in range(50)]
    assert rpc.rpc_sync(NEXT, through, args=(LAST, 5)) == 11


def check_tensors_arrive_as_they_are(rank, size):
    strided = torch.arange(24.0).reshape(2, 3, 4)
    for tensor in (
        torch.randn(3, 4),
        torch.randn(3, 4).t(),
        strided[:, 1:, ::2],
        strided.permute(2, 0, 1),
        torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last),
        torch.tensor(3.5),
        torch.empty(0, 3),
        torch.ones(1).expand(4, 3),
        torch.randn(5, dtype=torch.complex64).conj(),
        torch.tensor([True, False]),
        torch.randn(4).to(torch.bfloat16),
        torch.tensor([[0, 1], [2, 0]]).float().to_sparse(),
    ):
        back = rpc.rpc_sync(NEXT, torch.clone, args=(tensor,))
        assert back.dtype is tensor.dtype and back.layout is tensor.layout
        assert (
            torch.equal(back.to_dense(), tensor.to_dense()) if back.is_sparse else torch.equal(back, tensor)
        )
        assert back.requires_grad is False
    channels = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
    assert rpc.rpc_sync(NEXT, torch.Tensor.stride, args=(channels,)) == channels.stride()
    leaf = torch.randn(3, requires_grad=True)
    assert rpc.rpc_sync(NEXT, needs_gradient, args=(leaf,)) is True
    large = torch.randn(3 << 20)
    assert torch.equal(rpc.rpc_sync(NEXT, times, args=(large,)), large * 2)


def check_errors_come_back(rank, size):
    with pytest.raises(
        ValueError, match=rf"(?s)On WorkerInfo\(id={(RANK + 1) % SIZE}, name={NEXT}\):.*a wrong value"
    ):
        rpc.rpc_sync(NEXT, fails)
    with pytest.raises(ValueError, match="a wrong value"):
        rpc.rpc_async(NEXT, fails).wait()
    with pytest.raises(TypeError, match="cannot be sent"):
        rpc.rpc_sync(NEXT, unpicklable)
    with pytest.raises(TypeError, match="cannot be sent"):
        rpc.rpc_sync(NEXT, times, args=(Unpicklable(),))
    with pytest.raises(TypeError, match="function should be callable"):
        rpc.rpc_sync(NEXT, "times")
    with pytest.raises(RuntimeError, match="worker9"):
        rpc.rpc_sync("worker9", who)
    with pytest.raises(RuntimeError, match=r"more than set timeout \(200 ms\)"):
        rpc.rpc_sync(NEXT, sleeps, args=(2,), timeout=0.2)
    with pytest.raises(RuntimeError, match=r"must return a torch.futures.Future object"):
        rpc.rpc_sync(NEXT, not_a_future)
    with pytest.raises(RuntimeError, match="already initialized"):
        rpc.init_rpc("again", rank=RANK, world_size=SIZE)


def check_functions_that_answer_later(rank, size):
    assert rpc.rpc_sync(NEXT, chained, args=(LAST, 4)) == 9
    assert rpc.remote(NEXT, chained, args=(LAST, 4)).to_here() == 9
    counter = rpc.remote(NEXT, Counter, args=(1,))
    assert counter.rpc_sync().add_later(LAST, 3) == 7
    assert counter.rpc_async().add_later(LAST, 1).wait() == 9


def check_more_calls_at_a_time_than_threads(rank, size):
    begun = time.monotonic()
    for answer in [rpc.rpc_async(NEXT, chained, args=(LAST, n)) for n in range(100)]:
        answer.wait()
    assert time.monotonic() - begun < 60


# -- references --------------------------------------------------------------------------------------------
def check_references(rank, size):
    counter = rpc.remote(NEXT, Counter, args=(5,))
    assert not counter.is_owner() and counter.owner_name() == NEXT
    assert counter.rpc_sync().add() == 6
    assert counter.rpc_async().add(2).wait() == 8
    assert counter.remote().add(2).to_here() == 10
    assert counter.to_here().value == 10
    with pytest.raises(RuntimeError, match="can't call localValue"):
        counter.local_value()
    own = rpc.RRef(Counter(1))
    assert own.is_owner() and own.to_here() is own.local_value()
    assert rpc.rpc_sync(NEXT, add_to, args=(own, 4)) == 5
    assert own.local_value().value == 5
    assert rpc.rpc_sync(LAST, add_to, args=(counter, 1)) == 11  # the third worker asks the owner
    assert rpc.rpc_sync(NEXT, torch.is_tensor, args=(counter,)) is False
    with pytest.raises(RuntimeError, match="can only be pickled when using RPC"):
        pickle.dumps(counter)
    failed = rpc.remote(NEXT, fails)
    for _ in range(2):
        with pytest.raises(ValueError, match="a wrong value"):
            failed.to_here()


def add_to(counter, amount):
    return counter.rpc_sync().add(amount)


def owned_values():
    return int(rpc._get_debug_info()["num_owner_rrefs"])


def check_values_are_freed(rank, size):
    rpc._barrier({f"worker{rank}" for rank in range(SIZE)})
    before = owned_values()
    rpc._barrier({f"worker{rank}" for rank in range(SIZE)})
    mine = [rpc.remote(NEXT, Counter, args=(n,)) for n in range(5)]
    assert [counter.rpc_sync().add() for counter in mine] == [1, 2, 3, 4, 5]
    rpc.rpc_sync(LAST, kept_for_a_while, args=(mine[0],))
    del mine
    end = time.monotonic() + 30
    while owned_values() > before and time.monotonic() < end:
        time.sleep(0.05)
    assert owned_values() <= before


def kept_for_a_while(counter):
    return counter.to_here().value


# -- distributed autograd ----------------------------------------------------------------------------------
def square(x):
    return x * x


def check_gradients_through_a_call(rank, size):
    with dist_autograd.context() as number:
        x, y = torch.randn(3, requires_grad=True), torch.randn(3, requires_grad=True)
        loss = (rpc.rpc_sync(NEXT, torch.mul, args=(x, y)) + x).sum()
        dist_autograd.backward(number, [loss], retain_graph=True)
        gradients = dist_autograd.get_gradients(number)
        assert set(gradients) == {x, y} and x.grad is None
        torch.testing.assert_close(gradients[x], y.detach() + 1)
        torch.testing.assert_close(gradients[y], x.detach())
        dist_autograd.backward(number, [loss])
        torch.testing.assert_close(dist_autograd.get_gradients(number)[y], 2 * x.detach())
        with pytest.raises(RuntimeError, match="second time"):
            dist_autograd.backward(number, [loss])
    with pytest.raises(RuntimeError, match="Could not find autograd context"):
        dist_autograd.get_gradients(number)


def there_and_back(other, x, depth):
    """Square on alternating workers, ``depth`` times."""
    x = torch.sin(x) * x
    return (
        x
        if depth == 0
        else rpc.rpc_sync(other, there_and_back, args=(rpc.get_worker_info().name, x, depth - 1))
    )


def check_gradients_through_many_calls(rank, size):
    x = torch.randn(4, dtype=torch.float64, requires_grad=True)
    with dist_autograd.context() as number:
        loss = there_and_back(NEXT, x, 6).sum() + there_and_back(LAST, x * 2, 3).sum()
        dist_autograd.backward(number, [loss])
        found = dist_autograd.get_gradients(number)[x]
    local = x.detach().requires_grad_()
    y = local
    for _ in range(7):
        y = torch.sin(y) * y
    z = local * 2
    for _ in range(4):
        z = torch.sin(z) * z
    (y.sum() + z.sum()).backward()
    torch.testing.assert_close(found, local.grad)


def check_results_that_are_not_used(rank, size):
    """PyTorch's fast mode waits here without end."""
    with dist_autograd.context() as number:
        x = torch.randn(3, requires_grad=True)
        rpc.rpc_sync(NEXT, square, args=(x * 2,))
        loss = (x * 3).sum()
        dist_autograd.backward(number, [loss])
        torch.testing.assert_close(dist_autograd.get_gradients(number)[x], torch.full((3,), 3.0))


def check_gradients_of_several_threads(rank, size):
    def one(results, place):
        with dist_autograd.context() as number:
            x = torch.full((3,), float(place), requires_grad=True)
            dist_autograd.backward(number, [rpc.rpc_sync(NEXT, square, args=(x,)).sum()])
            results[place] = dist_autograd.get_gradients(number)[x]

    results: dict = {}
    threads = [threading.Thread(target=one, args=(results, place)) for place in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(torch.equal(results[place], torch.full((3,), 2.0 * place)) for place in range(8))


def rows_of(weight, places):
    return nn.functional.embedding(places, weight, sparse=True).sum(0)


def check_leaves_with_hooks_and_rows(rank, size):
    with dist_autograd.context() as number:
        weight, called = torch.randn(4, 3, requires_grad=True), []
        accumulates = weight.view_as(weight).grad_fn.next_functions[0][0]
        accumulates.register_hook(lambda out, grads: called.append(grads[0].shape))
        loss = (rpc.rpc_sync(NEXT, square, args=(rows_of(weight, torch.tensor([1, 1])),)) * 0.5).sum()
        dist_autograd.backward(number, [loss])
        gradient = dist_autograd.get_gradients(number)[weight]
        expected = torch.zeros(4, 3)
        expected[1] = 4 * weight.detach()[1]
        torch.testing.assert_close(gradient, expected)
        assert weight.grad is None and called == [weight.shape]


def check_errors_in_the_backward(rank, size):
    class Fails(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            raise ValueError("no gradient")

    with dist_autograd.context() as number:
        x = torch.randn(3, requires_grad=True)
        loss = rpc.rpc_sync(NEXT, square, args=(Fails.apply(x),)).sum()
        with pytest.raises(RuntimeError, match="no gradient"):  # it comes back from the next worker
            dist_autograd.backward(number, [loss])
        sparse = torch.eye(3).to_sparse().requires_grad_()
        with pytest.raises(NotImplementedError, match="sparse tensor that requires grad"):
            rpc.rpc_sync(NEXT, torch.clone, args=(sparse,))
        with pytest.raises(RuntimeError, match="No tensors provided"):
            dist_autograd.backward(number, [])
        with pytest.raises(RuntimeError, match="requires_grad not set on root"):
            dist_autograd.backward(number, [torch.ones(1)])
        with pytest.raises(RuntimeError, match="all roots need to be scalar"):
            dist_autograd.backward(number, [x * 2])
        with pytest.raises(RuntimeError, match="Already have an autograd context"), dist_autograd.context():
            pass


class Net:
    """A layer on another worker."""

    def __init__(self, seed):
        self.layer = seeded_layer(seed)

    def forward(self, x):
        return torch.tanh(self.layer(x))

    def parameters(self):
        return [rpc.RRef(parameter) for parameter in self.layer.parameters()]

    def weights(self):
        return [parameter.detach() for parameter in self.layer.parameters()]


def check_an_optimizer_of_several_workers(rank, size):
    if RANK == 0:
        nets = [rpc.remote(name, Net, args=(seed,)) for seed, name in enumerate((NEXT, LAST, NEXT))]
        parameters = [rref for net in nets for rref in net.rpc_sync().parameters()]
        optimizer = DistributedOptimizer(torch.optim.Adam, parameters, lr=0.1)
        twins = [Net(seed) for seed in range(3)]
        twin = torch.optim.Adam([p for net in twins for p in net.layer.parameters()], lr=0.1)
        torch.manual_seed(5)
        for _ in range(3):
            x = torch.randn(2, 4)
            with dist_autograd.context() as number:
                y = x
                for net in nets:
                    y = net.rpc_sync().forward(y)
                dist_autograd.backward(number, [y.pow(2).sum()])
                optimizer.step(number)
            y = x
            for net in twins:
                y = net.forward(y)
            twin.zero_grad()
            y.pow(2).sum().backward()
            twin.step()
        for net, local in zip(nets, twins, strict=True):
            for there, here in zip(net.rpc_sync().weights(), local.weights(), strict=True):
                torch.testing.assert_close(there, here, rtol=1e-6, atol=1e-6)
        with pytest.raises(RuntimeError, match="Could not find autograd context"):
            optimizer.step(12345)
    rpc._barrier({f"worker{rank}" for rank in range(SIZE)})


# -- strangers ---------------------------------------------------------------------------------------------
def check_strangers_are_refused(rank, size):
    agent = rpc._get_current_rpc_agent()
    place = agent._places[(RANK + 1) % SIZE]
    for greeting in (b"GET / HTTP/1.0\r\n\r\n" + b" " * 100, b"msadapter store 1\nS" + bytes(32) + bytes(32)):
        with socket.create_connection((place["host"], place["port"]), timeout=20) as stranger:
            stranger.sendall(greeting)
            stranger.settimeout(20)
            answers = b""
            try:
                while piece := stranger.recv(4096):
                    answers += piece
            except ConnectionResetError:
                pass
        assert len(answers) < 100
    assert rpc.rpc_sync(NEXT, who) == NEXT
