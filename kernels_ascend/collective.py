"""Matrix products fused with communication. On the CPU, the product and the collective run one after the other."""

from __future__ import annotations

import msadapter
from msadapter.ops import on_ascend, t

from ._mapping import ascend, without_derivative
from .grouped import npu_grouped_matmul
from .quantized import dequantized_weight, whole_product

SUM = 0  # MindSpore expects a reduction as a number


def _group(name: str, world_size: int):
    """The process group with this communicator name; None in a program of one process."""
    from msadapter import distributed

    if world_size == 1:
        return None
    group = distributed.distributed_c10d._resolve_process_group(name)
    if group.size() != world_size:
        raise RuntimeError(
            f"the process group {name!r} has {group.size()} processes, but the call says {world_size}"
        )
    return group


def _no_bias(bias) -> None:
    if bias is not None and bool((bias != 0).any()):
        raise NotImplementedError(
            "torch_npu: a bias in a product fused with communication is not supported (docs/coverage.md)"
        )


def _gathered(x, group, world_size: int):
    if group is None:
        return x
    from msadapter import distributed

    out = x.new_empty(world_size * x.shape[0], *x.shape[1:])
    distributed.all_gather_single(out, x.contiguous(), group=group)
    return out


def _scattered(x, group, world_size: int):
    if group is None:
        return x
    from msadapter import distributed

    if x.shape[0] % world_size:
        raise RuntimeError(f"{x.shape[0]} rows cannot be divided among {world_size} processes")
    out = x.new_empty(x.shape[0] // world_size, *x.shape[1:])
    distributed.reduce_scatter_single(out, x.contiguous(), group=group)
    return out


def _reduced(x, group):
    if group is not None:
        from msadapter import distributed

        distributed.all_reduce(x, group=group)
    return x


def _no_scales(*scales) -> None:
    if any(one is not None for one in scales):
        raise NotImplementedError(
            "torch_npu: quantized operands of a product fused with communication are not supported (docs/coverage.md)"
        )


def _no_count_tensors(*counts) -> None:
    if any(one is not None for one in counts):
        raise NotImplementedError(
            "torch_npu: counts of an exchange as tensors are not supported, only as lists (docs/coverage.md)"
        )


def _only_sum(reduce_op: str) -> None:
    if reduce_op != "sum":
        raise NotImplementedError(
            f"torch_npu: reduce_op {reduce_op!r} is not supported, only 'sum' (docs/coverage.md)"
        )


@without_derivative
def npu_all_gather_base_mm(input, x2, hcom, world_size, bias=None, x1_scale=None, x2_scale=None,
        gather_index=0, gather_output=True, comm_turn=0):  # fmt: skip
    """Returns (gather(input) @ x2, gather(input)). With gather_index 1, x2 is gathered instead of input.

    Args:
        input: (m, k). x2: (k, n). hcom: the communicator's name. gather_output: if False, the second result is empty.
    """
    _no_bias(bias)
    _no_scales(x1_scale, x2_scale)
    if gather_index not in (0, 1):
        raise RuntimeError(f"npu_all_gather_base_mm: gather_index must be 0 or 1, but got {gather_index}")
    if on_ascend(input):
        return ascend(
            "AllGatherMatmul",
            input=input,
            x2=x2,
            group=hcom,
            world_size=world_size,
            bias=None,
            gather_index=gather_index,
            gather_output=gather_output,
            comm_turn=comm_turn,
            trans_input=False,
            trans_x2=False,
        )
    group = _group(hcom, world_size)
    gathered = _gathered(x2 if gather_index else input, group, world_size)
    out = t.matmul(input, gathered) if gather_index else t.matmul(gathered, x2)
    return out, gathered if gather_output else input.new_empty(0)


@without_derivative
def npu_mm_reduce_scatter_base(
    input, x2, hcom, world_size, reduce_op="sum", bias=None, x1_scale=None, x2_scale=None, comm_turn=0
):
    """Reduce-scatters input @ x2: sums over the processes and returns this process's rows of the sum."""
    _no_bias(bias)
    _no_scales(x1_scale, x2_scale)
    _only_sum(reduce_op)
    if on_ascend(input):
        return ascend(
            "MatmulReduceScatter",
            input=input,
            x2=x2,
            group=hcom,
            world_size=world_size,
            reduce_op=SUM,
            bias=None,
            comm_turn=comm_turn,
            trans_input=False,
            trans_x2=False,
        )
    return _scattered(t.matmul(input, x2), _group(hcom, world_size), world_size)


def all_reduce(x, hcom, reduce_op="sum"):
    """The sum of x over the processes of the communicator. In a program of one process this is x itself."""
    from msadapter import distributed

    _only_sum(reduce_op)
    ready = distributed.is_available() and distributed.is_initialized()
    alone = not ready or distributed.get_world_size() == 1
    return _reduced(x, None if alone else distributed.distributed_c10d._resolve_process_group(hcom))


@without_derivative
def npu_mm_all_reduce_base(x1, x2, hcom, *, reduce_op='sum', bias=None, antiquant_scale=None,
        antiquant_offset=None, x3=None, dequant_scale=None, pertoken_scale=None, comm_quant_scale_1=None,
        comm_quant_scale_2=None, comm_turn=0, antiquant_group_size=0):  # fmt: skip
    """The sum of x1 @ x2 (+ bias) (+ x3) over the processes of the communicator.

    Args:
        x1: (m, k) or (b, m, k). x2: (k, n). Both are float, or both int8 with dequant_scale (see `whole_product`), or x1
            is float and x2 int8 with antiquant_scale (see `dequantized_weight`).
    """
    if comm_quant_scale_1 is not None or comm_quant_scale_2 is not None:
        raise NotImplementedError(
            "torch_npu: a communication in eight bits (comm_quant_scale) is not supported (docs/coverage.md)"
        )
    if dequant_scale is not None:
        out = whole_product(x1, x2, dequant_scale, bias, pertoken_scale)
    else:
        if antiquant_scale is not None:
            x2 = dequantized_weight(x2, antiquant_scale, antiquant_offset, x1.dtype, antiquant_group_size)
        out = t.matmul(x1, x2)
        out = out if bias is None else out + bias
    return all_reduce(out if x3 is None else out + x3, hcom, reduce_op)


@without_derivative
def npu_mm_all_reduce_add_rms_norm(x1, x2, residual, gamma, hcom, reduce_op='sum', epsilon=1e-06, bias=None,
        antiquant_scale=None, antiquant_offset=None, dequant_scale=None, antiquant_group_size=0,
        comm_turn=0):  # fmt: skip
    """Returns (y, norm) with y = npu_mm_all_reduce_base(x1, x2, ...) + residual and norm = RMS norm of y.

    Both have the shape of residual.
    """
    product = npu_mm_all_reduce_base(
        x1,
        x2,
        hcom,
        reduce_op=reduce_op,
        bias=bias,
        antiquant_scale=antiquant_scale,
        antiquant_offset=antiquant_offset,
        dequant_scale=dequant_scale,
        antiquant_group_size=antiquant_group_size,
    )
    y = product.reshape(residual.shape) + residual
    return y, t.torch_npu_npu_rms_norm(y, gamma, epsilon)[0]


def _exchanged(x, send: list[int], received: list[int], group, world_size: int):
    """All-to-all of rows. `send` and `received` are numbers of rows by (process, expert)."""
    if group is None:
        return x
    from msadapter import distributed

    experts = len(send) // world_size
    inputs, outputs = (
        [sum(counts[i : i + experts]) for i in range(0, len(counts), experts)] for counts in (send, received)
    )
    out = x.new_empty(sum(outputs), *x.shape[1:])
    distributed.all_to_all_single(out, x.contiguous(), outputs, inputs, group=group)
    return out


def _by_expert(x, counts: list[int], world_size: int, back: bool = False):
    """Reorders blocks of rows from (process, expert) to (expert, process) order; `back` does the inverse."""
    experts = len(counts) // world_size
    order = [p * experts + e for e in range(experts) for p in range(world_size)]
    if back:
        have = x.split([counts[i] for i in order])
        place = {i: n for n, i in enumerate(order)}
        return t.cat([have[place[i]] for i in range(len(counts))])
    have = x.split(counts)
    return t.cat([have[i] for i in order])


def _counts(given, world_size: int) -> list[int]:
    found = [int(n) for n in (given.tolist() if hasattr(given, "tolist") else given)]
    if not found or len(found) % world_size:
        raise RuntimeError(
            f"the counts {found} must be one number for each expert on each of the {world_size} processes"
        )
    return found


def _per_expert(counts: list[int], world_size: int) -> list[int]:
    experts = len(counts) // world_size
    return [sum(counts[e::experts]) for e in range(experts)]


def _second(mm_x, mm_weight, turned: bool):
    return None if mm_x is None else t.matmul(mm_x, mm_weight.t() if turned else mm_weight)


def _products(rows, weight, counts, world_size: int, turned: bool):
    """The product of each expert's weight with the rows of this expert."""
    weight = weight.transpose(1, 2) if turned else weight
    ends = _per_expert(counts, world_size)
    return npu_grouped_matmul(
        [rows], [weight], group_list=ends, split_item=3, group_type=0, group_list_type=1
    )[0]


@without_derivative
def npu_alltoallv_gmm(gmm_x, gmm_weight, hcom, ep_world_size, send_counts, recv_counts, *,
        send_counts_tensor=None, recv_counts_tensor=None, mm_x=None, mm_weight=None, trans_gmm_weight=False,
        trans_mm_weight=False, permute_out_flag=False):  # fmt: skip
    """Sends rows to the processes of their experts and computes each expert's product.

    Args:
        gmm_x: rows ordered by (process, expert of this process). gmm_weight: (experts of this process, k, n).
        send_counts, recv_counts: numbers of rows by (process, expert).
        mm_x, mm_weight: operands of a second product without communication.

    Returns:
        (gmm result, mm result or None, the received rows in the order of the experts or None)
    """
    _no_count_tensors(send_counts_tensor, recv_counts_tensor)
    sent, received = _counts(send_counts, ep_world_size), _counts(recv_counts, ep_world_size)
    rows = _exchanged(gmm_x, sent, received, _group(hcom, ep_world_size), ep_world_size)
    rows = _by_expert(rows, received, ep_world_size)
    out = _products(rows, gmm_weight, received, ep_world_size, trans_gmm_weight)
    return out, _second(mm_x, mm_weight, trans_mm_weight), rows if permute_out_flag else None


@without_derivative
def npu_gmm_alltoallv(gmm_x, gmm_weight, hcom, ep_world_size, send_counts, recv_counts, *,
        send_counts_tensor=None, recv_counts_tensor=None, mm_x=None, mm_weight=None, trans_gmm_weight=False,
        trans_mm_weight=False):  # fmt: skip
    """Computes each expert's product and sends the rows back to their processes. Returns (gmm result, mm result or None).

    gmm_x has rows ordered by expert. send_counts and recv_counts are those of npu_alltoallv_gmm.
    """
    _no_count_tensors(send_counts_tensor, recv_counts_tensor)
    sent, received = _counts(send_counts, ep_world_size), _counts(recv_counts, ep_world_size)
    rows = _products(gmm_x, gmm_weight, sent, ep_world_size, trans_gmm_weight)
    rows = _by_expert(rows, sent, ep_world_size, back=True)
    return _exchanged(rows, sent, received, _group(hcom, ep_world_size), ep_world_size), _second(
        mm_x, mm_weight, trans_mm_weight
    )


def _into(output, value) -> None:
    with msadapter.no_grad():
        output.copy_(value.reshape(output.shape))


def _two_lines(rank: int, ag_dim: int, rs_dim: int, inner_dim_is_ag: bool) -> tuple[list[int], list[int]]:
    """(ranks with which `rank` gathers, ranks with which it sums): its two lines in a grid of ag_dim x rs_dim ranks."""
    inner = ag_dim if inner_dim_is_ag else rs_dim
    row = [rank // inner * inner + i for i in range(inner)]
    column = list(range(rank % inner, ag_dim * rs_dim, inner))
    return (row, column) if inner_dim_is_ag else (column, row)


class Lcal:
    """The low-level operators of --use-ascend-coc, which write results to a tensor that the caller passes.

    `group(rank, size, domain)` returns a process group. It is not called in a program of one process.
    """

    def __init__(self, group):
        self.group = group

    def _of(self, rank, size, domain):
        return None if size == 1 else self.group(rank, size, domain)

    @staticmethod
    def _product(a, b, bias):
        out = t.matmul(a, b if a.shape[1] == b.shape[0] else b.t())
        return out if bias is None else out + bias

    def pure_matmul(self, input1, input2, bias, output, rank, rank_size, comm_domain) -> None:
        _into(output, self._product(input1, input2, bias))

    def matmul_all_reduce(self, input1, input2, bias, output, rank, rank_size, comm_domain) -> None:
        _into(output, _reduced(self._product(input1, input2, bias), self._of(rank, rank_size, comm_domain)))

    def all_gather_matmul(self, input1, input2, bias, output, rank, rank_size, comm_domain) -> None:
        gathered = _gathered(input1, self._of(rank, rank_size, comm_domain), rank_size)
        _into(output, self._product(gathered, input2, bias))

    def all_gather_matmul_v2(
        self, input1, input2, bias, output, comm_output, rank, rank_size, comm_domain
    ) -> None:
        gathered = _gathered(input1, self._of(rank, rank_size, comm_domain), rank_size)
        _into(comm_output, gathered)
        _into(output, self._product(gathered, input2, bias))

    def all_gather_matmul_reduce_scatter(
        self, input1, input2, bias, output, rank, rank_size, comm_domain, ag_dim, rs_dim, inner_dim_is_ag
    ) -> None:
        """Gathers rows over `ag_dim` processes, multiplies, and reduce-scatters the product over `rs_dim` processes.

        With inner_dim_is_ag, neighbouring ranks gather from one another; otherwise neighbouring ranks sum.
        """
        if ag_dim * rs_dim != rank_size:
            raise RuntimeError(
                f"ag_dim x rs_dim, {ag_dim} x {rs_dim}, must be the number of processes, {rank_size}"
            )
        group = self._of(rank, rank_size, comm_domain)
        line, across = _two_lines(rank, ag_dim, rs_dim, inner_dim_is_ag)
        whole = _gathered(input1, group, rank_size).split(len(input1))
        product = self._product(t.cat([whole[i] for i in line]), input2, bias)
        parts = _gathered(product, group, rank_size).split(len(product))
        own = [parts[i].chunk(rs_dim)[across.index(rank)] for i in across]
        _into(output, sum(own[1:], own[0]))

    def matmul_reduce_scatter(self, input1, input2, bias, output, rank, rank_size, comm_domain) -> None:
        product = self._product(input1, input2, bias)
        _into(output, _scattered(product, self._of(rank, rank_size, comm_domain), rank_size))
