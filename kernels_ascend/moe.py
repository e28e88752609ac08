"""Mixture of experts: permutes tokens into the order of their experts and back, by indices or by a routing map."""

from __future__ import annotations

import msadapter
from msadapter.ops import composite, on_ascend, op, recording, t

from ._mapping import ascend, no_derivative
from .attention_tiles import working


def _no_padding(padded_mode: bool) -> None:
    if padded_mode:
        raise RuntimeError("current version only support padded_mode is false")


def _where(sorted_indices, rows: int):
    """The target rows as indices, and a mask of those below `rows` (None if all are)."""
    places = sorted_indices.long()
    inside = places < rows
    return (places, None) if rows >= len(places) else (places.clamp(max=max(rows - 1, 0)), inside)


def _taken(x, sorted_indices):
    """x[sorted_indices], with zeros for indices beyond the end of x."""
    if not len(x):
        return x.new_zeros(len(sorted_indices), *x.shape[1:])
    places, inside = _where(sorted_indices, len(x))
    found = x.index_select(0, places)
    return found if inside is None else found * inside.unsqueeze(-1)


def _put(x, sorted_indices, rows: int):
    """The inverse of `_taken`: moves row i to row sorted_indices[i] and drops rows beyond the end."""
    out = x.new_zeros(max(rows, len(sorted_indices)), *x.shape[1:]).index_copy(0, sorted_indices.long(), x)
    return out[:rows]


def _permute_gradient(gs, tokens, indices, padded_mode, result1):
    if gs[0] is None:
        return None
    topk = indices.shape[1] if indices.dim() == 2 else 1
    if on_ascend(gs[0]) and not recording():
        return ascend(
            "MoeTokenPermuteGrad",
            permuted_tokens_grad=gs[0],
            sorted_indices=result1,
            num_topk=topk,
            padded_mode=padded_mode,
        )
    g = _taken(gs[0], result1)
    return g.reshape(-1, topk, g.shape[-1]).sum(1) if topk > 1 else g


