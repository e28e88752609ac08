"""flex_attention and its block masks: values, lists of blocks, pictures, and errors. PyTorch has no gradients of it on a CPU."""

from __future__ import annotations


def _flex(torch):
    from importlib import import_module

    return import_module(f"{torch.__name__}.nn.attention.flex_attention")


def _drawn(torch, queries=5, keys=5, heads=4, groups=4, batch=2, dtype=None):
    generator = torch.Generator().manual_seed(queries + 10 * keys)
    shapes = ((batch, heads, queries, 8), (batch, groups, keys, 8), (batch, groups, keys, 6))
    return [torch.randn(*shape, generator=generator).to(dtype or torch.float32) for shape in shapes]


def _causal(b, h, q_idx, kv_idx):
    return q_idx >= kv_idx


def _window(b, h, q_idx, kv_idx):
    return (q_idx - kv_idx).abs() <= 1 + h


def _second_half(b, h, q_idx, kv_idx):
    return kv_idx >= 64 * (b + 1)


def _error(call):
    try:
        call()
    except (ValueError, RuntimeError, NotImplementedError, AssertionError) as error:
        return [type(error).__name__, str(error)]
    return "no error"


def score_functions(torch):
    flex, found = _flex(torch), []
    table = torch.arange(40.0).reshape(4, 10) / 20

    def relative(score, b, h, q_idx, kv_idx):
        return score + (q_idx - kv_idx) * 0.3

    def of_a_table(score, b, h, q_idx, kv_idx):
        return score * table[h, q_idx - kv_idx + 4] - b

    def soft_cap(score, b, h, q_idx, kv_idx):
        return torch.tanh(score / 2) * 2

    def hides(score, b, h, q_idx, kv_idx):
        return torch.where(kv_idx <= q_idx - 1, score, -float("inf"))

    for function in (None, relative, of_a_table, soft_cap, hides):
        for dtype in (torch.float32, torch.float64, torch.bfloat16):
            q, k, v = _drawn(torch, dtype=dtype)
            found.append(flex.flex_attention(q, k, v, function, scale=0.5))
    return found


def masks(torch):
    flex, found = _flex(torch), []
    for mask, batch, heads in ((_causal, None, None), (_window, None, 4), (_second_half, 2, None)):
        for queries, keys in ((5, 5), (7, 150), (200, 130)):
            q, k, v = _drawn(torch, queries, keys)
            made = flex.create_block_mask(mask, batch, heads, queries, keys, device="cpu", BLOCK_SIZE=32)
            found += [flex.flex_attention(q, k, v, block_mask=made)[:, :, ::9], made.to_dense()]
    return found


def additional_results(torch):
    flex = _flex(torch)
    q, k, v = _drawn(torch, 6, 9, heads=6, groups=2)
    mask = flex.create_block_mask(_second_half, 2, None, 6, 9, device="cpu")
    found = [flex.flex_attention(q, k, v, enable_gqa=True, block_mask=mask)]  # no query sees a key
    out, aux = flex.flex_attention(q, k, v, enable_gqa=True, return_aux=flex.AuxRequest(lse=True))
    found += [out, aux.lse, aux.max_scores]
    one = flex.create_block_mask(_causal, 2, None, 6, 9, device="cpu")
    return [*found, flex.flex_attention(q, k[:1], v[:1], enable_gqa=True, block_mask=one)]


def lists_of_blocks(torch):
    flex, found = _flex(torch), []
    for mask, heads in ((_causal, None), (_window, 2), (_second_half, None)):
        for size in (128, 64, (32, 64)):
            for separate in (True, False):
                made = flex.create_block_mask(
                    mask, 2, heads, 300, 200, device="cpu", BLOCK_SIZE=size, separate_full_blocks=separate
                )
                found += [made.kv_num_blocks, made.kv_indices, made.full_kv_num_blocks, made.full_kv_indices]
                found += [made.q_num_blocks, made.q_indices, made.full_q_num_blocks, made.full_q_indices]
                found += [made.sparsity(), list(made.shape), made.numel(), list(made.seq_lengths), repr(made)]
                found.append(len(made.as_tuple()) - len(made.as_tuple(flatten=False)))
    return found


def pictures(torch):
    flex = _flex(torch)
    made = flex.create_block_mask(_causal, 3, 2, 700, 500, device="cpu", BLOCK_SIZE=(32, 16))
    return [str(made), made.to_string(grid_size=5, limit=2), made.to_string(grid_size=(3, 30), limit=9)]


def parts_of_masks(torch):
    flex, found = _flex(torch), []
    made = flex.create_block_mask(_window, 2, 2, 300, 200, device="cpu", BLOCK_SIZE=64)
    for part in (made[0], made[1, -1], made[:, 0:1], made[:, :, torch.tensor([1, 3])], made._adjust(130, 90)):
        found += [
            part.kv_num_blocks,
            part.kv_indices,
            part.full_kv_num_blocks,
            list(part.shape),
            part.to_dense(),
        ]
    q, k, v = _drawn(torch, 300, 200, heads=2, groups=2)
    found.append(_error(lambda: flex.flex_attention(q, k, v, block_mask=made[0:1]))[0])
    own = flex.BlockMask.from_kv_blocks(
        torch.tensor([[[1, 2]]]).int(),
        torch.tensor([[[[1, 0], [0, 1]]]]).int(),
        BLOCK_SIZE=4,
        mask_mod=_causal,
    )
    return [*found, own.to_dense(), list(own.shape), own.q_num_blocks, own.q_indices, own.mask_mod is _causal]


def masks_of_functions(torch):
    flex = _flex(torch)
    both, either = flex.and_masks(_causal, _window), flex.or_masks(_causal, _window)
    found = [flex.create_mask(mask, None, 2, 4, 6, device="cpu") for mask in (both, either, flex.noop_mask)]

    def score(score, b, h, q_idx, kv_idx):
        return torch.where(q_idx > kv_idx, score, -float("inf"))

    return [
        *found,
        flex.create_mask(score, 2, 1, 3, 3, device="cpu"),
        flex.and_masks()(*[torch.tensor(1)] * 4),
    ]


def errors(torch):
    flex = _flex(torch)
    attention, mask_of = (
        flex.flex_attention,
        lambda q, k: flex.create_block_mask(_causal, 1, 1, q, k, device="cpu"),
    )
    q, k, v = _drawn(torch)
    calls = (
        lambda: attention(q[0], k[0], v[0]),
        lambda: attention(q, k[..., :4], v),
        lambda: attention(q, k[:, :2], v[:, :2]),
        lambda: attention(q, k[:, :3], v[:, :3], enable_gqa=True),
        lambda: attention(q, k[:1], v[:1]),
        lambda: attention(q, k[:1], v[:1], block_mask=mask_of(5, 5)),
        lambda: attention(q, k, v, block_mask=mask_of(4, 5)),
        lambda: attention(q, k, v, block_mask=mask_of(5, 9)),
        lambda: attention(q, k, v, return_lse=True, return_aux=flex.AuxRequest(lse=True)),
        lambda: flex.create_block_mask(lambda s, b, h, q, k: s, 1, 1, 4, 4, device="cpu"),
        lambda: flex.create_mask(lambda a, b: a, 1, 1, 4, 4, device="cpu"),
        lambda: flex.and_masks(3),
        lambda: flex.BlockMask.from_kv_blocks(torch.ones(1), torch.ones(1)),
        lambda: flex.BlockMask.from_kv_blocks(torch.ones(1, 1), torch.ones(1, 1), torch.ones(1, 1)),
    )
    return [_error(call)[:1] if k == 9 else _error(call) for k, call in enumerate(calls)]
