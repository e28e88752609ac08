"""Groups that are not all ranks, given in any order, and what averages over them divide by. Needs four ranks."""

import gc
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as fc
import torch.distributed.nn.functional as dnn
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, post_localSGD_hook, powerSGD_hook
from torch.distributed.algorithms.model_averaging import averagers
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.nn.parallel import DistributedDataParallel as DDP


def raises(error, text, function, *args, **kwargs):
    try:
        function(*args, **kwargs)
    except error as caught:
        assert text in str(caught), caught
    else:
        raise AssertionError(f"no {error.__name__}")


def mine(rank, count=4):
    """Numbers that differ between ranks: 10 ** rank, twice that, ..."""
    return torch.arange(1.0, count + 1) * 10**rank


PAIRS = {0: [0, 2], 1: [1, 3], 2: [0, 2], 3: [1, 3]}


def pair(rank):
    """The group of the ranks with the same parity, which every rank creates, and its ranks."""
    groups = [dist.new_group([0, 2]), dist.new_group([1, 3])]
    return groups[rank % 2], PAIRS[rank]


def check_all_reduce_stays_inside(rank, size):
    group, ranks = pair(rank)
    for op, want in (
        (dist.ReduceOp.SUM, sum(mine(r) for r in ranks)),
        (dist.ReduceOp.AVG, sum(mine(r) for r in ranks) / 2),
        (dist.ReduceOp.MAX, mine(ranks[1])),
        (dist.ReduceOp.MIN, mine(ranks[0])),
        (dist.ReduceOp.PRODUCT, mine(ranks[0]) * mine(ranks[1])),
        (dist._make_nccl_premul_sum(0.25), sum(mine(r) for r in ranks) / 4),
    ):
        x = mine(rank)
        dist.all_reduce(x, op, group=group)
        assert torch.equal(x, want), (op, x, want)


def check_ranks_of_a_group(rank, size):
    group, ranks = pair(rank)
    assert dist.get_world_size(group) == 2
    assert dist.get_rank(group) == ranks.index(rank) == dist.get_group_rank(group, rank)
    assert dist.get_process_group_ranks(group) == ranks
    assert [dist.get_global_rank(group, i) for i in (0, 1)] == ranks
    raises(ValueError, "", dist.get_group_rank, group, (rank + 1) % 4)
    other = dist.new_group([2, 1])
    inside = rank in (1, 2)
    assert dist.get_rank(other) == ([1, 2].index(rank) if inside else -1)
    assert dist.get_world_size(other) == (2 if inside else -1)


def check_roots_are_ranks_of_the_world(rank, size):
    group, ranks = pair(rank)
    for place, root in enumerate(ranks):
        for by in ({"src": root}, {"group_src": place}):
            x = mine(rank)
            dist.broadcast(x, group=group, **by)
            assert torch.equal(x, mine(root))
            objects = [rank, "text"] if rank == root else [None, None]
            dist.broadcast_object_list(objects, group=group, **by)
            assert objects == [root, "text"]
            out = torch.zeros(4)
            parts = [mine(root) + k for k in range(2)] if rank == root else None
            dist.scatter(out, parts, group=group, **by)
            assert torch.equal(out, mine(root) + ranks.index(rank))
            got = [None]
            dist.scatter_object_list(got, ["a", "b"] if rank == root else None, group=group, **by)
            assert got == ["ab"[ranks.index(rank)]]
        for by in ({"dst": root}, {"group_dst": place}):
            x = mine(rank)
            dist.reduce(x, group=group, **by)
            if rank == root:
                assert torch.equal(x, mine(ranks[0]) + mine(ranks[1]))
            parts = [torch.zeros(4) for _ in range(2)] if rank == root else None
            dist.gather(mine(rank), parts, group=group, **by)
            if rank == root:
                assert torch.equal(torch.stack(parts), torch.stack([mine(r) for r in ranks]))
            objects = [None, None] if rank == root else None
            dist.gather_object(rank, objects, group=group, **by)
            assert objects == (ranks if rank == root else None)