@op(
    "torch_npu.npu_moe_token_permute(Tensor tokens, Tensor indices, int? num_out_tokens=None, bool padded_mode=False) "
    "-> (Tensor, Tensor)",
    forms="f",
    grad={"tokens": _permute_gradient},
)
def npu_moe_token_permute(tokens, indices, num_out_tokens, padded_mode):
    """Repeats each token for each of its experts and sorts the copies by expert.

    Args:
        tokens: (T, H). indices: the experts of each token, (T, K) or (T,).
        num_out_tokens: the number of rows to keep; if it is not positive, this number of rows is dropped.

    Returns:
        (permuted, sorted_indices). Element t * K + k of the int32 sorted_indices is the row of token t's k-th copy.

    Raises:
        RuntimeError: padded_mode is set, or the shapes do not match.
    """
    _no_padding(padded_mode)
    if tokens.dim() != 2 or indices.dim() not in (1, 2) or len(indices) != len(tokens):
        raise RuntimeError(
            f"npu_moe_token_permute: tokens must have the shape (T, H) and indices (T, K), but got "
            f"{list(tokens.shape)} and {list(indices.shape)}"
        )
    if on_ascend(tokens):
        return ascend(
            "MoeTokenPermute",
            tokens=tokens,
            indices=indices,
            num_out_tokens=num_out_tokens,
            padded_mode=padded_mode,
        )
    flat = indices.reshape(-1)
    wanted = num_out_tokens or 0
    rows = min(wanted, len(flat)) if wanted > 0 else wanted + len(flat)
    order = flat.argsort(stable=True)
    topk = indices.shape[1] if indices.dim() == 2 else 1
    return tokens.index_select(0, (order // topk)[:rows]), order.argsort(stable=True).to(msadapter.int32)


def _unpermute_gradient(g, permuted_tokens, sorted_indices, probs, padded_mode, restore_shape, needs):
    if on_ascend(g) and not recording():
        rows, weights = ascend(
            "MoeTokenUnpermuteGrad",
            permuted_tokens=permuted_tokens,
            unpermuted_tokens_grad=g,
            sorted_indices=sorted_indices,
            probs=probs,
            padded_mode=padded_mode,
            restore_shape=restore_shape,
        )
        return rows if needs[0] else None, weights if needs[1] else None
    topk = 1 if probs is None else probs.shape[1]
    wide = g.to(working(g.dtype)).unsqueeze(1).expand(-1, topk, -1)
    weighted = wide if probs is None else wide * probs.unsqueeze(-1)
    rows = _put(
        weighted.reshape(-1, g.shape[-1]).to(permuted_tokens.dtype), sorted_indices, len(permuted_tokens)
    )
    weights = None
    if needs[1] and probs is not None:
        taken = _taken(permuted_tokens, sorted_indices).reshape(-1, topk, g.shape[-1])
        weights = (wide * taken).sum(-1).to(probs.dtype)
    return rows if needs[0] else None, weights


@op(
    "torch_npu.npu_moe_token_unpermute(Tensor permuted_tokens, Tensor sorted_indices, Tensor? probs=None, "
    "bool padded_mode=False, int[]? restore_shape=None) -> Tensor",
    forms="f",
    grad={("permuted_tokens", "probs"): _unpermute_gradient},
)
def npu_moe_token_unpermute(permuted_tokens, sorted_indices, probs, padded_mode, restore_shape):
    """Reverses npu_moe_token_permute: sums the copies of each token, weighted by their probabilities.

    Args:
        permuted_tokens: (rows, H). sorted_indices: from npu_moe_token_permute. probs: (T, K), or None if K is 1.

    Raises:
        RuntimeError: padded_mode is set, or the shapes do not match.
    """
    _no_padding(padded_mode)
    if permuted_tokens.dim() != 2 or sorted_indices.dim() != 1:
        raise RuntimeError(
            "npu_moe_token_unpermute: permuted_tokens must have 2 dimensions and sorted_indices 1, but got "
            f"{list(permuted_tokens.shape)} and {list(sorted_indices.shape)}"
        )
    if probs is not None and (probs.dim() != 2 or probs.numel() != len(sorted_indices)):
        raise RuntimeError(
            f"npu_moe_token_unpermute: probs must have the shape (T, K) with T * K = {len(sorted_indices)}, but has "
            f"{list(probs.shape)}"
        )
    if on_ascend(permuted_tokens):
        return ascend(
            "MoeTokenUnpermute",
            permuted_tokens=permuted_tokens,
            sorted_indices=sorted_indices,
            probs=probs,
            padded_mode=padded_mode,
            restore_shape=restore_shape,
        )
    found = _taken(permuted_tokens, sorted_indices)
    if probs is None:
        return found
    computed = working(found.dtype)
    found = found.to(computed).reshape(*probs.shape, found.shape[-1]) * probs.to(computed).unsqueeze(-1)
    return found.sum(1).to(permuted_tokens.dtype)


# ---- by a routing map: (T, E), true where a token is assigned to an expert


def _map_of(routing_map):
    if routing_map.dtype not in (msadapter.bool, msadapter.uint8, msadapter.int8):
        raise RuntimeError(f"routing_map must be bool, int8 or uint8, but got {routing_map.dtype}")
    return routing_map if routing_map.dtype == msadapter.bool else routing_map != 0


def _tokens_of(chosen):
    """The token of each permuted row. Rows are sorted by expert, then by token."""
    tokens = msadapter.arange(chosen.shape[0], device=chosen.device).expand(chosen.shape[1], -1)
    return tokens.masked_select(chosen.t())


def _of_capacity(chosen, rows: int):
    """The tokens (E, C) of each expert: first those assigned to it, then others until its capacity is reached."""
    capacity = rows // chosen.shape[1]
    return chosen.t().to(msadapter.int8).argsort(dim=-1, descending=True, stable=True)[:, :capacity]


@composite(
    "torch_npu.npu_moe_token_permute_with_routing_map(Tensor tokens, Tensor routing_map, *, Tensor? probs=None, "
    "int? num_out_tokens=None, bool drop_and_pad=False) -> any",
    forms="f",
)
def npu_moe_token_permute_with_routing_map(tokens, routing_map, *, probs, num_out_tokens, drop_and_pad):
    """Permutes tokens into the order of their experts.

    Args:
        tokens: (T, H). routing_map, probs: (T, E).
        num_out_tokens: rows of the result; with drop_and_pad each expert takes num_out_tokens // E tokens.

    Returns:
        (permuted, probabilities of its rows or None, sorted_indices int32). With drop_and_pad, sorted_indices has the token
        of each row. Without it, sorted_indices has the row of each copy of a token, sorted by token.
    """
    chosen = _map_of(routing_map)
    if drop_and_pad:
        if num_out_tokens is None:
            raise RuntimeError("npu_moe_token_permute_with_routing_map: drop_and_pad needs num_out_tokens")
        places = _of_capacity(chosen, num_out_tokens)
        rows = places.reshape(-1)
        weights = None if probs is None else probs.t().gather(1, places).reshape(-1)
        return tokens.index_select(0, rows), weights, rows.to(msadapter.int32)
    rows = _tokens_of(chosen)
    weights = None if probs is None else probs.t().masked_select(chosen.t())
    return tokens.index_select(0, rows), weights, rows.argsort(stable=True).to(msadapter.int32)


@composite(
    "torch_npu.npu_moe_token_permute_with_routing_map_grad(Tensor permuted_token_out_grad, Tensor? probs_grad, "
    "Tensor sorted_indices, Tensor routing_map, int experts_num, int tokens_num, bool drop_and_pad) -> any",
    forms="f",
)
def npu_moe_token_permute_with_routing_map_grad(
    permuted_token_out_grad, probs_grad, sorted_indices, routing_map, experts_num, tokens_num, drop_and_pad
):
    """The gradients of tokens and probs (None without probs)."""
    chosen = _map_of(routing_map)
    rows = sorted_indices.long() if drop_and_pad else _tokens_of(chosen)
    g = permuted_token_out_grad
    wide = g.to(working(g.dtype))
    tokens = wide.new_zeros(tokens_num, g.shape[-1]).index_add(0, rows, wide).to(g.dtype)
    if probs_grad is None:
        return tokens, None
    empty = probs_grad.new_zeros(experts_num, tokens_num)
    if drop_and_pad:
        found = empty.scatter(1, rows.reshape(experts_num, -1), probs_grad.reshape(experts_num, -1))
    else:
        found = empty.masked_scatter(chosen.t(), probs_grad)
    return tokens, found.t()


def _rows_and_weights(sorted_indices, probs, chosen, drop_and_pad: bool, tokens: int):
    """The token of each permuted row, and the probability of each row (None without probs)."""
    if drop_and_pad:
        rows = sorted_indices.long()
        return rows, None if probs is None else probs.t().gather(1, rows.reshape(probs.shape[1], -1)).reshape(
            -1
        )
    if chosen is not None:
        return _tokens_of(chosen), None if probs is None else probs.t().masked_select(chosen.t())
    if probs is not None:
        raise RuntimeError("npu_moe_token_unpermute_with_routing_map: probs needs routing_map")
    topk = len(sorted_indices) // tokens
    copies = msadapter.arange(len(sorted_indices), device=sorted_indices.device)
    return copies.index_select(0, sorted_indices.long().argsort()) // topk, None


@composite(
    "torch_npu._npu_moe_token_unpermute_with_routing_map(Tensor permuted_tokens, Tensor sorted_indices, "
    "int[] restore_shape, *, Tensor? probs=None, Tensor? routing_map=None, bool drop_and_pad=False) -> any",
    forms="f",
)
def _npu_moe_token_unpermute_with_routing_map(
    permuted_tokens, sorted_indices, restore_shape, *, probs, routing_map, drop_and_pad
):
    chosen = None if routing_map is None else _map_of(routing_map)
    rows, weights = _rows_and_weights(sorted_indices, probs, chosen, drop_and_pad, restore_shape[0])
    wide = permuted_tokens.to(working(permuted_tokens.dtype))
    if weights is not None:
        wide = wide * weights.to(wide.dtype).unsqueeze(-1)
    out = wide.new_zeros(list(restore_shape)).index_add(0, rows, wide).to(permuted_tokens.dtype)
    order = rows.argsort(stable=True)
    return out, order.to(msadapter.int32), rows.index_select(0, order).to(msadapter.int32), weights


@composite(
    "torch_npu.npu_moe_token_unpermute_with_routing_map(Tensor permuted_tokens, Tensor sorted_indices, int[] restore_shape, "
    "*, Tensor? probs=None, Tensor? routing_map=None, bool drop_and_pad=False) -> Tensor",
    forms="f",
)
def npu_moe_token_unpermute_with_routing_map(
    permuted_tokens, sorted_indices, restore_shape, *, probs, routing_map, drop_and_pad
):
    """Reverses npu_moe_token_permute_with_routing_map: the sums (T, H) of the copies, weighted by probabilities."""
    return t.torch_npu__npu_moe_token_unpermute_with_routing_map(
        permuted_tokens,
        sorted_indices,
        restore_shape,
        probs=probs,
        routing_map=routing_map,
        drop_and_pad=drop_and_pad,
    )[0]


@composite(
    "torch_npu.npu_moe_token_unpermute_with_routing_map_grad(Tensor unpermuted_tokens_grad, Tensor out_index, "
    "Tensor permuted_token_id, Tensor? routing_map=None, Tensor? permuted_tokens=None, Tensor? probs=None, "
    "bool drop_and_pad=False, int[]? restore_shape=None) -> any",
    forms="f",
)
def npu_moe_token_unpermute_with_routing_map_grad(
    unpermuted_tokens_grad,
    out_index,
    permuted_token_id,
    routing_map,
    permuted_tokens,
    probs,
    drop_and_pad,
    restore_shape,
):
    """The gradients of permuted_tokens and probs (None without probs).

    With drop_and_pad, out_index and permuted_token_id are those of the forward. Without it, both are sorted_indices.
    """
    chosen = None if routing_map is None else _map_of(routing_map)
    if drop_and_pad:
        rows = permuted_token_id.long().index_select(0, out_index.long().argsort())
        weights = None if probs is None else probs.t().gather(1, rows.reshape(probs.shape[1], -1)).reshape(-1)
    else:
        rows, weights = _rows_and_weights(out_index, probs, chosen, False, unpermuted_tokens_grad.shape[0])
    g = unpermuted_tokens_grad.index_select(0, rows)
    if weights is None:
        return g, None
    wide = g.to(working(g.dtype))
    of_rows = (wide * permuted_tokens.to(wide.dtype)).sum(-1).to(probs.dtype)
    empty = probs.new_zeros(probs.shape[1], probs.shape[0])
    if drop_and_pad:
        of_probs = empty.scatter(1, rows.reshape(probs.shape[1], -1), of_rows.reshape(probs.shape[1], -1))
    else:
        assert chosen is not None  # _rows_and_weights refuses probabilities without a routing map
        of_probs = empty.masked_scatter(chosen.t(), of_rows)
    return (wide * weights.to(wide.dtype).unsqueeze(-1)).to(g.dtype), of_probs.t()


# ---- routing for inference


@op(
    "torch_npu.npu_moe_gating_top_k_softmax(Tensor x, Tensor? finished=None, int k=1) -> (Tensor, Tensor, Tensor)",
    forms="f",
    grad={"x": no_derivative("npu_moe_gating_top_k_softmax")},
)
def npu_moe_gating_top_k_softmax(x, finished, k):
    """The k largest values of softmax(x) over the experts: (values, experts int32, rows int32).

    Row t of the third result is t, T + t, 2 T + t ..., the rows of token t's copies. A finished token gets the expert E.
    """
    if on_ascend(x):
        return ascend("MoeGatingTopKSoftmax", x=x, finished=finished, k=k)
    values, experts = t.softmax(x.to(working(x.dtype)), -1).topk(k, -1)
    if finished is not None:
        experts = experts.masked_fill(finished.unsqueeze(-1), x.shape[-1])
    flat = x.numel() // x.shape[-1]
    rows = msadapter.arange(k * flat, device=x.device).reshape(k, flat).t().reshape(experts.shape)
    return values.to(x.dtype), experts.to(msadapter.int32), rows.contiguous().to(msadapter.int32)


@op(
    "torch_npu.npu_moe_init_routing(Tensor x, Tensor row_idx, Tensor expert_idx, int active_num) "
    "-> (Tensor, Tensor, Tensor)",
    forms="f",
    grad={"x": no_derivative("npu_moe_init_routing")},
)
def npu_moe_init_routing(x, row_idx, expert_idx, active_num):
    """Sorts tokens by expert: (expanded x, row of each copy int32, sorted experts int32).

    Args:
        x: (T, H). row_idx, expert_idx: (T, K), from npu_moe_gating_top_k_softmax. active_num: the maximum number of tokens.
    """
    if on_ascend(x):
        return ascend("MoeInitRouting", x=x, row_idx=row_idx, expert_idx=expert_idx, active_num=active_num)
    experts, order = expert_idx.reshape(-1).sort(stable=True)
    source = row_idx.reshape(-1).long().index_select(0, order)
    rows = source.argsort(stable=True).to(msadapter.int32)
    active = min(active_num, len(x)) * expert_idx.shape[1]
    return x.index_select(0, source[:active] % len(x)), rows, experts.to(msadapter.int32)


@op(
    "torch_npu.npu_moe_compute_expert_tokens(Tensor sorted_expert_for_source_row, int num_expert) -> Tensor",
    forms="f",
    grad=None,
)
def npu_moe_compute_expert_tokens(sorted_expert_for_source_row, num_expert):
    """The end of each expert's tokens, which is the cumulative sum of their counts: int32 (E,)."""
    experts = sorted_expert_for_source_row
    if on_ascend(experts):
        return ascend("MoeComputeExpertTokens", sorted_experts=experts, num_expert=num_expert)
    return t.bincount(experts.long(), minlength=num_expert)[:num_expert].cumsum(0).to(msadapter.int32)


@composite(
    "torch_npu.npu_moe_finalize_routing(Tensor expanded_permuted_rows, Tensor? skip1, Tensor? skip2, Tensor? bias, "
    "Tensor? scales, Tensor expanded_src_to_dst_row, Tensor? export_for_source_row, int? drop_pad_mode=0) -> Tensor",
    forms="f",
)
def npu_moe_finalize_routing(
    expanded_permuted_rows,
    skip1,
    skip2,
    bias,
    scales,
    expanded_src_to_dst_row,
    export_for_source_row,
    drop_pad_mode,
):
    """For each token, skip1 + skip2 + the sum over its copies of scale * (row + bias of the copy's expert)."""
    if drop_pad_mode:
        raise NotImplementedError(
            "torch_npu.npu_moe_finalize_routing: drop_pad_mode other than 0 is not supported (docs/coverage.md)"
        )
    rows = expanded_permuted_rows
    given = [x for x in (rows, skip1, skip2, bias, scales) if x is not None]
    if skip1 is not None and on_ascend(rows) and not (recording() and any(x.requires_grad for x in given)):
        return t.torch_npu__moe_finalize_routing(
            rows, skip1, skip2, bias, scales, expanded_src_to_dst_row, export_for_source_row
        )
    topk = 1 if scales is None else scales.shape[1]
    tokens = len(expanded_src_to_dst_row) // topk
    wide = (
        rows.to(working(rows.dtype)).index_select(0, expanded_src_to_dst_row.long()).reshape(topk, tokens, -1)
    )
    if bias is not None:
        wide = wide + bias.to(wide.dtype)[export_for_source_row.long().t()]
    if scales is not None:
        wide = wide * scales.to(wide.dtype).t().unsqueeze(-1)
    out = wide.sum(0)
    for skip in (skip1, skip2):
        out = out if skip is None else out + skip
    return out.to(rows.dtype)


@op(
    "torch_npu._moe_finalize_routing(Tensor rows, Tensor skip1, Tensor? skip2, Tensor? bias, Tensor? scales, Tensor places, "
    "Tensor? experts) -> Tensor",
    forms="f",
    grad=None,
)
def _moe_finalize_routing(rows, skip1, skip2, bias, scales, places, experts):
    return ascend(
        "MoeFinalizeRouting",
        expanded_x=rows,
        x1=skip1,
        x2=skip2,
        bias=bias,
        scales=scales,
        expanded_row_idx=places,
        expanded_expert_idx=experts,
    )
