"""Every collective on all ranks, compared with its definition."""

import contextlib
import itertools
import sys
import time

import torch
import torch.distributed as dist
from torch.distributed import ReduceOp


def own(rank, *shape, dtype=torch.float32):
    """Return a tensor that differs between ranks."""
    count = int(torch.tensor(shape).prod())
    return ((torch.arange(count) + 10 * rank) % 61 + 1).reshape(shape).to(dtype)


def everyone(size, *shape, dtype=torch.float32):
    return [own(rank, *shape, dtype=dtype) for rank in range(size)]


@contextlib.contextmanager
def raises(error, text):
    try:
        yield
    except error as err:
        assert text in str(err), str(err)
    else:
        raise AssertionError(f"no {error}")


def check_a_group_loads_nothing_of_mindspore_but_its_runtime(rank, size):
    """The whole package takes two seconds of every rank, and a group for accelerators only asks which device there is."""
    assert "mindspore.common" not in sys.modules


def check_all_to_all_of_which_some_receive_little(rank, size):
    """The last rank gets large parts and the others small ones, so that a rank has sent nothing more to one than to another."""
    last, large = size - 1, (1 << 19) + 3
    sent = [large if to == last else to + 1 for to in range(size)]
    received = [large if rank == last else rank + 1] * size
    data = torch.cat([torch.full((count,), 100.0 * rank + to) for to, count in enumerate(sent)])
    output = torch.empty(sum(received))
    dist.all_to_all_single(output, data, received, sent)
    for source, part in enumerate(output.split(received)):
        assert bool((part == 100.0 * source + rank).all()), source


def check_collectives_as_operators(rank, size):
    """torch.ops._c10d_functional: each returns a new tensor, and finds its group by name."""
    ops, name = torch.ops._c10d_functional, dist.group.WORLD.group_name
    mine, all_of_them = own(rank, 2 * size, 3), everyone(size, 2 * size, 3)
    total = sum(all_of_them)
    assert torch.equal(ops.wait_tensor(ops.all_reduce(mine, "sum", name)), total)
    assert torch.equal(ops.all_reduce.default(mine, "avg", name), total / size)
    assert torch.equal(ops.broadcast(mine, size - 1, name), all_of_them[-1])
    assert torch.equal(ops.all_gather_into_tensor(mine, size, name), torch.cat(all_of_them))
    part = ops.reduce_scatter_tensor(mine, "sum", size, name)
    assert torch.equal(part, total[2 * rank : 2 * rank + 2])
    exchanged = ops.all_to_all_single(mine, [2] * size, [2] * size, name)
    assert torch.equal(exchanged, torch.cat([x[2 * rank : 2 * rank + 2] for x in all_of_them]))
    assert torch.equal(mine, own(rank, 2 * size, 3))
    with raises(RuntimeError, "Could not resolve the process group"):
        ops.all_reduce(mine, "sum", "no such group")


def check_all_to_all_in_place(rank, size):
    for count in (3, 1 << 17):
        data = torch.cat([torch.full((count,), 10.0 * rank + to) for to in range(size)])
        dist.all_to_all_single(data, data)
        assert data.view(size, count)[:, -1].tolist() == [10.0 * source + rank for source in range(size)]


def check_reduce_scatter_into_another_part(rank, size):
    """The output overwrites what another rank has to get."""
    for count in (3, 1 << 17):
        data = torch.arange(size, dtype=torch.float32).repeat_interleave(count)
        output = data[(rank + 1) % size * count :][:count]
        dist.reduce_scatter_tensor(output, data)
        assert output.tolist() == [float(rank * size)] * count


def check_a_root_far_ahead_of_the_others(rank, size):
    """More broadcasts than the shared memory has room for, and then an operation of all ranks."""
    tensors = [torch.full((5,), float(i) if rank == 0 else -1.0) for i in range(50)]
    for tensor in tensors:
        dist.broadcast(tensor, 0)
    assert [t[-1].item() for t in tensors] == list(map(float, range(50)))
    works = [dist.all_reduce(t, async_op=True) for t in tensors]
    for work in reversed(works):
        work.wait()
    assert [t[0].item() for t in tensors] == [float(i * size) for i in range(50)]