def check_parts_are_in_the_order_of_the_group(rank, size):
    group, ranks = pair(rank)
    out = torch.zeros(8)
    dist.all_gather_into_tensor(out, mine(rank), group=group)
    assert torch.equal(out, torch.cat([mine(r) for r in ranks]))
    parts = [torch.zeros(4), torch.zeros(4)]
    dist.all_gather(parts, mine(rank), group=group)
    assert torch.equal(torch.cat(parts), out)
    place = ranks.index(rank)
    for op, by in ((dist.ReduceOp.SUM, 1), (dist.ReduceOp.AVG, 2)):
        half = torch.zeros(2)
        dist.reduce_scatter_tensor(half, mine(rank), op, group=group)
        assert torch.equal(half, sum(mine(r) for r in ranks)[2 * place :][:2] / by)
        dist.reduce_scatter(half, list(mine(rank).split(2)), op, group=group)
        assert torch.equal(half, sum(mine(r) for r in ranks)[2 * place :][:2] / by)
    turned = torch.zeros(4)
    dist.all_to_all_single(turned, mine(rank), group=group)
    assert torch.equal(turned, torch.cat([mine(r)[2 * place :][:2] for r in ranks]))
    sizes = [1, 3] if place == 0 else [2, 2]
    takes = [1, 2] if place == 0 else [3, 2]
    uneven = torch.zeros(sum(takes))
    dist.all_to_all_single(uneven, mine(rank), takes, sizes, group=group)
    first, second = (mine(r).split(s)[place] for r, s in zip(ranks, ([1, 3], [2, 2]), strict=True))
    assert torch.equal(uneven, torch.cat([first, second]))
    found = [None, None]
    dist.all_gather_object(found, {"rank": rank}, group=group)
    assert found == [{"rank": r} for r in ranks]


def check_messages_inside_a_group(rank, size):
    group, ranks = pair(rank)
    place = ranks.index(rank)
    x = torch.zeros(4)
    if place == 0:
        dist.send(mine(rank), ranks[1], group=group)
        dist.recv(x, group_src=1, group=group)
    else:
        dist.recv(x, ranks[0], group=group)
        dist.send(mine(rank), group_dst=0, group=group)
    assert torch.equal(x, mine(ranks[1 - place]))
    works = dist.batch_isend_irecv(
        [
            dist.P2POp(dist.isend, mine(rank), group=group, group_peer=1 - place),
            dist.P2POp(dist.irecv, x.zero_(), ranks[1 - place], group),
        ]
    )
    for work in works:
        work.wait()
    assert torch.equal(x, mine(ranks[1 - place]))
    objects = [None]
    if place == 0:
        dist.send_object_list([rank], ranks[1], group=group)
    else:
        dist.recv_object_list(objects, ranks[0], group=group)
        assert objects == [ranks[0]]


def check_subgroups(rank, size):
    own, groups = dist.new_subgroups(2)
    assert [dist.get_process_group_ranks(g) for g in groups if g is own] == [[0, 1] if rank < 2 else [2, 3]]
    assert len(groups) == 2
    x = mine(rank)
    dist.all_reduce(x, group=own)
    assert torch.equal(x, mine(0) + mine(1) if rank < 2 else mine(2) + mine(3))
    own, groups = dist.new_subgroups_by_enumeration([[3, 0], [1]])
    assert len(groups) == 2 and (own is None) == (rank == 2)
    if rank in (0, 3):
        x = mine(rank)
        dist.all_reduce(x, group=own)
        assert torch.equal(x, mine(0) + mine(3))
    for wrong, text in ((3, "divisible"), (5, "exceed"), (0, "positive"), (None, "Default group size")):
        raises(ValueError, text, dist.new_subgroups, wrong)
    own, groups = dist.new_subgroups(4)
    assert len(groups) == 1 and dist.get_world_size(own) == 4
    raises(ValueError, "Rank 1 has appeared", dist.new_subgroups_by_enumeration, [[0, 1], [1, 2]])
    raises(ValueError, "cannot be empty", dist.new_subgroups_by_enumeration, [])


def check_who_is_outside(rank, size):
    group = dist.new_group([0, 3])
    x = mine(rank)
    if rank in (0, 3):
        dist.all_reduce(x, group=group)
        assert torch.equal(x, mine(0) + mine(3))
        raises(ValueError, "", dist.broadcast, x, 1, group=group)
    else:
        dist.all_reduce(x, group=group)  # PyTorch warns and does nothing
        assert torch.equal(x, mine(rank))
    dist.barrier(group=dist.group.WORLD)


