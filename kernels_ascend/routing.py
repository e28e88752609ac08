"""Selection of experts, exchange of tokens between ranks, and multi-dimensional rotary embedding."""

from __future__ import annotations

import msadapter
from msadapter.ops import composite, t

from .attention_tiles import working

SOFTMAX, SIGMOID = 0, 1
BY_MAXIMUM, BY_TWO_BEST = 0, 1


def _groups_kept(choice, k_group: int, group_count: int, mode: int):
    """The scores, with minus infinity for all experts outside the best ``k_group`` groups."""
    rows = choice.reshape(*choice.shape[:-1], group_count, -1)
    best = rows.max(-1)[0] if mode == BY_MAXIMUM else rows.topk(2, -1)[0].sum(-1)
    kept = t.zeros_like(best, dtype=msadapter.bool).scatter(-1, best.topk(k_group, -1)[1], True)
    return rows.masked_fill(~kept.unsqueeze(-1), float("-inf")).reshape(choice.shape)


def _check_gating(x, k: int, bias, k_group: int, group_count: int, mode: int, norm_type: int) -> None:
    experts = x.shape[-1]
    if x.dim() != 2 or not 1 <= k <= experts:
        raise RuntimeError(
            f"npu_moe_gating_top_k: x must have the shape (T, E) with 1 <= k <= E, but k is {k} and the shape {list(x.shape)}"
        )
    if bias is not None and list(bias.shape) != [experts]:
        raise RuntimeError(
            f"npu_moe_gating_top_k: bias must have the shape [{experts}], but has {list(bias.shape)}"
        )
    if group_count < 1 or experts % group_count or not 1 <= k_group <= group_count:
        raise RuntimeError(
            f"npu_moe_gating_top_k: {experts} experts cannot be divided into group_count = {group_count} groups of which "
            f"k_group = {k_group} are chosen"
        )
    if norm_type not in (SOFTMAX, SIGMOID) or mode not in (BY_MAXIMUM, BY_TWO_BEST):
        raise RuntimeError(
            f"npu_moe_gating_top_k: norm_type {norm_type} and group_select_mode {mode} must be 0 or 1"
        )
    if k > experts // group_count * k_group or (mode == BY_TWO_BEST and experts // group_count < 2):
        raise RuntimeError(
            f"npu_moe_gating_top_k: groups of {experts // group_count} experts are too small: the {k_group} chosen groups "
            f"must hold k = {k} experts together, and each group two experts with group_select_mode 1"
        )


@composite(
    "torch_npu.npu_moe_gating_top_k(Tensor x, int k, *, Tensor? bias=None, int k_group=1, int group_count=1, "
    "int group_select_mode=0, int renorm=0, int norm_type=0, bool out_flag=False, float routed_scaling_factor=1.0, "
    "float eps=1e-20) -> any",
    forms="f",
)
def npu_moe_gating_top_k(
    x,
    k,
    *,
    bias,
    k_group,
    group_count,
    group_select_mode,
    renorm,
    norm_type,
    out_flag,
    routed_scaling_factor,
    eps,
):
    """Selects k experts for each token and computes their weights.

    Args:
        x: scores (T, E). bias: (E,), added for the selection, but not for the weights.
        k_group, group_count, group_select_mode: experts are selected from the best k_group of group_count groups. A group's
            score is that of its best expert (mode 0) or the sum of its two best (mode 1).
        norm_type: weights are the softmax (0) or the sigmoid (1) of the scores. Sigmoid weights, and softmax weights with
            renorm=1, are divided by their sum + eps.

    Returns:
        (weights in x's dtype (T, k), experts int32 (T, k), all normalized scores float32 (T, E), or None without out_flag).

    Raises:
        RuntimeError: the shapes or numbers do not match.
    """
    _check_gating(x, k, bias, k_group, group_count, group_select_mode, norm_type)
    wide = x.to(working(x.dtype))
    scores = t.softmax(wide, -1) if norm_type == SOFTMAX else t.sigmoid(wide)
    choice = scores.detach() if bias is None else scores.detach() + bias.to(scores.dtype)
    if group_count > 1 and k_group < group_count:
        choice = _groups_kept(choice, k_group, group_count, group_select_mode)
    experts = choice.topk(k, -1)[1]
    weights = scores.gather(-1, experts)
    if norm_type == SIGMOID or renorm == 1:
        weights = weights / (weights.sum(-1, keepdim=True) + eps)
    weights = (weights * routed_scaling_factor).to(x.dtype)
    return weights, experts.to(msadapter.int32), scores.float() if out_flag else None