def check_all_reduce_dtypes(rank, size):
    for dtype in (
        torch.float32,
        torch.float64,
        torch.float16,
        torch.bfloat16,
        torch.int8,
        torch.uint8,
        torch.int16,
        torch.int32,
        torch.int64,
        torch.complex64,
        torch.complex128,
    ):
        t = own(rank, 5, dtype=dtype)
        dist.all_reduce(t)
        assert t.dtype == dtype and torch.equal(t, sum(everyone(size, 5, dtype=dtype))), dtype


def check_all_reduce_ops(rank, size):
    fold = {
        ReduceOp.PRODUCT: torch.mul,
        ReduceOp.MIN: torch.minimum,
        ReduceOp.MAX: torch.maximum,
        ReduceOp.BAND: torch.bitwise_and,
        ReduceOp.BOR: torch.bitwise_or,
        ReduceOp.BXOR: torch.bitwise_xor,
    }
    for op, function in fold.items():
        t, expected, *others = own(rank, 4, dtype=torch.int64), *everyone(size, 4, dtype=torch.int64)
        for other in others:
            expected = function(expected, other)
        dist.all_reduce(t, op)
        assert torch.equal(t, expected), op
    t = own(rank, 4)
    dist.all_reduce(t, ReduceOp.AVG)
    assert torch.allclose(t, sum(everyone(size, 4)) / size)
    t = own(rank, 4)
    dist.all_reduce(t, dist._make_nccl_premul_sum(0.25))
    assert torch.allclose(t, sum(everyone(size, 4)) * 0.25)
    t = torch.tensor([rank == 0, False, True])
    dist.all_reduce(t)
    assert t.tolist() == [True, False, True]
    with raises(RuntimeError, "Cannot use ReduceOp.BAND with non-integral dtype"):
        dist.all_reduce(torch.ones(1), ReduceOp.BAND)


def check_bfloat16_sums_in_float32(rank, size):
    # 256 + 1 is lost in bfloat16 if every step is rounded
    t = torch.full((3,), 256.0 if rank == 0 else 1.0, dtype=torch.bfloat16)
    dist.all_reduce(t)
    assert torch.equal(t, torch.full((3,), 256.0 + size - 1).bfloat16())


def check_bfloat16_is_rounded_once(rank, size):
    for op in (ReduceOp.SUM, ReduceOp.AVG):
        values = [
            torch.randn(1000, generator=torch.Generator().manual_seed(r)).bfloat16() for r in range(size)
        ]
        t = values[rank].clone()
        dist.all_reduce(t, op)
        expected = sum(v.float() for v in values)
        expected = (expected / size if op == ReduceOp.AVG else expected).bfloat16()
        assert torch.equal(t, expected), op
        # strided, with parts of different sizes in the list
        out = torch.zeros(500, 2, dtype=torch.bfloat16).t()
        lists = [torch.stack([v[:500], v[500:]]) for v in values]
        parts = [lists[rank] if r == 0 else torch.zeros(2, 500, dtype=torch.bfloat16) for r in range(size)]
        dist.reduce_scatter(out, parts, op)
        assert torch.equal(out, expected.reshape(2, 500) if rank == 0 else torch.zeros_like(out)), op


def check_strided(rank, size):
    base = own(rank, 4, 6)
    dist.all_reduce(base.t()[1:3])
    expected = own(rank, 4, 6)
    expected[:, 1:3] = sum(everyone(size, 4, 6))[:, 1:3]
    assert torch.equal(base, expected)
    target = torch.zeros(6, 4).t()
    dist.broadcast(target if rank else own(0, 4, 6), 0)
    assert rank == 0 or torch.equal(target, own(0, 4, 6))
    out = [torch.zeros(3, 2).t() for _ in range(size)]
    dist.all_gather(out, own(rank, 3, 2).t())
    assert all(torch.equal(o, e.t()) for o, e in zip(out, everyone(size, 3, 2), strict=True))


def check_results_keep_autograd_out(rank, size):
    t = torch.ones(2, requires_grad=True)
    copy = t * 1
    dist.all_reduce(copy)
    copy.sum().backward()
    assert torch.equal(t.grad, torch.ones(2))