def _stepped(rank, hook, state, steps=1, **options):
    """The gradients of a model with one weight matrix (3, 4). On rank r its gradient is 10 ** r times a matrix."""
    model = nn.Linear(4, 3, bias=False)
    nn.init.ones_(model.weight)
    model = DDP(model, **options)
    if hook is not None:
        model.register_comm_hook(state, hook)
    for _ in range(steps):
        model.zero_grad()
        model(torch.ones(1, 4) * 2.0**rank).mul(torch.tensor([1.0, 2.0, 4.0])).sum().backward()
    return model.module.weight.grad


def _gradient(ranks):
    """The sum of the gradients of the given ranks."""
    return torch.tensor([[1.0], [2.0], [4.0]]).expand(3, 4) * sum(2.0**r for r in ranks)


def check_what_gradients_are_divided_by(rank, size):
    group, ranks = pair(rank)
    everyone = _gradient(range(4)) / 4
    inside = _gradient(ranks) / 2
    assert torch.equal(_stepped(rank, None, None), everyone)
    assert torch.equal(_stepped(rank, None, None, process_group=group), inside)
    for hook in (
        default_hooks.allreduce_hook,
        default_hooks.fp16_compress_hook,
        default_hooks.bf16_compress_hook,
        default_hooks.fp16_compress_wrapper(default_hooks.allreduce_hook),
        default_hooks.bf16_compress_wrapper(default_hooks.allreduce_hook),
    ):
        assert torch.equal(_stepped(rank, hook, None), everyone)
        assert torch.equal(_stepped(rank, hook, group), inside)

    def scaled(factor, bucket):
        """As in Megatron-LM: gradients are multiplied by a factor and summed."""
        bucket.buffer().mul_(factor)
        return dist.all_reduce(bucket.buffer(), async_op=True).get_future().then(lambda f: f.value()[0])

    assert torch.equal(_stepped(rank, scaled, 0.5), everyone * 2)


def check_post_local_sgd(rank, size):
    group, ranks = pair(rank)
    Post = post_localSGD_hook.PostLocalSGDState
    hook = post_localSGD_hook.post_localSGD_hook
    everyone, inside = _gradient(range(4)) / 4, _gradient(ranks) / 2
    for steps, want in ((1, everyone), (2, everyone), (3, inside)):
        assert torch.equal(_stepped(rank, hook, Post(None, group, 2), steps), want)
    assert torch.equal(_stepped(rank, hook, Post(None, group, 2, False), 3), _gradient([rank]))
    state = Post(None, group, 0)
    _stepped(rank, hook, state, 3)
    assert state.iter == 3


def _low_rank(matrix, start, epsilon):
    """One power iteration from `start`, computed directly: matrix ~ p @ (matrix.T @ p).T, where p has orthonormal columns."""
    p = matrix @ start
    if epsilon:
        columns = []
        for column in p.unbind(1):
            for other in columns:
                column = column - (column @ other) * other
            columns.append(column / (column.norm() + epsilon))
        p = torch.stack(columns, 1)
    else:
        p = torch.linalg.qr(p)[0]
    return p @ (matrix.t() @ p).t()


def check_power_sgd_by_hand(rank, size):
    Power = powerSGD_hook.PowerSGDState
    for epsilon in (0.0, 1e-8):
        options = {"use_error_feedback": False, "warm_start": False, "start_powerSGD_iter": 0}
        state = Power(None, 1, orthogonalization_epsilon=epsilon, min_compression_rate=1, **options)
        # The gradient has rank one: any start gives it back.
        assert torch.allclose(_stepped(rank, powerSGD_hook.powerSGD_hook, state), _gradient(range(4)) / 4)
        state = Power(
            None, 1, min_compression_rate=1.8, **options
        )  # 7 numbers instead of 12 is less than 1.8 times
        assert torch.equal(_stepped(rank, powerSGD_hook.powerSGD_hook, state), _gradient(range(4)) / 4)
    generator = torch.Generator().manual_seed(5)
    matrix, start = torch.randn(6, 5, generator=generator), torch.randn(5, 2, generator=generator)
    for epsilon in (0, 1e-8, 0.5):
        found = powerSGD_hook._orthogonalized(matrix @ start, epsilon)
        product = found @ (matrix.t() @ found).t()
        assert torch.allclose(product, _low_rank(matrix, start, epsilon), atol=1e-5), epsilon
    raises(ValueError, "> 1", Power, None, start_powerSGD_iter=1, use_error_feedback=False)
    raises(ValueError, "> 1", Power, None, start_powerSGD_iter=1, warm_start=False)
    Power(None, start_powerSGD_iter=2)


