"""transformer_engine's modules, compared with plain formulas, in one process and on two ranks."""

import io
import os
import subprocess
import sys

import pytest

import msadapter as torch
from msadapter.nn import functional as F
from msadapter.transformer_engine import pytorch as te
from tests.distributed.ranks import checks_of, outcomes_of

CHECKS = checks_of("engine.py")


def _heads(s, b, h, d, seed=0):
    return torch.randn(s, b, h, d, generator=torch.Generator().manual_seed(seed))


def _plain(q, k, v, **options):
    """(s, b, h, d) to (s, b, h d)."""
    out = F.scaled_dot_product_attention(*(x.permute(1, 2, 0, 3) for x in (q, k, v)), **options)
    return out.permute(2, 0, 1, 3).flatten(-2)


def test_linear_returns_its_bias_when_asked():
    layer = te.Linear(5, 3, return_bias=True, device="cpu", init_method=torch.nn.init.ones_)
    out, bias = layer(torch.ones(2, 4, 5))
    assert out.shape == (2, 4, 3) and (out == 5).all() and bias.tolist() == [0, 0, 0]


@pytest.mark.parametrize("kind", ["LayerNorm", "RMSNorm"])
def test_the_size_of_a_norm_has_two_names(kind):
    """Megatron-LM 0.19 calls it normalized_shape, and earlier releases hidden_size."""
    norm = getattr(te, kind)
    x = torch.randn(3, 8)
    one, other, third = (
        norm(8, device="cpu"),
        norm(hidden_size=8, device="cpu"),
        norm(normalized_shape=(8,), device="cpu"),
    )
    assert one.weight.shape == other.weight.shape == third.weight.shape == (8,)
    torch.testing.assert_close(one(x), other(x), rtol=0, atol=0)
    for given in ({}, {"normalized_shape": 8, "hidden_size": 8}):
        with pytest.raises(ValueError, match=f"{kind}: give normalized_shape or hidden_size, and not both"):
            norm(**given)


@pytest.mark.parametrize("kind", ["LayerNorm", "RMSNorm"])
def test_the_dtype_of_a_norm_has_two_names(kind):
    """Newer releases of TransformerEngine call it dtype."""
    norm = getattr(te, kind)
    for given in ({"dtype": torch.bfloat16}, {"params_dtype": torch.bfloat16}):
        made = norm(8, device="cpu", **given)
        assert {one.dtype for one in made.parameters()} == {torch.bfloat16}
        assert made(torch.ones(2, 8, dtype=torch.bfloat16)).dtype == torch.bfloat16
    with pytest.raises(ValueError, match=f"{kind}: give dtype or params_dtype, and not both"):
        norm(8, dtype=torch.bfloat16, params_dtype=torch.float32)


@pytest.mark.parametrize("normalization", ["LayerNorm", "RMSNorm"])
@pytest.mark.parametrize("centered", [False, True])
def test_norm_and_linear_in_one(normalization, centered):
    x = torch.randn(6, 8)
    layer = te.LayerNormLinear(8, 3, normalization=normalization, zero_centered_gamma=centered, device="cpu")
    with torch.no_grad():
        layer.layer_norm_weight.add_(torch.arange(8.0) / 8)
    weight = layer.layer_norm_weight + (1 if centered else 0)
    norm = (
        F.layer_norm(x, (8,), weight, layer.layer_norm_bias, 1e-5)
        if normalization == "LayerNorm"
        else F.rms_norm(x, (8,), weight, 1e-5)
    )
    torch.testing.assert_close(layer(x), F.linear(norm, layer.weight, layer.bias))
    assert (layer.layer_norm_bias is None) == (normalization == "RMSNorm")


@pytest.mark.parametrize("kind", ["LayerNorm", "RMSNorm"])
def test_gradients_of_a_norm_are_added_in_32_bits(kind):
    """Also those of many tokens of 16 bits."""
    x, grad = (
        torch.randn(4096, 16, generator=torch.Generator().manual_seed(seed)).bfloat16() for seed in range(2)
    )
    found = []
    for dtype in (torch.bfloat16, torch.float64):
        norm = getattr(te, kind)(16, dtype=dtype, device="cpu")
        out = norm(x.to(dtype))
        assert out.dtype == dtype
        out.backward(grad.to(dtype))
        found.append([one.grad.double() for one in norm.parameters()])
    for mine, exact in zip(*found, strict=True):
        assert (mine - exact).norm() < 0.01 * exact.norm()