def check_results_are_no_new_version(rank, size):
    """A collective's write does not change autograd's version, so that parts of a split can still be used."""
    for dtype, length in itertools.product(
        (torch.float32, torch.float16, torch.bfloat16, torch.int32), (6, 400_000)
    ):
        for op in (dist.ReduceOp.SUM, dist.ReduceOp.AVG):
            x = torch.ones(length, dtype=dtype)
            dist.all_reduce(x, op)
            assert x._version == 0, (dtype, length, op)
            strided = torch.ones(length, 2, dtype=dtype)[:, 0]
            dist.all_reduce(strided, op)
            assert strided._version == 0, (dtype, length, op)
        x, parts = torch.ones(length, dtype=dtype), [torch.ones(length, dtype=dtype) for _ in range(size)]
        dist.broadcast(x, 0)
        dist.reduce(x, 0)
        dist.scatter(x, parts if rank == 0 else None, 0)
        whole = torch.cat(parts)
        dist.all_to_all_single(whole, whole.clone())
        assert x._version == whole._version == 0, (dtype, length)
    leaf = torch.ones(8, 3, dtype=torch.float16, requires_grad=True)
    part = torch.chunk(leaf * 1, 4)[1]
    dist.all_reduce(part)
    part.sum().backward()
    assert part.tolist() == [[size] * 3] * 2
    assert leaf.grad.sum() == 6


def check_reduce_and_broadcast(rank, size):
    for root in range(size):
        t = own(rank, 3, dtype=torch.bfloat16)
        dist.reduce(t, root)
        if rank == root:
            assert torch.equal(t, sum(everyone(size, 3, dtype=torch.bfloat16)))
        t = own(rank, 3, dtype=torch.bool)
        dist.broadcast(t, src=root)
        assert torch.equal(t, own(root, 3, dtype=torch.bool))


def check_all_gather(rank, size):
    expected = everyone(size, 2, 3)
    out = [torch.zeros(2, 3) for _ in range(size)]
    dist.all_gather(out, own(rank, 2, 3))
    assert all(torch.equal(o, e) for o, e in zip(out, expected, strict=True))
    for shape in ((2 * size, 3), (size, 2, 3)):
        flat = torch.zeros(shape)
        dist.all_gather_into_tensor(flat, own(rank, 2, 3))
        assert torch.equal(flat, torch.cat(expected).reshape(shape))
    own_part = flat[rank]  # the input is a part of the output
    own_part.copy_(own(rank, 2, 3) + 1)
    dist.all_gather_into_tensor(flat, own_part)
    assert torch.equal(flat, torch.stack(expected) + 1)
    uneven = [torch.zeros(i + 1) for i in range(size)]
    dist.all_gather(uneven, own(rank, rank + 1))
    assert all(torch.equal(o, own(i, i + 1)) for i, o in enumerate(uneven))


def check_reduce_scatter(rank, size):
    for dtype in (torch.float32, torch.bfloat16):
        total = sum(everyone(size, 2 * size, 3, dtype=dtype))
        out = torch.zeros(2, 3, dtype=dtype)
        dist.reduce_scatter_tensor(out, own(rank, 2 * size, 3, dtype=dtype))
        assert torch.equal(out, total[2 * rank : 2 * rank + 2])
        dist.reduce_scatter(out, list(own(rank, 2 * size, 3, dtype=dtype).chunk(size)), op=ReduceOp.AVG)
        assert torch.allclose(out, total[2 * rank : 2 * rank + 2] / size)
    buffer = own(rank, 2 * size)  # the output is a part of the input
    dist.reduce_scatter_tensor(buffer[2 * rank : 2 * rank + 2], buffer)
    assert torch.equal(
        buffer[2 * rank : 2 * rank + 2], sum(everyone(size, 2 * size))[2 * rank : 2 * rank + 2]
    )


def check_all_to_all(rank, size):
    out = torch.zeros(size, 2, dtype=torch.int32)
    dist.all_to_all_single(out, own(rank, size, 2, dtype=torch.int32))
    assert torch.equal(out, torch.stack([own(i, size, 2, dtype=torch.int32)[rank] for i in range(size)]))
    # rank r sends r + j + 1 rows to j
    sent, received = [rank + j + 1 for j in range(size)], [j + rank + 1 for j in range(size)]
    out = torch.zeros(sum(received), 2)
    dist.all_to_all_single(out, torch.full((sum(sent), 2), float(rank)), received, sent)
    assert torch.equal(out, torch.cat([torch.full((n, 2), float(j)) for j, n in enumerate(received)]))
    # some parts are empty
    sizes = [3 if j == rank else 0 for j in range(size)]
    out = torch.zeros(3)
    dist.all_to_all_single(out, own(rank, 3), sizes, sizes)
    assert torch.equal(out, own(rank, 3))
    outs = [torch.zeros(j + 1) for j in range(size)]
    dist.all_to_all(outs, [torch.full((rank + 1,), float(rank)) for _ in range(size)])
    assert all(torch.equal(o, torch.full((j + 1,), float(j))) for j, o in enumerate(outs))