def check_averages_of_parameters(rank, size):
    group, ranks = pair(rank)
    for kwargs, want in (({}, 3.75), ({"process_group": group}, sum(2.0**r for r in ranks) / 2)):
        averager = averagers.PeriodicModelAverager(period=2, warmup_steps=3, **kwargs)
        values = []
        for _ in range(7):
            p = nn.Parameter(torch.full((2,), 2.0**rank))
            p.grad = torch.zeros(2)  # what has no gradient is left alone
            averager.average_parameters([p])
            values.append(p[0].item())
        plain = 2.0**rank
        assert values == [plain, plain, plain, want, plain, want, plain], values
    raises(ValueError, "period", averagers.PeriodicModelAverager, 0)
    raises(ValueError, "warmup_steps", averagers.PeriodicModelAverager, 1, -1)


# ---- collectives that return new tensors, and their gradients
def check_functional_collectives(rank, size):
    group, ranks = pair(rank)
    place = ranks.index(rank)
    x = mine(rank, 6).reshape(2, 3)
    total = sum(mine(r, 6).reshape(2, 3) for r in ranks)
    for given in (group, init_device_mesh("cpu", (2, 2), mesh_dim_names=("a", "b"))["a"]):
        assert fc.all_reduce(x, "sum", given).equal(total) and x.equal(mine(rank, 6).reshape(2, 3))
        assert fc.all_reduce(x, dist.ReduceOp.MAX, given).equal(mine(ranks[1], 6).reshape(2, 3))
        assert fc.broadcast(x, 1, given).equal(mine(ranks[1], 6).reshape(2, 3))
        for dim in (0, 1):
            whole = torch.cat([mine(r, 6).reshape(2, 3) for r in ranks], dim)
            assert fc.all_gather_tensor(x, dim, given).equal(whole)
        assert fc.reduce_scatter_tensor(x, "avg", 0, given).equal(total[place : place + 1] / 2)
        wide = mine(rank, 8).reshape(2, 4)
        share = sum(mine(r, 8).reshape(2, 4) for r in ranks)[:, 2 * place : 2 * place + 2]
        assert fc.reduce_scatter_tensor(wide, "sum", 1, given).equal(share)
        assert fc.wait_tensor(x) is x and fc.is_torchdynamo_compiling() is False
    moved = fc.all_to_all_single(x, None, None, group)
    assert moved.equal(torch.stack([mine(r, 6).reshape(2, 3)[place] for r in ranks]))
    rows = mine(rank, 9).reshape(3, 3)
    parts = [[1, 2], [2, 1]][place]
    got = fc.all_to_all_single(rows, [parts[0], 3 - parts[0]] if place == 0 else [2, 1], parts, group)
    want = [mine(r, 9).reshape(3, 3)[:1] if place == 0 and r == ranks[0] else None for r in ranks]
    assert got.shape == (3, 3) and (want[0] is None or got[:1].equal(want[0]))
    raises(NotImplementedError, "this kind of group", fc.all_reduce, x, "sum", [0, 1])
    raises(NotImplementedError, "gradient of", fc.reduce_scatter_tensor_autograd, x, "max", 0, group)


