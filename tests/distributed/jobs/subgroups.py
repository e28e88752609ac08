"""Groups that are not all ranks, given in any order, and what averages over them divide by. Needs four ranks."""

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, post_localSGD_hook, powerSGD_hook
from torch.distributed.algorithms.model_averaging import averagers
from torch.nn.parallel import DistributedDataParallel as DDP


def raises(error, text, function, *args, **kwargs):
    try:
        function(*args, **kwargs)
    except error as caught:
        assert text in str(caught), caught
    else:
        raise AssertionError(f"no {error.__name__}")


def mine(rank, count=4):
    """Numbers that tell the ranks apart: 10 ** rank, twice that, ..."""
    return torch.arange(1.0, count + 1) * 10**rank


PAIRS = {0: [0, 2], 1: [1, 3], 2: [0, 2], 3: [1, 3]}


def pair(rank):
    """The group of ranks of the same parity, which every rank makes; and its ranks."""
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
    """Gradients of a model with one weight matrix (3, 4), whose gradient on rank r is 10 ** r times a matrix."""
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
    """The sum of the gradients of some ranks."""
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
        """As Megatron-LM: gradients are multiplied by a factor, and summed."""
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
    """One power iteration from `start`, by hand: matrix ~ p @ (matrix.T @ p).T with orthonormal columns of p."""
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