def check_gather_scatter(rank, size):
    last = size - 1
    out = [torch.zeros(3) for _ in range(size)] if rank == last else None
    dist.gather(own(rank, 3), out, dst=last)
    assert rank != last or all(torch.equal(o, e) for o, e in zip(out, everyone(size, 3), strict=True))
    t = torch.zeros(3)
    dist.scatter(t, everyone(size, 3) if rank == last else None, src=last)
    assert torch.equal(t, own(rank, 3))


def check_send_recv(rank, size):
    after, before = (rank + 1) % size, (rank - 1) % size
    t = torch.zeros(70000)
    if rank % 2 == 0 and not (size % 2 and rank == size - 1):
        dist.send(own(rank, 70000), after)
    work = dist.irecv(t, before)
    if rank % 2 or (size % 2 and rank == size - 1):
        dist.send(own(rank, 70000), after)
    work.wait()
    assert torch.equal(t, own(before, 70000))
    if rank == 0:
        senders = {dist.recv(t[:1], tag=5) for _ in range(size - 1)}
        assert senders == set(range(1, size))
    else:
        dist.send(t[:1], 0, tag=5)


def check_tags_keep_messages_apart(rank, size):
    if rank == 0:
        dist.isend(torch.tensor([1.0]), 1, tag=1)
        dist.isend(torch.tensor([2.0]), 1, tag=2)
    elif rank == 1:
        a, b = torch.zeros(1), torch.zeros(1)
        dist.recv(a, 0, tag=2)
        dist.recv(b, 0, tag=1)
        assert (a.item(), b.item()) == (2.0, 1.0)


def check_isend_owns_its_data(rank, size):
    count = 1 << 20
    if rank == 0:
        t, u = torch.full((count,), 7.0), torch.full((count,), 8.0)
        works = [dist.isend(t, 1), dist.isend(u, 1)]
        t.zero_()  # overwritten
        u.data = torch.empty(1)  # released
        junk = [torch.zeros(count) for _ in range(4)]
        for work in works:
            work.wait()
        assert len(junk) == 4
    elif rank == 1:
        time.sleep(0.2)
        t, u = torch.zeros(count), torch.zeros(count)
        dist.recv(t, 0)
        dist.recv(u, 0)
        assert (t == 7).all() and (u == 8).all()


def check_forgotten_isend_is_delivered(rank, size):
    if rank == 0:
        dist.isend(torch.full((1 << 20,), 3.0), 1)
    elif rank == 1:
        t = torch.zeros(1 << 20)
        dist.recv(t, 0)
        assert (t == 3).all()


def check_batch_isend_irecv(rank, size):
    after, before = (rank + 1) % size, (rank - 1) % size
    t = torch.zeros(5)
    works = dist.batch_isend_irecv(
        [dist.P2POp(dist.isend, own(rank, 5), after), dist.P2POp(dist.irecv, t, before)]
    )
    for work in works:
        work.wait()
    assert torch.equal(t, own(before, 5))


def check_async_work(rank, size):
    t, half = own(rank, 4), own(rank, 4, dtype=torch.bfloat16)
    works = [dist.all_reduce(t, async_op=True), dist.all_reduce(half, async_op=True)]
    futures = [work.get_future() for work in works]
    for work in works:
        assert work.wait() and work.is_completed() and work.is_success() and work.exception() is None
    assert torch.equal(t, sum(everyone(size, 4))) and torch.equal(half, sum(everyone(size, 4)).bfloat16())
    assert (
        futures[0].then(lambda f: f.value()[0] / 2).wait().tolist() == (sum(everyone(size, 4)) / 2).tolist()
    )