def check_gradients_of_collectives(rank, size):
    """The gradient of a sum over all ranks of (result * weight), which is known for each collective."""
    group, ranks = pair(rank)
    place, other = ranks.index(rank), ranks[1 - ranks.index(rank)]

    def gradient(function, weight, count=4):
        x = mine(rank, count).reshape(2, -1).requires_grad_()
        out = function(x)
        (out * weight(rank, out.shape)).sum().backward()
        return x.grad

    def weight(r, shape):
        return (torch.arange(1.0, shape.numel() + 1) + 10 * r).reshape(shape)

    own = torch.Size([2, 2])
    both = weight(rank, own) + weight(other, own)
    assert gradient(lambda x: dnn.all_reduce(x, group=group), weight).equal(both)
    grad = gradient(lambda x: dnn.broadcast(x, ranks[1], group), weight)
    assert grad.equal(both if place == 1 else torch.zeros(2, 2))
    grad = gradient(lambda x: torch.cat(dnn.all_gather(x, group)), weight)
    cat = torch.Size([4, 2])
    whole = weight(rank, cat) + weight(other, cat)
    assert grad.equal(whole[2 * place : 2 * place + 2])
    assert gradient(lambda x: fc.all_gather_tensor_autograd(x, 0, group), weight).equal(grad)
    half = torch.Size([1, 2])
    pieces = torch.cat([weight(r, half) for r in ranks])
    assert gradient(lambda x: fc.reduce_scatter_tensor_autograd(x, "sum", 0, group), weight).equal(pieces)
    assert gradient(lambda x: fc.reduce_scatter_tensor_autograd(x, "avg", 0, group), weight).equal(pieces / 2)
    grad = gradient(lambda x: fc.all_to_all_single_autograd(x, None, None, group), weight)
    assert grad.equal(torch.stack([weight(r, own)[place] for r in ranks]))

    def exchanged(x):
        return torch.cat(dnn.all_to_all([torch.empty(1, 2) for _ in ranks], list(x.split(1)), group))

    assert gradient(exchanged, weight).equal(grad)
    assert exchanged(mine(rank).reshape(2, 2)).equal(
        torch.stack([mine(r).reshape(2, 2)[place] for r in ranks])
    )


def check_gradients_of_collectives_with_a_root(rank, size):
    """Twice differentiated: the loss is the sum of (result * weight) squared, and the gradient's own sum is taken back."""
    group, ranks = pair(rank)
    place, root = ranks.index(rank), ranks[1]

    def weight(r):
        return torch.arange(1.0, 5.0).double().reshape(2, 2) + 10 * r

    def back(function, x):
        """Return the result, the gradient, and the gradient of the gradient's sum."""
        x = x.clone().requires_grad_()
        out = function(x)
        (grad,) = torch.autograd.grad(((out * weight(rank)) ** 2).sum(), x, create_graph=True)
        (second,) = torch.autograd.grad(grad.sum(), x)
        return out.detach(), grad.detach(), second

    own = [mine(r).double().reshape(2, 2) for r in ranks]
    zeros = torch.zeros_like(own[0])
    seconds = [2 * weight(r) ** 2 for r in ranks]

    # the root gets the sum, and its gradient goes to all; the other keeps its own numbers, without a gradient
    out, grad, second = back(lambda x: dnn.reduce(x, root, dist.ReduceOp.SUM, group), own[place])
    total = own[0] + own[1]
    if place == 1:
        assert out.equal(total)
    assert grad.equal(seconds[1] * total)
    assert second.equal(2 * seconds[1])  # what all ranks ask about the root's gradient is added

    # the root gets all tensors, the other zeros
    pieces = dnn.gather(own[place], root, group)
    assert all(p.equal(o if place == 1 else zeros) for p, o in zip(pieces, own, strict=True))
    out, grad, second = back(lambda x: sum(dnn.gather(x, root, group)), own[place])
    assert out.equal(total if place == 1 else zeros)
    assert grad.equal(seconds[1] * total)

    # each gets one of the root's tensors; the other's tensors have no part in it
    out, grad, second = back(
        lambda x: dnn.scatter(list(x.split(2)), root, group), torch.cat(own) * (rank + 1)
    )
    assert out.equal(own[place] * (root + 1))
    wanted = torch.cat([s * o * (root + 1) for s, o in zip(seconds, own, strict=True)])
    assert grad.equal(wanted if place == 1 else torch.cat([zeros, zeros]))
    try:
        dnn.scatter([torch.ones(2), torch.ones(3)], root, group)
    except AssertionError:
        pass
    else:
        raise AssertionError("tensors of different shapes were scattered")

    # each gets a sum of parts
    parts = [torch.cat([o, o + k]) for k, o in enumerate(own, 1)]
    out, grad, second = back(
        lambda x: dnn.reduce_scatter(torch.empty_like(zeros), list(x.split(2)), dist.ReduceOp.SUM, group),
        parts[place],
    )
    sums = [own[0] + own[1], own[0] + own[1] + 3]
    assert out.equal(sums[place])
    assert grad.equal(torch.cat([s * t for s, t in zip(seconds, sums, strict=True)]))
    assert second.equal(2 * torch.cat(seconds))

    # two gradients of what is given to all
    _, grad, second = back(lambda x: torch.stack(dnn.all_gather(x, group)).sum(0), own[place])
    assert grad.equal((seconds[0] + seconds[1]) * total) and second.equal(2 * (seconds[0] + seconds[1]))

    # parts of different sizes: three rows and one go to one rank, one and three to the other
    given, taken = ([3, 1], [3, 1]) if place == 0 else ([1, 3], [1, 3])
    x = torch.arange(4.0).reshape(4, 1).add(10 * place).requires_grad_()
    out = dnn.all_to_all_single(torch.empty(4, 1), x, taken, given, group)
    kept = [[0.0, 1, 2, 10], [3, 11, 12, 13]][place]
    assert out.flatten().tolist() == kept
    (out * torch.arange(1.0, 5.0).reshape(4, 1) * 10**place).sum().backward()
    assert x.grad.flatten().tolist() == [[1, 2, 3, 10], [4, 20, 30, 40]][place]