def test_main_gradient_takes_the_weights_gradient():
    layer = te.Linear(4, 2, fuse_wgrad_accumulation=True, bias=False, device="cpu")
    layer.weight.main_grad = torch.ones(2, 4)
    layer(torch.full((3, 4), 2.0)).sum().backward()
    assert (layer.weight.main_grad == 7).all() and layer.weight.grad_added_to_main_grad
    assert (layer.weight.grad == 0).all()


def test_grouped_linear():
    layer = te.GroupedLinear(3, 4, 2, device="cpu")
    x = torch.randn(6, 4)
    parts = [F.linear(rows, getattr(layer, f"weight{i}")) for i, rows in enumerate(x.split([1, 0, 5]))]
    torch.testing.assert_close(layer(x, [1, 0, 5]), torch.cat(parts))


def test_attention_is_torchs():
    q, k, v = _heads(7, 2, 4, 5), _heads(7, 2, 2, 5, 1), _heads(7, 2, 2, 5, 2)
    attention = te.DotProductAttention(4, 5, num_gqa_groups=2)
    torch.testing.assert_close(attention(q, k, v), _plain(q, k, v, is_causal=True, enable_gqa=True))
    no_mask = attention(q, k, v, attn_mask_type="no_mask")
    torch.testing.assert_close(no_mask, _plain(q, k, v, enable_gqa=True))
    batch_first = attention(*(x.transpose(0, 1) for x in (q, k, v)), qkv_format="bshd")
    torch.testing.assert_close(batch_first, _plain(q, k, v, is_causal=True, enable_gqa=True).transpose(0, 1))


def test_attention_with_masks_windows_and_bias():
    q, k, v = (_heads(6, 2, 3, 4, seed) for seed in range(3))
    attention = te.DotProductAttention(3, 4)
    hidden = torch.zeros(2, 1, 6, 6, dtype=torch.bool)
    hidden[1, :, :, 4:] = True
    torch.testing.assert_close(
        attention(q, k, v, hidden, attn_mask_type="padding"), _plain(q, k, v, attn_mask=~hidden)
    )
    near = torch.ones(6, 6, dtype=torch.bool).tril().triu(-2)
    torch.testing.assert_close(attention(q, k, v, window_size=(2, 0)), _plain(q, k, v, attn_mask=near))
    bias = torch.randn(1, 3, 6, 6)
    with_bias = {"core_attention_bias_type": "post_scale_bias", "core_attention_bias": bias}
    biased = attention(q, k, v, attn_mask_type="no_mask", **with_bias)
    torch.testing.assert_close(biased, _plain(q, k, v, attn_mask=bias.expand(2, 3, 6, 6)))
    with_bias["core_attention_bias_type"] = "pre_scale_bias"
    unscaled = attention(q, k, v, attn_mask_type="no_mask", **with_bias)
    torch.testing.assert_close(unscaled, _plain(q, k, v, attn_mask=bias.expand(2, 3, 6, 6) * 0.5))


def test_padding_is_known_from_the_lengths():
    q, k, v = (_heads(6, 2, 3, 4, seed) for seed in range(3))
    ends_q, ends_k = (torch.tensor(numbers, dtype=torch.int32) for numbers in ([0, 6, 9], [0, 4, 10]))
    out = te.DotProductAttention(3, 4, attn_mask_type="padding")(
        q, k, v, cu_seqlens_q=ends_q, cu_seqlens_kv=ends_k
    )
    for batch, (queries, keys) in enumerate(((6, 4), (3, 6))):
        one = slice(batch, batch + 1)
        expected = _plain(q[:queries, one], k[:keys, one], v[:keys, one])
        torch.testing.assert_close(out[:queries, one], expected)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"core_attention_bias_type": "alibi"}, NotImplementedError, "core_attention_bias_type='alibi'"),
        ({"alibi_slopes": torch.ones(3)}, NotImplementedError, "alibi_slopes="),
        ({"inference_params": object()}, NotImplementedError, "inference_params="),
        ({"checkpoint_core_attention": True}, NotImplementedError, "checkpoint_core_attention=True"),
        ({"core_attention_bias_type": "post_scale_bias"}, ValueError, "core_attention_bias is None"),
        ({"core_attention_bias": torch.ones(6, 6)}, ValueError, "is 'no_bias'"),
        ({"attn_mask_type": "padding"}, ValueError, "'padding' needs attention_mask"),
        ({"attn_mask_type": "arbitrary"}, ValueError, "'arbitrary' needs attention_mask"),
    ],
)
def test_attention_refuses_what_it_would_ignore(options, error, text):
    q = torch.ones(6, 2, 3, 4)
    with pytest.raises(error, match=text):
        te.DotProductAttention(3, 4)(q, q, q, **options)
    still = {"checkpoint_core_attention": False, "inference_params": None, "num_splits": 1}
    assert te.DotProductAttention(3, 4)(q, q, q, **still).shape == (6, 2, 12)


