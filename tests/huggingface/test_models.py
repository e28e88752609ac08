"""Models of transformers, unmodified: the numbers and the words of PyTorch, and files both ways."""

from __future__ import annotations

import sys

import pytest

from tests.golden.verdict import compare
from tests.huggingface import model_cases


@pytest.mark.parametrize("family", model_cases.FAMILIES)
def test_step_and_generation(family, transformers):
    import torch

    if sys.version_info < (3, 11) and family in ("mamba2", "jamba"):
        pytest.skip(
            "transformers 5.20.2, the last release for Python 3.10, computes another loss than 5.23.0"
        )

    compare("transformers", f"family {family}", model_cases.run(torch, transformers, family))


@pytest.mark.parametrize("options", [{}, {"dtype": "bfloat16"}])
def test_saved_and_loaded(options, transformers, tmp_path):
    import torch

    model = model_cases.build(torch, transformers, "llama").eval()
    ids = torch.arange(12).view(1, 12)
    model.save_pretrained(tmp_path)
    loaded = transformers.AutoModelForCausalLM.from_pretrained(tmp_path, **options).eval()
    assert all(p.device.type == "cpu" for p in loaded.parameters())
    assert loaded.dtype is (torch.bfloat16 if options else torch.float32)
    with torch.no_grad():
        difference = (model(ids).logits - loaded(ids).logits.float()).abs().max().item()
    assert difference == 0 if not options else difference < 1e-2


def test_on_the_meta_device(transformers):
    import torch

    _, configuration, arguments = model_cases.FAMILIES["llama"]
    large = {
        **arguments,
        "hidden_size": 8192,
        "intermediate_size": 28672,
        "vocab_size": 128256,
        "num_hidden_layers": 4,
    }
    with torch.device("meta"):
        model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**large))
    assert sum(p.numel() for p in model.parameters()) > 5e9
    assert {p.device.type for p in model.parameters()} == {"meta"}