def check_several_tensors_at_once(rank, size):
    group, ranks = pair(rank)
    a, b = mine(rank), mine(rank, 2) * 2
    work = dist.all_reduce_coalesced([a, b], group=group, async_op=True)
    assert work.wait()
    assert a.equal(sum(mine(r) for r in ranks)) and b.equal(2 * sum(mine(r, 2) for r in ranks))
    single = mine(rank)
    assert dist.all_reduce_coalesced(single, dist.ReduceOp.MIN, group) is None and single.equal(
        mine(ranks[0])
    )
    raises(TypeError, "tensors", dist.all_reduce_coalesced, [1], group=group)
    outs = [[torch.zeros(4), torch.zeros(2)] for _ in ranks]
    dist.all_gather_coalesced(outs, [mine(rank), mine(rank, 2)], group)
    for r, found in zip(ranks, outs, strict=True):
        assert found[0].equal(mine(r)) and found[1].equal(mine(r, 2))
    raises(TypeError, "device_ids", dist.barrier, group, device_ids=3)
    dist.barrier(group, device_ids=[rank])


def check_broadcast_in_buckets(rank, size):
    group, ranks = pair(rank)
    lengths = (3, 5, 1, 7)
    for buffer in (1, 24, 40, 1 << 20):
        sent = []
        plain = dist.collectives.broadcast
        dist.collectives.broadcast = lambda flat, plain=plain, sent=sent, **k: (
            sent.append(flat.nbytes) or plain(flat, **k)
        )
        try:
            given = [mine(rank, n) + n for n in lengths] + [mine(rank, 2).long()]
            dist._broadcast_coalesced(group, given, buffer, 1)
        finally:
            dist.collectives.broadcast = plain
        for t, n in zip(given, lengths, strict=False):
            assert t.equal(mine(ranks[1], n) + n)
        assert given[4].equal(mine(ranks[1], 2).long())
        assert (
            sent
            == {1: [12, 20, 4, 28, 16], 24: [12, 24, 28, 16], 40: [36, 28, 16], 1 << 20: [64, 16]}[buffer]
        ), sent