def _angles(positions, cos_sin_cache, mrope_section):
    """cos and sin of each token, (T, rotary size / 2). With three rows of positions, each section uses its own row."""
    cos, sin = cos_sin_cache.index_select(0, positions.reshape(-1).long()).chunk(2, -1)
    if positions.dim() == 1:
        return cos, sin
    shape = (*positions.shape, cos.shape[-1])
    sections = list(mrope_section or ())
    if not any(sections):
        return cos.reshape(shape)[0], sin.reshape(shape)[0]
    if len(sections) != len(positions) or sum(sections) != cos.shape[-1]:
        raise RuntimeError(
            f"npu_mrope: mrope_section {sections} must divide {cos.shape[-1]} into {len(positions)} parts"
        )
    return tuple(
        t.cat([part[row] for row, part in enumerate(x.reshape(shape).split(sections, -1))], -1)
        for x in (cos, sin)
    )


@composite(
    "torch_npu.npu_mrope(Tensor positions, Tensor query, Tensor key, Tensor cos_sin_cache, int head_size, *, "
    "int[]? mrope_section=None, str? rotary_mode='half') -> any",
    forms="f",
)
def npu_mrope(positions, query, key, cos_sin_cache, head_size, *, mrope_section, rotary_mode):
    """Applies the rotary embedding to query and key, with the angles of their tokens' positions.

    Args:
        positions: integers (T,), or (3, T) for time, height and width, each of which has its section of the angles.
        query, key: (T, heads * head_size). cos_sin_cache: (positions, rotary size), cosines followed by sines.
        rotary_mode: pairs are the halves of the rotary size ('half') or neighbours ('interleave').

    Returns:
        The rotated (query, key).

    Raises:
        RuntimeError: the mode is unknown, or the sections do not match.
    """
    modes = {"half": 0, "interleave": 1}
    if rotary_mode not in modes:
        raise RuntimeError(f"npu_mrope: rotary_mode must be 'half' or 'interleave', but got {rotary_mode!r}")
    cos, sin = _angles(positions, cos_sin_cache, mrope_section)
    twice = (lambda x: t.cat([x, x], -1)) if rotary_mode == "half" else (lambda x: x.repeat_interleave(2, -1))
    cos, sin, size = twice(cos).unsqueeze(1), twice(sin).unsqueeze(1), cos_sin_cache.shape[-1]

    def turn(x):
        heads = x.reshape(len(x), -1, head_size)
        turned = t.torch_npu_npu_rotary_position_embedding(heads[..., :size], cos, sin, modes[rotary_mode])
        return t.cat([turned, heads[..., size:]], -1).reshape(x.shape)

    return turn(query), turn(key)


def _between_ranks(name: str):
    def refuse(*args, **kwargs):
        raise NotImplementedError(
            f"torch_npu.{name}: the exchange of tokens fused with their routing is not supported (docs/coverage.md)"
        )

    vars(refuse)["refused"] = True  # docs/kernels.md shows it as refused
    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = "NotImplementedError: all_to_all_single and npu_moe_token_permute do it in two steps."
    return refuse


npu_moe_distribute_dispatch = _between_ranks("npu_moe_distribute_dispatch")
npu_moe_distribute_dispatch_v2 = _between_ranks("npu_moe_distribute_dispatch_v2")
npu_moe_distribute_combine = _between_ranks("npu_moe_distribute_combine")
npu_moe_distribute_combine_v2 = _between_ranks("npu_moe_distribute_combine_v2")