def test_packed_sequences_do_not_see_each_other():
    q, k, v = (_heads(9, 1, 2, 4, seed).squeeze(1) for seed in range(3))
    ends = torch.tensor([0, 4, 7], dtype=torch.int32)
    out = te.DotProductAttention(2, 4)(
        q, k, v, qkv_format="thd", cu_seqlens_q=ends, cu_seqlens_kv=ends, attn_mask_type="padding_causal"
    )
    for begin, end in ((0, 4), (4, 7)):
        one = _plain(*(x[begin:end].unsqueeze(1) for x in (q, k, v)), is_causal=True).squeeze(1)
        torch.testing.assert_close(out[begin:end], one)
    assert (out[7:] == 0).all()


def test_packed_sequences_may_have_padding_between_them():
    """The sequences are 3, 0 and 2 long and begin at 0, 4 and 4; the other rows are padding."""
    q, k, v = (_heads(9, 1, 2, 4, seed).squeeze(1).requires_grad_() for seed in range(3))
    ends, padded = (torch.tensor(numbers, dtype=torch.int32) for numbers in ([0, 3, 3, 5], [0, 4, 4, 8]))
    packed = {"qkv_format": "thd", "cu_seqlens_q": ends, "cu_seqlens_q_padded": padded}
    attention = te.DotProductAttention(2, 4, attn_mask_type="padding_causal")
    out = attention(q, k, v, **packed, cu_seqlens_kv=ends, cu_seqlens_kv_padded=padded)
    for begin, end in ((0, 3), (4, 6)):
        one = _plain(*(x[begin:end].unsqueeze(1) for x in (q, k, v)), is_causal=True).squeeze(1)
        torch.testing.assert_close(out[begin:end], one)
    torch.testing.assert_close(attention(q, k, v, **packed), out)  # the keys are those of the queries
    out.sum().backward()
    for rows in (out, q.grad, k.grad, v.grad):
        assert (rows[3:4] == 0).all() and (rows[6:] == 0).all()
    with pytest.raises(NotImplementedError, match="a bias with thd"):
        attention(q, k, v, **packed, core_attention_bias=torch.zeros(1, 2, 9, 9))


def test_rotary_embedding_turns_pairs():
    x, angles = torch.randn(5, 2, 3, 4), torch.arange(5.0).view(5, 1, 1, 1).expand(5, 1, 1, 2)
    out = te.attention.apply_rotary_pos_emb(x, angles)
    cos, sin = angles[..., :1].cos(), angles[..., :1].sin()
    torch.testing.assert_close(out[..., :1], x[..., :1] * cos - x[..., 1:2] * sin)
    assert torch.equal(out[..., 2:], x[..., 2:])


def test_adam_is_torchs_and_counts_in_the_group():
    ours, theirs = (torch.nn.Parameter(torch.linspace(-1, 1, 12)) for _ in range(2))
    options = {"lr": 0.1, "betas": (0.8, 0.9), "weight_decay": 0.1}
    one, other = te.optimizers.FusedAdam([ours], **options), torch.optim.AdamW([theirs], **options)
    for step in range(4):
        for parameter, optimizer in ((ours, one), (theirs, other)):
            parameter.grad = torch.arange(12.0) * (step + 1)
            optimizer.step()
    torch.testing.assert_close(ours, theirs, rtol=0, atol=0)
    assert one.param_groups[0]["step"] == 4 and set(one.state[ours]) == {"exp_avg", "exp_avg_sq"}