def check_methods_of_groups(rank, size):
    group, ranks = pair(rank)
    other = 1 - ranks.index(rank)
    t, u = mine(rank), mine(rank)

    class Options:
        reduceOp, rootRank = dist.ReduceOp.MAX, 1

    group.allreduce(t).wait()
    assert t.equal(sum(mine(r) for r in ranks))
    group.allreduce([mine(rank), u], Options).wait()
    assert u.equal(mine(ranks[1]))
    t, u = mine(rank), mine(rank)
    group.broadcast(t, root=1).wait(), group.broadcast([mine(rank), u], Options).wait()
    assert t.equal(mine(ranks[1])) and u.equal(t)
    group.broadcast(t * 0 + rank).wait()
    outs = [torch.zeros(4), torch.zeros(4)]
    group.allgather([outs], [mine(rank)]).wait()
    assert all(o.equal(mine(r)) for o, r in zip(outs, ranks, strict=True))
    flat, part = torch.zeros(8), torch.zeros(2)
    group._allgather_base(flat, mine(rank)).wait()
    assert flat.equal(torch.cat([mine(r) for r in ranks]))
    for options, want in ((None, sum(mine(r) for r in ranks)), (Options, mine(ranks[1]))):
        group._reduce_scatter_base(part, mine(rank), options).wait()
        assert part.equal(want[2 * (1 - other) : 2 * (1 - other) + 2])
    received = torch.zeros(4)
    works = [group.send([mine(rank)], other, 3), group.recv([received], other, 3)]
    assert all(w.wait() for w in works) and received.equal(mine(ranks[other]))
    group.barrier().wait()
    assert "of 2" in repr(group)
    for _ in range(
        3
    ):  # the program waits for none, or only for the last: the messages arrive, and no memory is freed too early
        kept = torch.ones(1000)
        group.allreduce([mine(rank, 1000), mine(rank, 1000), kept]).wait()
        assert kept.eq(2).all()
        group.allgather([outs] * 2, [mine(rank)] * 2), group.broadcast([mine(rank, 500), u])
        group.send([mine(rank)], other, 4), group.recv([received], other, 4).wait()
        del kept
        gc.collect()


def check_members_in_the_given_order(rank, size):
    ranks = [2, 0, 3]
    group = dist.new_group(ranks, sort_ranks=False)
    turned = dist.new_group([3, 2, 1, 0], sort_ranks=False)
    everyone = torch.zeros(4)
    dist.all_gather_single(everyone, torch.full((1,), float(rank)), group=turned)
    assert everyone.tolist() == [3, 2, 1, 0] and dist.get_rank(turned) == 3 - rank
    if rank not in ranks:
        return
    place = ranks.index(rank)
    assert dist.get_rank(group) == place and dist.get_process_group_ranks(group) == ranks
    parts = [torch.zeros(2) for _ in ranks]
    dist.all_gather(parts, torch.full((2,), float(rank)), group=group)
    assert [part[0].item() for part in parts] == ranks
    x = torch.full((2,), float(rank))
    dist.broadcast(x, 3, group=group)
    assert x.tolist() == [3, 3]
    dist.scatter(x, [torch.full((2,), 10.0 * r) for r in ranks] if rank == 2 else None, 2, group=group)
    assert x.tolist() == [10 * rank] * 2
    own = torch.zeros(1)
    dist.reduce_scatter_single(own, torch.tensor([1.0, 2.0, 3.0]), group=group)
    assert own.item() == 3 * (place + 1)
    sent, received = torch.full((1,), float(rank)), torch.zeros(1)
    work = dist.isend(sent, group=group, group_dst=(place + 1) % 3)
    dist.recv(received, group=group, group_src=(place - 1) % 3)
    work.wait()
    assert received.item() == ranks[place - 1]


def check_a_barrier_with_a_timeout_of_its_own(rank, size):
    group = dist.new_group(list(range(size)))  # a group of its own, because it cannot be used afterwards
    dist.barrier(group, timeout=timedelta(seconds=60))
    if rank == 0:
        work = dist.barrier(group, async_op=True, timeout=timedelta(seconds=1))
        raises(dist.DistBackendError, "Timeout(ms)=1000", work.wait)
    dist.barrier()