def check_progress_without_wait(rank, size):
    if rank == 0:
        dist.isend(torch.ones(1 << 20), 1)
        time.sleep(0.5)
    elif rank == 1:
        t = torch.zeros(1 << 20)
        work = dist.irecv(t, 0)
        end = time.monotonic() + 10
        while not work.is_completed():
            assert time.monotonic() < end
            time.sleep(0.01)
        assert (t == 1).all()


def check_many_async_out_of_order(rank, size):
    tensors = [own(rank, 100 + i) for i in range(30)]
    works = [dist.all_reduce(t, async_op=True) for t in tensors]
    for i in reversed(range(30)):
        works[i].wait()
        assert torch.equal(tensors[i], sum(everyone(size, 100 + i)))


def check_coalescing(rank, size):
    a, b = own(rank, 3), own(rank, 2 * size)
    out = torch.zeros(2)
    with dist._coalescing_manager(async_ops=True) as manager:
        dist.all_reduce(a)
        dist.reduce_scatter_tensor(out, b)
    manager.wait()
    assert torch.equal(a, sum(everyone(size, 3)))
    assert torch.equal(out, sum(everyone(size, 2 * size))[2 * rank : 2 * rank + 2])


def check_groups(rank, size):
    groups = [dist.new_group([r for r in range(size) if r % 2 == half]) for half in (0, 1)]
    backwards = dist.new_group(list(reversed(range(size))), backend="nccl")
    everywhere = [dist.new_group([r]) for r in range(size)]
    assert dist.get_process_group_ranks(backwards) == list(range(size))
    mine = groups[rank % 2]
    t = own(rank, 2)
    dist.all_reduce(t, group=mine)
    assert torch.equal(t, sum(own(r, 2) for r in range(rank % 2, size, 2)))
    assert dist.get_rank(groups[1 - rank % 2]) == -1 and dist.get_rank(mine) == rank // 2
    t = own(rank, 2)
    dist.all_reduce(t, group=everywhere[rank])
    assert torch.equal(t, own(rank, 2))
    t = torch.tensor([float(rank)])
    dist.broadcast(t, src=size - 1, group=backwards)
    assert t.item() == size - 1
    dist.destroy_process_group(backwards)
    own_group, all_groups = dist.new_subgroups_by_enumeration([[r] for r in range(size)])
    assert own_group.size() == 1 and len(all_groups) == size


def check_two_groups_of_the_same_ranks(rank, size):
    one, two = dist.new_group(), dist.new_group()
    a, b = torch.tensor([1.0]), torch.tensor([10.0])
    works = [
        dist.all_reduce(t, group=g, async_op=True)
        for t, g in (((a, one), (b, two)) if rank else ((b, two), (a, one)))
    ]
    for work in works:
        work.wait()
    assert (a.item(), b.item()) == (size, 10.0 * size)


def check_objects(rank, size):
    out = [None] * size
    dist.all_gather_object(out, {"rank": rank, "text": "x" * rank})
    assert out == [{"rank": r, "text": "x" * r} for r in range(size)]
    out = [None] * size if rank == 0 else None
    dist.gather_object((rank,), out, dst=0)
    assert rank != 0 or out == [(r,) for r in range(size)]
    objects = [rank, "a", [rank]] if rank == 1 else [None] * 3
    dist.broadcast_object_list(objects, src=1)
    assert objects == [1, "a", [1]]
    out = [None]
    dist.scatter_object_list(out, [f"for {r}" for r in range(size)] if rank == 0 else None, src=0)
    assert out == [f"for {rank}"]
    if rank == 0:
        dist.send_object_list(["one", 2], dst=1)
    elif rank == 1:
        objects = [None, None]
        assert dist.recv_object_list(objects, src=0) == 0 and objects == ["one", 2]


def check_empty_and_zero_dim(rank, size):
    t = torch.zeros(0)
    dist.all_reduce(t)
    t = torch.tensor(float(rank))
    dist.all_reduce(t)
    assert t.item() == sum(range(size)) and t.dim() == 0
    out = torch.zeros(size)
    dist.all_gather_into_tensor(out, torch.tensor(float(rank)))
    assert out.tolist() == list(range(size))
    out = torch.zeros(0, 3)
    dist.all_to_all_single(out, torch.zeros(0, 3), [0] * size, [0] * size)