def test_checkpoint_repeats_the_trackers_random_numbers(monkeypatch):
    monkeypatch.setenv("MSADAPTER_DEVICE", "cuda")
    tracker = te.CudaRNGStatesTracker()
    tracker.add("model-parallel-rng", 5)
    masks = []

    def noisy(x):
        with tracker.fork():
            masks.append(F.dropout(torch.ones(64, device="cuda"), 0.5))
        return x * masks[-1]

    x = torch.ones(64, device="cuda", requires_grad=True)
    te.checkpoint(noisy, x, get_rng_state_tracker=lambda: tracker).sum().backward()
    assert len(masks) == 2 and torch.equal(*masks) and torch.equal(x.grad, masks[0])
    with tracker.fork():
        assert not torch.equal(F.dropout(torch.ones(64, device="cuda"), 0.5), masks[0])


def test_a_block_that_is_computed_twice_says_so():
    from msadapter.transformer_engine.pytorch import distributed as found

    seen = []

    def layer(x):
        seen.append((found.in_fp8_activation_recompute_phase(), found.is_fp8_activation_recompute_enabled()))
        return x * 2

    x = torch.ones(3, requires_grad=True)
    te.checkpoint(layer, x).sum().backward()
    assert seen == [(False, False), (True, False)]  # without 8-bit floats the second one is never true
    with found.activation_recompute_forward(activation_recompute=True, recompute_phase=True):
        layer(x)
    with pytest.raises(ZeroDivisionError), found.activation_recompute_forward(recompute_phase=True):
        raise ZeroDivisionError
    layer(x)
    found.activation_recompute_forward(recompute_phase=True)(layer)(x)
    assert [phase for phase, _ in seen[2:]] == [True, False, True]


_ACTIVATIONS = {
    "GELU": lambda x: F.gelu(x, approximate="tanh"),
    "ReLU": F.relu,
    "SiLU": F.silu,
    "GEGLU": lambda x: F.gelu(x[..., :3], approximate="tanh") * x[..., 3:],
    "ReGLU": lambda x: F.relu(x[..., :3]) * x[..., 3:],
    "SwiGLU": lambda x: F.silu(x[..., :3]) * x[..., 3:],
}


@pytest.mark.parametrize("name", _ACTIVATIONS)
def test_activations_of_chains(name):
    x = torch.randn(2, 5, 6)
    torch.testing.assert_close(getattr(te.ops, name)()(x), _ACTIVATIONS[name](x))
    with pytest.raises(NotImplementedError, match="cache_quantized_input"):
        getattr(te.ops, name)(cache_quantized_input=True)


@pytest.mark.parametrize("normalization", ["LayerNorm", "RMSNorm"])
@pytest.mark.parametrize("centered", [False, True])
def test_a_chain_is_the_layers_that_it_is_made_of(normalization, centered):
    """With the parameters of a layer, as Megatron gives them to a chain of operations on the device meta."""
    one = te.LayerNormLinear(8, 6, normalization=normalization, zero_centered_gamma=centered, device="cpu")
    norm = getattr(te.ops, normalization)(8, device="meta", zero_centered_gamma=centered)
    norm.weight = one.layer_norm_weight
    if normalization == "LayerNorm":
        norm.bias = one.layer_norm_bias
    product, bias = te.ops.BasicLinear(8, 6, device="meta"), te.ops.Bias(6, device="meta")
    product.weight, bias.bias = one.weight, one.bias
    with torch.no_grad():
        one.layer_norm_weight.add_(torch.arange(8.0) / 8)
        one.bias.add_(torch.arange(6.0))
    chain = te.ops.Sequential()
    for part in (norm, product, bias):
        chain.append(part)
    x = torch.randn(5, 2, 8)
    assert len(chain) == 3 and isinstance(chain[0], te.ops.FusibleOperation)
    torch.testing.assert_close(chain(x), one(x), rtol=0, atol=0)


def test_a_chain_has_further_results():
    """Megatron's TEFusedResidualRMSNorm makes the input of a norm a result beside the normalized one."""
    norm = te.ops.RMSNorm(8, device="cpu")
    chain = te.ops.Sequential(
        te.ops.MakeExtraOutput(), norm, te.ops.MakeExtraOutput(in_place=True), te.ops.SiLU()
    )
    x = torch.randn(3, 8, requires_grad=True)
    out, first, second = chain(x)
    plain = F.rms_norm(x, (8,), norm.weight, 1e-5)
    for got, expected in ((first, x), (second, plain), (out, F.silu(plain))):
        torch.testing.assert_close(got, expected, rtol=0, atol=0)
    (got,) = torch.autograd.grad(out.sum() + 2 * first.sum() + 3 * second.sum(), x)
    (expected,) = torch.autograd.grad((F.silu(plain) + 2 * x + 3 * plain).sum(), x)
    torch.testing.assert_close(got, expected)


