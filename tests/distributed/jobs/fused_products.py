"""Products fused with communication, compared with the whole computation in float64, which every rank does
alone.
"""

import itertools
import math

import numpy as np
import torch
import torch.distributed as dist
import torch_npu

from kernels_ascend import collective, mindspeed

DTYPES = [torch.float32, torch.bfloat16, torch.float64]


def name_of(group=None):
    group = group or dist.group.WORLD
    return group._get_backend(torch.device("npu")).get_hccl_comm_name(dist.get_rank())


def numbers(seed, *shape, dtype=torch.float64):
    """Return the same numbers on every rank, representable in the dtype."""
    x = torch.tensor(np.random.default_rng(seed).standard_normal(shape)).to(dtype)
    return x.double().numpy()


def as_tensor(x, dtype):
    """Return a tensor that is not contiguous, because the operator must send contiguous memory."""
    x = torch.tensor(np.ascontiguousarray(x)).to(dtype)
    return x.transpose(0, 1).contiguous().transpose(0, 1)


def near(mine, want, dtype):
    """Compare sums of at most 60 products, with an error of one eps for each sum in the dtype."""
    atol = 16 * float(torch.finfo(dtype).eps) * max(1.0, np.abs(want).max(initial=0.0))
    assert mine.dtype == dtype, (mine.dtype, dtype)
    assert tuple(mine.shape) == want.shape, (tuple(mine.shape), want.shape)
    np.testing.assert_allclose(mine.detach().double().numpy(), want, rtol=0, atol=atol)


