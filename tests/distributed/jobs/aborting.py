"""torch.npu.stop_device and torch.distributed.reinit_process_group on CPU ranks. Needs four ranks."""

import threading
import time

import torch
import torch.distributed as dist


def raises(text, function, *args, **kwargs):
    try:
        function(*args, **kwargs)
    except RuntimeError as caught:
        assert text in str(caught), caught
        return str(caught)
    raise AssertionError("no RuntimeError")


def usable(rank, size, group=None):
    """The group moves numbers rightly, by shared memory, by MPI, small and large, and as messages."""
    ranks = dist.get_process_group_ranks(group or dist.group.WORLD)
    for count in (3, 300_000):
        x = torch.full((count,), float(rank + 1))
        dist.all_reduce(x, group=group)
        assert torch.equal(x, torch.full((count,), float(sum(r + 1 for r in ranks))))
        y = torch.full((count,), float(rank))
        dist.broadcast(y, ranks[-1], group=group)
        assert torch.equal(y, torch.full((count,), float(ranks[-1])))
    flags = torch.tensor([rank == ranks[0]])
    dist.all_reduce(flags, dist.ReduceOp.MAX, group=group)  # booleans go through MPI
    assert bool(flags)
    place = ranks.index(rank)
    after, before = ranks[(place + 1) % len(ranks)], ranks[place - 1]
    for count in (3, 300_000):
        got = torch.zeros(count)
        sent = dist.isend(torch.full((count,), float(rank)), after, group=group)
        dist.recv(got, before, group=group)
        sent.wait()
        assert torch.equal(got, torch.full((count,), float(before)))
    gathered = [None] * len(ranks)
    dist.all_gather_object(gathered, rank, group=group)
    assert gathered == ranks


def stopped_after(seconds):
    """Stops the device from another thread, as a recovery tool does."""

    def stop():
        time.sleep(seconds)
        assert torch.npu.stop_device(torch.npu.current_device()) == 0

    thread = threading.Thread(target=stop)
    thread.start()
    return thread


def check_a_waiting_rank_is_stopped(rank, size):
    """Rank 0 does not come to the collective, so the others wait, until their devices are stopped."""
    pair = [dist.new_group([0, 1]), dist.new_group([2, 3])][rank // 2]
    thread = stopped_after(0.3)
    if rank:
        began = time.monotonic()
        text = raises("FORCE STOP: ALLREDUCE", dist.all_reduce, torch.ones(5))
        assert "was aborted by torch.npu.stop_device" in text and time.monotonic() - began < 20
    thread.join()
    raises("FORCE STOP: the process group", dist.barrier)
    raises("reinit_process_group makes it usable again", dist.all_reduce, torch.ones(2), group=pair)
    torch.npu.restart_device(torch.npu.current_device())
    raises("FORCE STOP", dist.barrier)
    assert dist.reinit_process_group(group=None, rebuild_link=False) is None
    usable(rank, size)
    usable(rank, size, pair)
    dist.destroy_process_group(pair)


def check_messages_and_large_tensors_are_stopped(rank, size):
    """Pending operations of each kind fail, and what was sent before does not reach the groups made anew."""
    pending, half = [], [dist.new_group([0, 2]), dist.new_group([1, 3])][rank % 2]
    if rank == 1:
        pending = [dist.irecv(torch.zeros(4), 0), dist.irecv(torch.zeros(400_000), 2)]
    if rank == 3:
        dist.isend(torch.ones(4), 0)
        pending = [dist.all_reduce(torch.ones(400_000), async_op=True), dist.barrier(async_op=True)]
    if rank == 2:
        flags = torch.tensor([True])
        pending = [dist.all_reduce(flags, dist.ReduceOp.MAX, group=half, async_op=True)]
    stopped_after(0.1).join()
    for work in pending:
        raises("FORCE STOP", work.wait)
        assert work.is_completed() and work.exception() is not None
    torch.npu.restart_device(0)
    dist.reinit_process_group(rebuild_link=False)
    got = torch.full((4,), 7.0)
    if rank == 0:
        dist.recv(got, 3)  # of the new group, not the message of before
        assert torch.equal(got, torch.full((4,), 5.0))
    if rank == 3:
        dist.send(torch.full((4,), 5.0), 0)
    usable(rank, size)
    usable(rank, size, half)
    dist.destroy_process_group(half)


def check_what_all_ranks_have_begun_ends(rank, size):
    """A stop during a collective that all ranks reach soon does not lose its result on some of them."""
    x = torch.ones(3)
    if rank == 0:
        time.sleep(0.05)
    work = dist.all_reduce(x, async_op=True)
    torch.npu.stop_device(0)
    work.wait()
    assert torch.equal(x, torch.full((3,), 4.0))
    torch.npu.restart_device(0)
    dist.reinit_process_group(rebuild_link=False)
    usable(rank, size)


def check_survivors_form_a_group(rank, size):
    """Without the others, some ranks of an aborted job make a group among themselves, as for a last checkpoint."""
    thread = stopped_after(0.2)
    if rank != 3:
        raises("FORCE STOP", dist.barrier)
    thread.join()
    torch.npu.restart_device(0)
    if rank in (1, 2):
        for backend in (None, "gloo"):
            group = dist.new_group([1, 2], use_local_synchronization=True, backend=backend)
            usable(rank, size, group)
            dist.destroy_process_group(group)
    dist.reinit_process_group(rebuild_link=False)
    usable(rank, size)


def check_one_group_is_made_anew(rank, size):
    """With rebuild_link, only one group is made anew, and its handle stays. A group that was not aborted may be, too."""
    pair = [dist.new_group([0, 2]), dist.new_group([1, 3])][rank % 2]
    usable(rank, size, pair)
    torch.npu.stop_device(0)
    torch.npu.restart_device(0)
    assert dist.reinit_process_group(pair, rebuild_link=True) is pair
    usable(rank, size, pair)
    raises("FORCE STOP", dist.barrier)
    assert dist.reinit_process_group() is dist.group.WORLD
    usable(rank, size)
    for _ in range(3):
        dist.reinit_process_group()
        usable(rank, size)
    dist.destroy_process_group(pair)


def check_a_group_of_one_process_goes_on(rank, size):
    alone = [dist.new_group([r]) for r in range(size)][rank]
    torch.npu.stop_device(0)
    x = torch.ones(2)
    dist.all_reduce(x, group=alone)
    torch.npu.restart_device(0)
    dist.reinit_process_group(rebuild_link=False)
    usable(rank, size)