def check_barriers(rank, size):
    begin = time.monotonic()
    if rank == 0:
        time.sleep(0.3)
    dist.barrier()
    assert time.monotonic() - begin > 0.2
    dist.monitored_barrier()


def check_the_shared_memory_of_a_job_has_no_name(rank, size):
    """So nothing of it is left if the job is killed."""
    with open("/proc/self/maps") as maps:
        mapped = [line for line in maps if "/mpich_shm_" in line]
    assert mapped and all(line.rstrip().endswith("(deleted)") for line in mapped), mapped


def check_refusals(rank, size):
    with raises(ValueError, "output tensor size must be equal to world_size times input tensor size"):
        dist.all_gather_into_tensor(torch.zeros(size + 1), torch.zeros(1))
    with raises(ValueError, "should not be the same as the rank"):
        dist.send(torch.zeros(1), rank)


def check_start_again(rank, size):
    """The job can end and start again, also with other rank numbers."""
    store = dist.distributed_c10d._get_default_store()
    dist.destroy_process_group()
    dist.init_process_group("nccl", store=store, rank=size - 1 - rank, world_size=size)
    t = torch.tensor([float(dist.get_rank())])
    out = torch.zeros(size)
    dist.all_gather_into_tensor(out, t)
    assert out.tolist() == list(range(size)) and dist.get_rank() == size - 1 - rank


LARGE = 300_007  # elements: more than a chunk of the shared memory, except in 8-bit dtypes, and not a multiple of its size


def _large(size, count, dtype):
    """Return the values of all ranks, and their sum in a wider type, rounded once."""
    parts = [((torch.arange(count) * 7 + 13 * rank) % 251 / 8).to(dtype) for rank in range(size)]
    wide = torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype
    total = parts[0].to(wide)
    for part in parts[1:]:
        total = total + part.to(wide)
    return parts, total


def check_large_reductions(rank, size):
    for dtype in (
        torch.float32,
        torch.float64,
        torch.float16,
        torch.bfloat16,
        torch.int64,
        torch.int32,
        torch.complex64,
    ):
        parts, total = _large(size, size * LARGE, dtype)
        t = parts[rank].clone()
        dist.all_reduce(t)
        assert torch.equal(t, total.to(dtype)), dtype
        mean = (
            total / size
            if dtype.is_floating_point or dtype.is_complex
            else torch.div(total, size, rounding_mode="trunc")
        )
        t = parts[rank].clone()
        dist.all_reduce(t, ReduceOp.AVG)
        assert torch.equal(t, mean.to(dtype)), dtype
        own_part = torch.empty(LARGE, dtype=dtype)
        dist.reduce_scatter_tensor(own_part, parts[rank])
        assert torch.equal(own_part, total.to(dtype).chunk(size)[rank]), dtype
        inside = parts[rank].clone()
        dist.reduce_scatter_tensor(inside.chunk(size)[rank], inside)
        assert torch.equal(inside.chunk(size)[rank], total.to(dtype).chunk(size)[rank]), dtype


def check_large_operations_of_every_kind(rank, size):
    parts, _ = _large(size, LARGE, torch.int64)
    fold = {
        ReduceOp.PRODUCT: torch.mul,
        ReduceOp.MIN: torch.minimum,
        ReduceOp.MAX: torch.maximum,
        ReduceOp.BAND: torch.bitwise_and,
        ReduceOp.BOR: torch.bitwise_or,
        ReduceOp.BXOR: torch.bitwise_xor,
    }
    for op, function in fold.items():
        expected, t = parts[0], parts[rank].clone()
        for part in parts[1:]:
            expected = function(expected, part)
        dist.all_reduce(t, op)
        assert torch.equal(t, expected), op


def check_large_strided_and_uneven(rank, size):
    parts, total = _large(size, 600 * 700, torch.float32)
    t = parts[rank].view(600, 700).t()
    dist.all_reduce(t)
    assert torch.equal(t, total.view(600, 700).t())
    whole = torch.arange(400_000.0 * size).view(size, -1)
    outputs = [torch.zeros(400_000 - 1000 * i) for i in range(size)]
    dist.all_gather(outputs, whole[rank, : outputs[rank].numel()].clone())
    for i, output in enumerate(outputs):
        assert torch.equal(output, whole[i, : output.numel()])
    gathered = torch.zeros(size, 400_000)
    gathered[rank] = whole[rank]
    dist.all_gather_into_tensor(gathered.view(-1), gathered[rank])
    assert torch.equal(gathered, whole)
    for root in range(size):
        t = whole[rank].clone()
        dist.broadcast(t, root)
        assert torch.equal(t, whole[root])


