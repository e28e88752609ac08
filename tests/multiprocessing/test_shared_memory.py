"""share_memory_(): the memory moves, all tensors on it with it, and other processes see what is written."""

from __future__ import annotations

import gc
import os

import pytest

import msadapter as torch

pytestmark = pytest.mark.usefixtures("torch_by_name")


def add_one(queue, answers):
    """Runs in another process and changes the received tensor in place."""
    x, part, weight = queue.get(timeout=60)
    x += 1
    part.fill_(-5.0)
    with torch.no_grad():
        weight.mul_(2)
    answers.put([x.is_shared(), part.is_shared(), weight.requires_grad, type(weight).__name__])
    queue.get(timeout=60)


def fill(x):
    """Runs in a worker of a pool."""
    x.fill_(4)
    return x + 1


def fill_received(queue, answers):
    """Runs in another process, and writes to what it receives."""
    whole, column = queue.get(timeout=60)
    whole[:] = 4
    answers.put(column.data_ptr() - whole.data_ptr())


def send_and_forget(queue, done):
    """Runs in another process, and keeps no tensor that it sends."""
    for i in range(5):
        queue.put(torch.full((3,), float(i)))
    done.get(timeout=60)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_tensor_that_is_sent_is_shared(method):
    context = torch.multiprocessing.get_context(method)
    queue, answers = context.Queue(), context.Queue()
    x = torch.zeros(5, 5)
    queue.put([x, x[:, 1]])
    process = context.Process(target=fill_received, args=(queue, answers))
    process.start()
    assert (
        answers.get(timeout=60) == x[:, 1].data_ptr() - x.data_ptr()
    )  # both lie in the same memory there too
    process.join(60)
    assert x.eq(4).all() and x.is_shared()


def test_workers_of_a_pool_write_to_what_they_are_given():
    inputs = [torch.zeros(2, 2) for _ in range(3)]
    with torch.multiprocessing.get_context("fork").Pool(2) as pool:
        results = pool.map(fill, inputs)
    assert all(x.eq(4).all() for x in inputs) and all(r.eq(5).all() for r in results)


def test_a_sender_need_not_keep_its_tensors():
    context = torch.multiprocessing.get_context("fork")
    queue, done = context.Queue(), context.Queue()
    process = context.Process(target=send_and_forget, args=(queue, done))
    process.start()
    assert [queue.get(timeout=60).tolist() for _ in range(5)] == [[float(i)] * 3 for i in range(5)]
    done.put(None)
    process.join(60)
    assert process.exitcode == 0


def test_the_other_strategy_sends_copies():
    import multiprocessing.reduction

    assert torch.multiprocessing.get_sharing_strategy() == "file_descriptor"
    torch.multiprocessing.set_sharing_strategy("file_system")
    try:
        x = torch.zeros(3)
        multiprocessing.reduction.ForkingPickler.loads(
            multiprocessing.reduction.ForkingPickler.dumps(x)
        ).fill_(1)
        assert x.tolist() == [0.0] * 3 and not x.is_shared()
    finally:
        torch.multiprocessing.set_sharing_strategy("file_descriptor")


def test_all_tensors_of_a_storage_move():
    base = torch.arange(12.0).reshape(3, 4)
    row, column = base[1], base[:, 2]
    assert not base.is_shared() and not row.is_shared()
    before = base.data_ptr()
    assert row.share_memory_() is row
    assert base.is_shared() and column.is_shared() and base.untyped_storage().is_shared()
    assert base.data_ptr() != before and row.data_ptr() == base.data_ptr() + 16
    base[1, 2] = 99.0
    assert row.tolist() == [4.0, 5.0, 99.0, 7.0] and column.tolist() == [2.0, 99.0, 10.0]
    again = base.data_ptr()
    base.share_memory_()
    assert base.data_ptr() == again
    assert not base.clone().is_shared()
    with pytest.raises(RuntimeError, match="not resizable"):
        base.untyped_storage().resize_(1000)


def test_gradients_go_on_in_shared_memory():
    model = torch.nn.Linear(3, 2).share_memory()
    assert all(p.is_shared() and p.requires_grad for p in model.parameters())
    model(torch.ones(4, 3)).sum().backward()
    assert model.weight.grad.tolist() == [[4.0] * 3] * 2 and not model.weight.grad.is_shared()
    optimizer = torch.optim.Adagrad(model.parameters())
    optimizer.share_memory()
    assert all(state["sum"].is_shared() for state in optimizer.state.values())


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_another_process_writes(method):
    context = torch.multiprocessing.get_context(method)
    queue, answers = context.Queue(), context.Queue()
    x, square = torch.arange(4).share_memory_(), torch.zeros(3, 3).share_memory_()
    weight = torch.nn.Parameter(torch.ones(2)).share_memory_()
    process = context.Process(target=add_one, args=(queue, answers))
    process.start()
    queue.put((x, square[:, 1], weight))
    assert answers.get(timeout=60) == [True, True, True, "Parameter"]
    assert x.tolist() == [1, 2, 3, 4] and weight.tolist() == [2.0, 2.0]
    assert square.tolist() == [[0.0, -5.0, 0.0]] * 3
    queue.put(None)
    process.join(60)
    assert process.exitcode == 0


def test_a_forked_child_shares_without_sending():
    x = torch.zeros(3).share_memory_()
    child = os.fork()
    if child == 0:
        x[1] = 7.0
        os._exit(0)
    os.waitpid(child, 0)
    assert x.tolist() == [0.0, 7.0, 0.0]


def test_memory_and_descriptors_are_given_back():
    count = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        kept = torch.ones(1000).share_memory_()[3:4]
    assert kept.item() == 1.0
    del kept
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == count
    assert torch.zeros(0).share_memory_().numel() == 0