def check_groups_from_groups(rank, size):
    parent = dist.new_group([3, 1, 2, 0])
    own = dist.split_group(parent, [[0, 3], [1, 2]])
    assert dist.get_process_group_ranks(own) == ([0, 3] if rank in (0, 3) else [1, 2])
    raises(ValueError, "split_ranks", dist.split_group, parent)
    name = dist.distributed_c10d._get_process_group_name(own)
    assert dist.distributed_c10d._resolve_process_group(name) is own
    assert dist.distributed_c10d._get_process_group_name(object()) == "None"
    group, ranks = pair(rank)
    mesh = DeviceMesh.from_group(group, "cpu", mesh_dim_names=("x",))
    assert mesh.get_group() is group and mesh._ranks == ranks and mesh["x"] is mesh and mesh.size() == 2
    both = init_device_mesh("cpu", (2, 2), mesh_dim_names=("a", "b"))
    groups = [both.get_group("a"), both.get_group("b")]
    again = DeviceMesh.from_group(groups, "cpu", [[0, 1], [2, 3]], mesh_dim_names=("a", "b"))
    assert again == both and [again.get_group(d) for d in (0, 1)] == groups
    raises(ValueError, "Must pass mesh", DeviceMesh.from_group, groups, "cpu")
    raises(ValueError, "ndim equal", DeviceMesh.from_group, groups, "cpu", [0, 1, 2, 3])
    known = dist.device_mesh._mesh_resources
    assert known.get_root_mesh_dim(both["b"]) == 1 and known.get_root_mesh_dim(both["a"]) == 0
    assert known.get_root_mesh_dim(both) is None and known.get_mesh_dim_by_name(both, "b") == 1
    slices = known._get_all_submeshes(both, "b")
    assert [m._ranks for m in slices] == [[0, 1], [2, 3]] and slices[rank // 2] == both["b"]
    assert slices[rank // 2].get_group() is both.get_group("b") and known.get_root_mesh(both["a"]) is both
    flat = both._flatten()
    assert flat.mesh_dim_names == ("a_b",) and both["a_b"] is flat and flat.get_group() is dist.group.WORLD
    line = both["b"]
    assert line._flatten() is line and line._flatten("b") is line
    renamed = line._flatten("c")
    assert (
        renamed.get_group()._ranks == line._ranks and both["c"] is renamed and line._flatten("c") is renamed
    )


def check_state_dicts_of_sharded_models(rank, size):
    """Everything that the get_ and set_ functions promise, compared with the whole model on every rank."""
    from torch.distributed.checkpoint import state_dict as sd
    from torch.distributed.fsdp import fully_shard

    def made(seed):
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 4))

    def trained(model, optimizer):
        model(torch.ones(2, 4)).square().sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    mesh = init_device_mesh("cpu", (size,))
    alone = made(1)
    model = fully_shard(made(1), mesh=mesh)
    first, second = torch.optim.Adam(alone.parameters(), 0.1), torch.optim.Adam(model.parameters(), 0.1)
    trained(alone, first), trained(model, second)
    full = sd.StateDictOptions(full_state_dict=True)
    whole = sd.get_model_state_dict(model, options=full)
    for name, value in alone.state_dict().items():
        assert torch.allclose(whole[name], value, atol=1e-6), name
    sharded = sd.get_model_state_dict(model)
    assert all(v.placements == (dist.tensor.Shard(0),) for v in sharded.values())
    offloaded = sd.StateDictOptions(full_state_dict=True, cpu_offload=True)
    assert bool(sd.get_model_state_dict(model, options=offloaded)) == (rank == 0)
    state = sd.get_optimizer_state_dict(model, second, options=full)
    averages = {n: first.state[p]["exp_avg"] for n, p in alone.named_parameters()}
    for name, value in averages.items():
        assert torch.allclose(state["state"][name]["exp_avg"], value, atol=1e-6)
    spread = sd.StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
    for flat in (False, True):
        spread.flatten_optimizer_state_dict = full.flatten_optimizer_state_dict = flat
        state = sd.get_optimizer_state_dict(model, second, options=full)
        fresh = fully_shard(made(2), mesh=mesh)
        third = torch.optim.Adam(fresh.parameters(), 0.3)
        sd.set_model_state_dict(fresh, whole if rank == 0 else {}, options=spread)
        sd.set_optimizer_state_dict(fresh, third, state if rank == 0 else {}, options=spread)
        assert third.param_groups[0]["lr"] == 0.1
        back = sd.get_optimizer_state_dict(fresh, third, options=sd.StateDictOptions(full_state_dict=True))
        for name, value in averages.items():
            assert torch.allclose(back["state"][name]["exp_avg"], value, atol=1e-6)
        for name, value in alone.state_dict().items():
            assert torch.allclose(sd.get_model_state_dict(fresh, options=full)[name], value, atol=1e-6)
