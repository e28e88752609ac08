"""Gemma 2's soft cap, scale and windows in Megatron's model, by a specification of layers of this project."""

from __future__ import annotations

import importlib
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from megatron_ms import commands
from megatron_ms.models.prove_megatron import make_tokenizer
from megatron_ms.models.toys import TOYS
from megatron_ms.training import folder as folders
from tests.toolkit.inference.conftest import _torch  # noqa: F401
from tests.toolkit.llm import laid_out

pytest.importorskip("transformers", reason="needs the extra hf")
TOY = TOYS["Gemma 2"]
PARTS = {
    "attn_logit_softcapping": None,
    "final_logit_softcapping": None,
    "query_pre_attn_scalar": 16,  # the width of a head, which counts without this flag
    "sliding_window": 64,
}


@pytest.mark.parametrize("name", PARTS)
def test_each_part_is_visible_in_the_toy(name) -> None:
    """The proofs compare logits within 1e-4, so a part that Megatron's model lacked would be noticed."""
    if sys.version_info < (3, 11) and name == "attn_logit_softcapping":
        pytest.skip(
            "transformers 5.20.2, the last release for Python 3.10, computes this toy without the cap"
        )
    from megatron_ms.conversion import forward

    expected = forward.logits(TOY.build())
    other = forward.logits(replace(TOY, config=TOY.config | {name: PARTS[name]}).build())
    assert abs(expected - other).max() > 0.01 * abs(expected).max()


@pytest.fixture
def spec(monkeypatch) -> ModuleType:
    """The module over an attention like Megatron's, and with flags that a test may change."""
    import torch

    class DotProductAttention(torch.nn.Module):
        def __init__(
            self, config: Any, layer: int, mask_type: Any, kind: str, dropout: Any, scale: Any, comm: Any
        ) -> None:
            super().__init__()
            self.scale = scale
            self.scale_mask_softmax = Softmax()

        def forward(self, query: Any, key: Any, value: Any, mask: Any) -> Any:
            scores = torch.einsum("qbhd,kbhd->bhqk", query, key) * self.scale
            return torch.einsum("bhqk,kbhd->qbhd", self.scale_mask_softmax(scores, mask), value)

    class Softmax(torch.nn.Module):
        scaled_masked_softmax_fusion = True

        def forward(self, scores: Any, mask: Any) -> Any:
            assert not self.scaled_masked_softmax_fusion
            if mask is None:
                mask = torch.ones(scores.shape[2:], dtype=torch.bool).triu(1)
            return torch.softmax(scores.masked_fill(mask, -10000.0), -1)

    class TransformerLayerWithPostNorm(torch.nn.Module):
        def __init__(self, config: Any, submodules: Any, number: int, dropout: Any) -> None:
            super().__init__()
            self.is_sliding, self.interleave_sliding_window = number % 2 == 1, args.interleave_sliding_window
            self.self_attention = SimpleNamespace(core_attention=SimpleNamespace(window=None))

    attention = SimpleNamespace(submodules=SimpleNamespace(core_attention=None))
    layers = SimpleNamespace(module=None, submodules=SimpleNamespace(self_attention=attention))
    args = SimpleNamespace(
        use_flash_attn=False, context_parallel_size=1, reset_attention_mask=False, apply_query_key_layer_scaling=False,
        query_pre_attn_scalar=24, attn_logit_softcapping=2.0, interleave_sliding_window=3,
    )  # fmt: skip
    upstream = {
        "megatron.core": {"parallel_state": SimpleNamespace(get_pipeline_model_parallel_rank=lambda: 1)},
        "megatron.core.transformer.dot_product_attention": {"DotProductAttention": DotProductAttention},
        "megatron.training": {"get_args": lambda: args},
        "mindspeed_llm.tasks.models.spec": {"gemma2_spec": SimpleNamespace(layer_spec=layers)},
        "mindspeed_llm.tasks.models.transformer.transformer_layer": {
            "TransformerLayerWithPostNorm": TransformerLayerWithPostNorm
        },
    }
    for name in upstream:
        parts = name.split(".")
        for count in range(1, len(parts)):
            monkeypatch.setitem(sys.modules, ".".join(parts[:count]), ModuleType(".".join(parts[:count])))
    for name, content in upstream.items():
        module = ModuleType(name)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.delitem(sys.modules, "megatron_ms.models.gemma2_spec", raising=False)
    found = importlib.import_module("megatron_ms.models.gemma2_spec")
    found.args, found.upstream_spec = args, layers
    yield found
    sys.modules.pop("megatron_ms.models.gemma2_spec", None)