def test_the_first_values_of_a_chain(monkeypatch):
    """On the device meta they are made at the first call."""
    norm = te.ops.LayerNorm((2, 3), device="meta")
    x = torch.randn(4, 2, 3)
    torch.testing.assert_close(norm(x), F.layer_norm(x, (2, 3)))
    assert norm.weight.device.type != "meta" and norm.weight.shape == (2, 3)
    with pytest.raises(ValueError, match="does not end with"):
        norm(torch.ones(3, 2))
    assert te.ops.RMSNorm(3, device="cpu", zero_centered_gamma=True).weight.tolist() == [0, 0, 0]
    product = te.ops.BasicLinear(100, 4, device="cpu", dtype=torch.float64)
    assert product.weight.dtype == torch.float64 and 0.05 < product.weight.abs().max().item() <= 0.1
    assert te.ops.Bias(2, device="cpu").bias.tolist() == [0, 0]
    monkeypatch.setenv("MSADAPTER_DEVICE", "cuda")
    tracker = te.CudaRNGStatesTracker()
    tracker.add("model-parallel-rng", 5)
    before = torch.cuda.get_rng_state()
    te.ops.BasicLinear(3, 4, device="cuda", rng_state_tracker_function=lambda: tracker)
    assert torch.equal(torch.cuda.get_rng_state(), before)


def test_a_chains_product_takes_main_gradients_and_refuses_the_rest():
    layer = te.ops.BasicLinear(4, 2, device="cpu", accumulate_into_main_grad=True)
    layer.weight.main_grad = torch.ones(2, 4)
    layer(torch.full((3, 4), 2.0)).sum().backward()
    assert (layer.weight.main_grad == 7).all() and layer.weight.grad_added_to_main_grad
    with pytest.raises(NotImplementedError, match="userbuffers_options"):
        te.ops.BasicLinear(4, 2, userbuffers_options={"comm_name": "fc1"})
    with pytest.raises(ValueError, match="'diagonal'"):
        te.ops.BasicLinear(4, 2, tensor_parallel_mode="diagonal")


def test_eight_bits_are_refused():
    with pytest.raises(NotImplementedError, match="eight-bit"), te.fp8_autocast(enabled=True):
        pass
    with te.fp8_autocast(enabled=False):
        pass
    assert not te.fp8.FP8GlobalStateManager.is_fp8_enabled()


def test_extra_state_is_empty_and_can_be_loaded():
    layer = te.Linear(2, 2, device="cpu")
    other = te.Linear(2, 2, device="cpu")
    other.load_state_dict(layer.state_dict())
    old = io.BytesIO()
    torch.save(None, old)
    other.load_state_dict(layer.state_dict() | {"_extra_state": old})
    with pytest.raises(NotImplementedError, match="eight-bit"):
        other.set_extra_state(torch.ones(3, dtype=torch.uint8))
    assert torch.equal(layer.weight, other.weight) and set(layer.state_dict()) == {
        "weight",
        "bias",
        "_extra_state",
    }


def test_only_a_variable_makes_the_name_importable():
    code = "import msadapter; msadapter.install()\nimport transformer_engine as te; print(te.__version__, te.pytorch.Linear)"
    environment = {
        name: value for name, value in os.environ.items() if name != "MSADAPTER_TRANSFORMER_ENGINE"
    }
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert "ModuleNotFoundError: No module named 'transformer_engine'" in done.stderr
    environment["MSADAPTER_TRANSFORMER_ENGINE"] = "1"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("1.13.0 <class 'msadapter.transformer_engine")


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    pytest.importorskip("mpi4py")
    return outcomes_of("engine.py", 2, tmp_path_factory.mktemp("outcomes"))


@pytest.mark.parametrize("name", CHECKS)
def test_check_passes_on_every_rank(outcomes, name):
    for rank, outcome in enumerate(outcomes):
        assert outcome[name] == "ok", f"rank {rank}: {outcome[name]}"


def test_a_layer_that_programs_only_ask_for():
    """peft looks whether a layer is of this class, which it cannot be."""
    assert not isinstance(te.Linear(2, 3, device="cpu"), te.LayerNormMLP)
    with pytest.raises(NotImplementedError, match="LayerNormMLP is not supported"):
        te.LayerNormMLP(4, 8)
