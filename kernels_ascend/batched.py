"""Batched matrix products of experts, fused with communication over expert parallel (ep) and tensor parallel (tp) ranks.

MindSpore has no operator for these, so the product and the collectives run one after the other.
"""

from __future__ import annotations

from msadapter.ops import t

from ._mapping import without_derivative
from .attention_tiles import working
from .collective import _gathered, _group, _scattered

IN_HIDDEN, IN_CAPACITY = 0, 1  # the dimension that is divided among the tp ranks
_ACTIVATIONS = (
    lambda x: x,
    lambda x: t.gelu(x),
    lambda x: t.silu(x),
    lambda x: t.relu(x),
    lambda x: x * t.sigmoid(1.702 * x),
)


def _exchanged(x, group, size: int):
    """All-to-all: sends block i of the first dimension to process i."""
    if group is None:
        return x
    from msadapter import distributed

    if x.shape[0] % size:
        raise RuntimeError(f"{x.shape[0]} blocks cannot be divided among {size} processes")
    out = x.new_empty(x.shape)
    distributed.all_to_all_single(out, x.contiguous(), group=group)
    return out


def _check(x, weight, shard_type: int) -> None:
    if x.dim() != 3 or weight.dim() != 3:
        raise RuntimeError(
            f"x and weight must have 3 dimensions, but got {list(x.shape)} and {list(weight.shape)}"
        )
    if shard_type not in (IN_HIDDEN, IN_CAPACITY):
        raise RuntimeError(f"shard_type should be 0 or 1, but got {shard_type}")


def _biased(x, bias):
    """x + bias, computed in float32. bias is (E, N) or (E, 1, N)."""
    return x if bias is None else x + bias.to(x.dtype).reshape(x.shape[0], 1, x.shape[2])


@without_derivative
def npu_alltoall_allgather_bmm(
    x,
    weight,
    bias,
    group_ep,
    group_ep_worldsize,
    group_tp,
    group_tp_worldsize,
    shard_type=0,
    act_type=0,
    need_allgather_out=False,
    need_activation_feature=False,
):
    """Sends tokens to the ranks of their experts, gathers their parts from the tp ranks, and multiplies by the experts.

    Args:
        x: (E, C, H / tp) with shard_type 0, (E, C / tp, H) with 1. weight: (E / ep, H, M). bias: (E / ep, 1, M) or
            (E / ep, M). group_ep, group_tp: names of the communicators.
        act_type: the activation: 0 none, 1 gelu, 2 silu, 3 relu, 4 fast gelu.

    Returns:
        (activated product (E / ep, ep * C, M), left operand of the product (E / ep, ep * C, H) or None, product or None)

    Raises:
        RuntimeError: the shapes do not match, or shard_type or act_type is unknown.
    """
    _check(x, weight, shard_type)
    if act_type not in range(len(_ACTIVATIONS)):
        raise RuntimeError(f"act_type should be from 0 to 4, but got {act_type}")
    ep, tp = group_ep_worldsize, group_tp_worldsize
    rows = _exchanged(x, _group(group_ep, ep), ep)
    rows = rows.reshape(ep, -1, *x.shape[1:]).transpose(0, 1)  # (experts here, ep, C, H)
    parts = _gathered(rows.contiguous(), _group(group_tp, tp), tp).chunk(tp)
    left = t.cat(parts, 3 if shard_type == IN_HIDDEN else 2).flatten(1, 2)
    if left.shape[2] != weight.shape[1] or left.shape[0] != weight.shape[0]:
        raise RuntimeError(
            f"x gathered is {list(left.shape)}, which does not fit weight {list(weight.shape)}"
        )
    wide = working(x.dtype)
    product = _biased(t.bmm(left.to(wide), weight.to(wide)), bias)
    return (
        _ACTIVATIONS[act_type](product).to(x.dtype),
        left if need_allgather_out else None,
        product.to(x.dtype) if need_activation_feature else None,
    )


@without_derivative
def npu_bmm_reducescatter_alltoall(
    x, weight, bias, group_ep, group_ep_worldsize, group_tp, group_tp_worldsize, shard_type=0
):
    """Computes each expert's product, reduce-scatters it over the tp ranks, and sends it back to the ranks of the tokens.

    Args:
        x: (E / ep, ep * C, M / tp). weight: (E / ep, M / tp, H). bias: (E / ep, 1, H / tp), or (E / ep, 1, H) with
            shard_type 1.

    Returns:
        (E, C, H / tp) with shard_type 0, (E, C / tp, H) with 1.

    Raises:
        RuntimeError: the shapes do not match, or shard_type is unknown.
    """
    _check(x, weight, shard_type)
    ep, tp = group_ep_worldsize, group_tp_worldsize
    wide = working(x.dtype)
    product = t.bmm(x.to(wide), weight.to(wide))
    if x.shape[1] % ep or product.shape[2 if shard_type == IN_HIDDEN else 1] % (
        tp if shard_type == IN_HIDDEN else ep * tp
    ):
        raise RuntimeError(f"the product {list(product.shape)} cannot be divided among {ep} x {tp} processes")
    product = product.unflatten(1, (ep, -1))  # (experts here, ep, C, H)
    parts = product.chunk(tp, 3 if shard_type == IN_HIDDEN else 2)
    own = _scattered(t.cat(parts), _group(group_tp, tp), tp)
    own = _biased(own.flatten(1, 2), bias).to(x.dtype).unflatten(1, (ep, -1))
    back = _exchanged(own.transpose(0, 1).contiguous(), _group(group_ep, ep), ep)
    return back.flatten(0, 1)