def check_gather_and_product(rank, size):
    for dtype, gather in itertools.product(DTYPES, (0, 1)):
        x = numbers(1, size, 3, 4, dtype=dtype)
        w = numbers(2, size, 4 // size if gather and 4 % size == 0 else 4, 5, dtype=dtype)
        if gather:  # rows of x2 come from all ranks
            if 4 % size:
                continue
            whole = np.concatenate(w)
            out, gathered = torch_npu.npu_all_gather_base_mm(
                as_tensor(x[rank], dtype), as_tensor(w[rank], dtype), name_of(), size, gather_index=1
            )
            near(out, x[rank] @ whole, dtype)
        else:
            whole = np.concatenate(x)
            out, gathered = torch_npu.npu_all_gather_base_mm(
                as_tensor(x[rank], dtype), as_tensor(w[0], dtype), name_of(), size
            )
            near(out, whole @ w[0], dtype)
        near(gathered, whole, dtype)


def check_product_and_scatter(rank, size):
    for dtype in DTYPES:
        x, w = numbers(3, size, 2 * size, 4, dtype=dtype), numbers(4, size, 4, 5, dtype=dtype)
        total = sum(a @ b for a, b in zip(x, w, strict=True))
        out = torch_npu.npu_mm_reduce_scatter_base(
            as_tensor(x[rank], dtype), as_tensor(w[rank], dtype), name_of(), size
        )
        near(out, total[2 * rank : 2 * rank + 2], dtype)
        out = torch_npu.npu_mm_all_reduce_base(
            as_tensor(x[rank], dtype), as_tensor(w[rank], dtype), name_of()
        )
        near(out, total, dtype)


def check_product_sum_and_norm(rank, size):
    x, w, r, gamma = numbers(5, size, 3, 4), numbers(6, size, 4, 5), numbers(7, 3, 5), numbers(8, 5)
    y = sum(a @ b for a, b in zip(x, w, strict=True)) + r
    normed = y / np.sqrt((y * y).mean(-1, keepdims=True) + 1e-6) * gamma
    tensors = [as_tensor(v, torch.float64) for v in (x[rank], w[rank], r)] + [torch.tensor(gamma)]
    run = mindspeed.load("npu_mm_all_reduce_add_rms_norm").npu_mm_all_reduce_add_rms_norm
    for mine, want in zip(run(*tensors, name_of()), (y, normed), strict=True):
        near(mine, want, torch.float64)
    run = mindspeed.load("npu_mm_all_reduce_add_rms_norm_").npu_mm_all_reduce_add_rms_norm_
    assert run(*tensors, name_of())[0] is tensors[2]
    near(tensors[2], y, torch.float64)


def check_groups_and_sum(rank, size):
    x, w = numbers(9, size, 5, 3), numbers(10, size, 2, 3, 4)
    total = sum(np.concatenate([a[:2] @ b[0], a[2:] @ b[1]]) for a, b in zip(x, w, strict=True))
    run = mindspeed.load("npu_grouped_mat_mul_all_reduce").npu_grouped_mat_mul_all_reduce
    weights = [torch.tensor(one) for one in w[rank]]
    found = run([torch.tensor(x[rank])], weights, [], [2, 5], 3, name_of(), "sum", 0)
    near(found[0], total, torch.float64)


def check_low_level_products(rank, size):
    ops = collective.Lcal(lambda *_: dist.group.WORLD)
    assert set(vars(mindspeed.load("lcal"))) <= set(dir(ops))
    x, w, bias = numbers(11, size, 2 * size, 4), numbers(12, size, 4, 5), numbers(13, 5)
    mine = as_tensor(x[rank], torch.float64), torch.tensor(w[rank]).t().contiguous()
    where = (rank, size, "domain")
    out = torch.zeros(2 * size, 5, dtype=torch.float64)
    ops.pure_matmul(*mine, torch.tensor(bias), out, *where)
    near(out, x[rank] @ w[rank] + bias, torch.float64)
    ops.matmul_all_reduce(*mine, None, out, *where)
    total = sum(a @ b for a, b in zip(x, w, strict=True))
    near(out, total, torch.float64)
    part = torch.zeros(2, 5, dtype=torch.float64)
    ops.matmul_reduce_scatter(*mine, None, part, *where)
    near(part, total[2 * rank : 2 * rank + 2], torch.float64)
    whole, kept = (
        torch.zeros(2 * size * size, 5, dtype=torch.float64),
        torch.zeros(2 * size * size, 4, dtype=torch.float64),
    )
    ops.all_gather_matmul(*mine, torch.tensor(bias), whole, *where)
    near(whole, np.concatenate(x) @ w[rank] + bias, torch.float64)
    ops.all_gather_matmul_v2(*mine, None, whole, kept, *where)
    near(whole, np.concatenate(x) @ w[rank], torch.float64)
    near(kept, np.concatenate(x), torch.float64)


def check_products_in_two_dimensions(rank, size):
    ops = collective.Lcal(lambda *_: dist.group.WORLD)
    for gathering in (1, 2, size):
        if size % gathering:
            continue
        adding = size // gathering
        for neighbours_gather in (True, False):
            inner = gathering if neighbours_gather else adding
            row, column = divmod(rank, inner)
            line = [row * inner + i for i in range(inner)]
            other = [i * inner + column for i in range(size // inner)]
            gather, add = (line, other) if neighbours_gather else (other, line)
            x, w = numbers(14, size, adding, 3), numbers(15, size, 3, 4)

            def product(i, inner=inner, neighbours_gather=neighbours_gather, x=x, w=w):
                r, c = divmod(i, inner)
                mates = (
                    [r * inner + k for k in range(inner)]
                    if neighbours_gather
                    else [k * inner + c for k in range(size // inner)]
                )
                return np.concatenate([x[k] for k in mates]) @ w[i]

            total = sum(product(i) for i in add)
            rows = len(total) // adding
            want = total[add.index(rank) * rows : (add.index(rank) + 1) * rows]
            out = torch.zeros(want.shape, dtype=torch.float64)
            assert len(gather) == gathering
            ops.all_gather_matmul_reduce_scatter(
                torch.tensor(x[rank]),
                torch.tensor(w[rank]),
                None,
                out,
                rank,
                size,
                "d",
                gathering,
                adding,
                neighbours_gather,
            )
            near(out, want, torch.float64)


def check_experts_and_exchange(rank, size):
    """The counts differ and some are 0. The second operator must bring the rows of the first one back."""
    experts = 2
    counts = np.random.default_rng(16).integers(0, 4, (size, size, experts))  # from, to, expert there
    counts[0, :, 1] = 0
    for dtype, turned in itertools.product(DTYPES, (False, True)):
        rows = [numbers(20 + r, int(counts[r].sum()), 3, dtype=dtype) for r in range(size)]
        weight = numbers(17, size, experts, 3, 4, dtype=dtype)
        at = [np.cumsum([0, *counts[r].ravel()]) for r in range(size)]

        def of(source, target, expert, at=at, rows=rows):
            i = target * experts + expert
            return rows[source][at[source][i] : at[source][i + 1]]

        by_expert = [np.concatenate([of(s, rank, e) for s in range(size)]) for e in range(experts)]
        sent, received = counts[rank].ravel().tolist(), counts[:, rank].ravel().tolist()
        w = weight[rank].transpose(0, 2, 1) if turned else weight[rank]
        more = numbers(18, 2, 3, dtype=dtype)
        out, extra, permuted = torch_npu.npu_alltoallv_gmm(
            torch.tensor(rows[rank]).to(dtype),
            torch.tensor(np.ascontiguousarray(w)).to(dtype),
            name_of(),
            size,
            sent,
            received,
            mm_x=torch.tensor(more).to(dtype),
            mm_weight=torch.tensor(weight[rank][0]).to(dtype),
            trans_gmm_weight=turned,
            permute_out_flag=True,
        )
        near(out, np.concatenate([x @ weight[rank][e] for e, x in enumerate(by_expert)]), dtype)
        near(permuted, np.concatenate(by_expert), dtype)
        near(extra, more @ weight[rank][0], dtype)
        back, none = torch_npu.npu_gmm_alltoallv(
            permuted,
            torch.tensor(np.ascontiguousarray(w)).to(dtype),
            name_of(),
            size,
            received,
            sent,
            trans_gmm_weight=turned,
        )
        want = [of(rank, r, e) @ weight[r][e] for r in range(size) for e in range(experts)]
        near(back, np.concatenate(want), dtype)
        assert none is None


def _groups(rank, ep, tp):
    """Return the expert group of this rank (neighbours) and its tensor parallel group."""
    mine = {}
    for i in range(tp):
        ranks = [i * ep + k for k in range(ep)]
        group = dist.new_group(ranks)
        mine.update({"ep": group} if rank in ranks else {})
    for i in range(ep):
        ranks = [k * ep + i for k in range(tp)]
        group = dist.new_group(ranks)
        mine.update({"tp": group} if rank in ranks else {})
    return name_of(mine["ep"]), name_of(mine["tp"])


def check_batched_products(rank, size):
    """Both fused products of expert and tensor parallel ranks, for every way to divide the ranks."""
    here, capacity, hidden, width = 2, 4, 4, 3
    erf = np.vectorize(math.erf)
    acts = [
        lambda x: x,
        lambda x: x * 0.5 * (1 + erf(x / 2**0.5)),
        lambda x: x / (1 + np.exp(-x)),
        lambda x: np.maximum(x, 0),
        lambda x: x / (1 + np.exp(-1.702 * x)),
    ]
    for ep in [n for n in (1, 2, size) if size % n == 0]:
        tp = size // ep
        names = _groups(rank, ep, tp)
        call = (names[0], ep, names[1], tp)
        t_rank, e_rank = divmod(rank, ep)
        experts = here * ep
        for dtype, shard in itertools.product((torch.float64, torch.bfloat16), (0, 1)):
            act = {
                (torch.float64, 0): 0,
                (torch.float64, 1): 2,
                (torch.bfloat16, 0): 1 if ep == 1 else 3,
                (torch.bfloat16, 1): 4,
            }[dtype, shard]
            tokens = numbers(30, ep, experts, capacity, hidden, dtype=dtype)  # of each ep rank, whole
            weight = numbers(31, experts, hidden, width, dtype=dtype)
            bias = numbers(32, experts, width, dtype=dtype)
            mine = tokens[e_rank]
            mine = np.split(mine, tp, 2 if shard == 0 else 1)[t_rank]
            own = slice(e_rank * here, e_rank * here + here)
            left = np.concatenate([tokens[s][own] for s in range(ep)], 1)
            product = left @ weight[own] + bias[own][:, None]
            y, gathered, kept = mindspeed.load("npu_alltoall_allgather_bmm").npu_alltoall_allgather_bmm(
                as_tensor(mine, dtype),
                as_tensor(weight[own], dtype),
                torch.tensor(bias[own]).to(dtype),
                *call,
                shard,
                act,
                True,
                True,
            )
            near(y, acts[act](product), dtype)
            near(gathered, left, dtype)
            near(kept, product, dtype)

            x = numbers(33, tp, experts, ep * capacity, width, dtype=dtype)  # columns of each tp rank
            w = numbers(34, tp, experts, width, hidden, dtype=dtype)
            total = sum(x[t] @ w[t] for t in range(tp))  # (E, ep * C, H)
            shift = numbers(35, experts, hidden, dtype=dtype)
            pieces = np.split(shift, tp, 1)[t_rank] if shard == 0 else shift
            total = total + shift[:, None]
            out = mindspeed.load("npu_bmm_reducescatter_alltoall").npu_bmm_reducescatter_alltoall(
                as_tensor(x[t_rank][own], dtype),
                as_tensor(w[t_rank][own], dtype),
                torch.tensor(np.ascontiguousarray(pieces[own])).to(dtype),
                *call,
                shard,
            )
            tokens_back = total[:, e_rank * capacity : (e_rank + 1) * capacity]
            near(out, np.split(tokens_back, tp, 2 if shard == 0 else 1)[t_rank], dtype)


def check_no_derivative(rank, size):
    x, w = torch.ones(2 * size, 3, requires_grad=True), torch.ones(3, 2, requires_grad=True)
    for run in (
        lambda: torch_npu.npu_all_gather_base_mm(x, w, name_of(), size)[0],
        lambda: torch_npu.npu_mm_reduce_scatter_base(x, w, name_of(), size),
        lambda: torch_npu.npu_mm_all_reduce_base(x, w, name_of()),
        lambda: mindspeed.load("npu_grouped_mat_mul_all_reduce").npu_grouped_mat_mul_all_reduce(
            [x], [w], [], None, 0, name_of(), "sum", 0
        )[0],
        lambda: mindspeed.load("npu_mm_all_reduce_add_rms_norm").npu_mm_all_reduce_add_rms_norm(
            x, w, torch.ones(2 * size, 2), torch.ones(2), name_of()
        )[1],
    ):
        out = run()
        assert out.requires_grad
        try:
            out.sum().backward()
        except NotImplementedError as error:
            assert "is not implemented" in str(error)  # noqa: PT017
        else:
            raise AssertionError("backward() answered")
        assert x.grad is None and w.grad is None