def check_large_asynchronous_in_any_order(rank, size):
    group = dist.new_group(list(range(size)))
    tensors = [torch.full((200_000 + 10_000 * i,), float(rank + i)) for i in range(6)]
    works = [dist.all_reduce(t, group=group if i % 2 else None, async_op=True) for i, t in enumerate(tensors)]
    small = torch.ones(3)
    dist.all_reduce(small)
    time.sleep(0.002 * rank)
    for i in (5, 0, 3, 1, 4, 2):
        works[i].wait()
        expected = float(sum(range(size)) + size * i)
        assert torch.equal(tensors[i], torch.full_like(tensors[i], expected)), i
    assert small.tolist() == [size] * 3


def _sent(source, target, turn, count):
    return torch.arange(count) * (turn + 1) + 1000 * source + target


def check_large_and_small_parts_of_all_to_all(rank, size):
    for turn in range(3):  # parts from nothing to 1 MB
        counts = [[70_000 * ((i + j + turn) % 3) + 7 * i + 3 * j for j in range(size)] for i in range(size)]
        received = [counts[i][rank] for i in range(size)]
        expected = [_sent(i, rank, turn, received[i]) for i in range(size)]
        own_parts = [_sent(rank, j, turn, counts[rank][j]) for j in range(size)]
        output = torch.zeros(sum(received), dtype=torch.int64)
        dist.all_to_all_single(output, torch.cat(own_parts), received, counts[rank])
        assert torch.equal(output, torch.cat(expected)), turn
        outputs = [torch.zeros(n, dtype=torch.int64) for n in received]
        dist.all_to_all(outputs, own_parts)
        assert all(torch.equal(a, b) for a, b in zip(outputs, expected, strict=True)), turn


def check_large_messages_in_another_order(rank, size):
    after, before = (rank + 1) % size, (rank - 1) % size
    lengths = [100_000 + k if k % 2 else 5 for k in range(6)]
    works = []
    for k, length in enumerate(lengths):
        t = _sent(rank, after, k, length)
        works.append(dist.isend(t, after, tag=k))
        t.zero_()  # the message is on its way
    for k in (3, 0, 5, 1, 4, 2):
        t = torch.zeros(lengths[k], dtype=torch.int64)
        assert dist.recv(t, before, tag=k) == before
        assert torch.equal(t, _sent(before, rank, k, lengths[k])), k
    for work in works:
        work.wait()


def check_large_messages_from_anyone(rank, size):
    seen = set()
    if rank:
        dist.send(_sent(rank, 0, 2, 100_000), 0)
    for _ in range(0 if rank else size - 1):
        t = torch.zeros(100_000, dtype=torch.int64)
        source = dist.recv(t)
        assert torch.equal(t, _sent(source, 0, 2, 100_000)), source
        seen.add(source)
    # The next check's messages must not be sent while this one still receives from anyone.
    dist.barrier()
    assert seen == (set() if rank else set(range(1, size)))


def check_large_messages_both_ways(rank, size):
    after, before = (rank + 1) % size, (rank - 1) % size
    t = torch.zeros(900_000, dtype=torch.int64)
    messages = [
        dist.P2POp(dist.isend, _sent(rank, after, 1, 900_000), after),
        dist.P2POp(dist.irecv, t, before),
    ]
    for work in dist.batch_isend_irecv(messages):
        work.wait()
    assert torch.equal(t, _sent(before, rank, 1, 900_000))


def check_large_out_of_step_is_an_error(rank, size):
    group = dist.new_group(list(range(size)))  # a group of its own, because it cannot be used afterwards
    try:
        dist.all_reduce(torch.ones(200_000 + rank), group=group)
    except dist.DistBackendError as err:
        assert "runs all_reduce of" in str(err), err
    else:
        raise AssertionError("sizes that differ were added")
    with raises(dist.DistBackendError, "all_reduce"):
        dist.all_reduce(torch.ones(200_000), group=group)