@pytest.mark.parametrize("window", [None, 3])
@pytest.mark.parametrize("masked", [False, True])
def test_attention_is_that_of_transformers(spec, window, masked) -> None:
    """With and without a window; with a mask, as a forward pass gives it, and without, as in a training."""
    import torch
    from transformers.models.gemma2.modeling_gemma2 import eager_attention_forward

    torch.manual_seed(1)
    query, key, value = (4 * torch.randn(9, 2, 4, 8) for _ in range(3))
    attention = spec.CappedAttention(None, 1, None, "self", softmax_scale=1.0)
    attention.window = window
    hidden = spec.hidden(9, 9, window or 9, "cpu")
    found = attention(query, key, value, hidden if masked else None)
    module = SimpleNamespace(num_key_value_groups=1, training=False)
    theirs = [one.permute(1, 2, 0, 3) for one in (query, key, value)]
    mask = torch.zeros(hidden.shape).masked_fill(hidden, -10000.0)
    expected = eager_attention_forward(module, *theirs, mask, scaling=24**-0.5, softcap=2.0)[0]
    torch.testing.assert_close(found, expected.transpose(0, 1))
    plain = eager_attention_forward(module, *theirs, mask, scaling=24**-0.5)[0]
    assert (plain.transpose(0, 1) - found).abs().max() > 0.1


def test_a_query_sees_the_last_keys(spec) -> None:
    for queries, keys, window in ((5, 5, 2), (1, 6, 3), (2, 6, 9)):
        mask = spec.hidden(queries, keys, window, "cpu")
        assert mask.shape == (1, 1, queries, keys)
        for row in range(queries):
            own = keys - queries + row
            seen = [place for place in range(keys) if not mask[0, 0, row, place]]
            assert seen == list(range(max(0, own - window + 1), own + 1))


def test_every_second_layer_has_a_window(spec) -> None:
    """Where stages have different lengths, upstream's own count in the whole model is wrong."""
    even = SimpleNamespace(num_layer_list=None)
    uneven = SimpleNamespace(num_layer_list=[1, 4], layer_offset=[0, 1, 5])
    for config, windows in ((even, [3, None, 3, None]), (uneven, [None, 3, None, 3])):
        layers = [spec.CappedLayer(config, None, number) for number in range(1, 5)]
        assert [layer.self_attention.core_attention.window for layer in layers] == windows
        assert [layer.is_sliding for layer in layers] == [bool(window) for window in windows]
    made, theirs = spec.layer_spec, spec.upstream_spec
    assert made.module is spec.CappedLayer
    assert made.submodules.self_attention.submodules.core_attention is spec.CappedAttention
    assert theirs.module is None and theirs.submodules.self_attention.submodules.core_attention is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("use_flash_attn", True),
        ("context_parallel_size", 2),
        ("reset_attention_mask", True),
        ("apply_query_key_layer_scaling", True),
    ],
)
def test_an_attention_without_the_cap_is_refused(spec, name, value) -> None:
    setattr(spec.args, name, value)
    flag = "--" + name.replace("_", "-")
    with pytest.raises(NotImplementedError, match=f"Gemma 2 in megatron_ms.* does not support {flag}"):
        spec.CappedAttention(None, 1, None, "self")


@pytest.mark.slow
def test_a_training_has_the_window_too(tmp_path, monkeypatch) -> None:
    """Upstream makes no mask for it, and its own layers apply their window to a mask alone. The second layout has a stage of
    three layers, whose first one has no window."""
    trees = laid_out()
    monkeypatch.chdir(tmp_path)
    rows = [" ".join(str(3 + (start * step) % 250) for step in range(80)) for start in range(40)]
    Path("rows.jsonl").write_text("".join(f'{{"text": "{row}"}}\n' for row in rows))
    TOY.make(tmp_path / "model")
    make_tokenizer(tmp_path / "model", 256)
    Path("toy.yaml").write_text(
        f"recipe: {TOY.recipe}\nrun: {{trees: {trees}, device: npu}}\ndataset: {{sequence_length: 32}}\n"
        "data: {sources: rows.jsonl, tokenizer: model, output: texts}\nsave: {interval: null}\n"
        "convert: {source: model, output: one, to: megatron, forward: false}\nresume: {load: one}\n"
        "train: {iterations: 1, micro_batch: 1, global_batch: 4}\n"
    )
    layout = ["parallel.pipeline=2", "parallel.num_layer_list='1,3'"]
    assert commands.main(["data", "toy.yaml", *TOY.words()]) == 0
    assert commands.main(["convert", "toy.yaml", *TOY.words()]) == 0
    assert commands.main(["convert", "toy.yaml", *TOY.words(), *layout, "convert.output=two"]) == 0
    losses = {
        name: _loss(name, words)
        for name, words in {
            "plain": [],
            "with-mask": ["dataset.attention_mask_type=general"],
            "stages": [*layout, "run.processes=2", "resume.load=two"],
            "whole": ["model.interleave_sliding_window=null"],
        }.items()
    }
    assert losses["with-mask"] == pytest.approx(losses["plain"], rel=1e-6)
    assert losses["stages"] == pytest.approx(losses["plain"], rel=1e-6)
    assert abs(losses["whole"] - losses["plain"]) > 1e-3


def _loss(name: str, words: list[str]) -> float:
    """The first loss of a training of that name."""
    assert commands.main(["train", "toy.yaml", *TOY.words(), *words, f"name={name}"]) == 0
    (run,) = folders.runs(Path("runs"), name)
    (record,) = run.records()
    return float(record["lm loss"])
