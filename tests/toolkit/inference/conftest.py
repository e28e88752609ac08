"""A tiny Llama with random weights, in a folder as transformers writes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from msadapter import alias
from tests.toolkit.data import toys


@pytest.fixture(autouse=True)
def _torch(torch_by_name):
    """`import torch` is this project in every test of this folder."""


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory) -> Path:
    transformers = pytest.importorskip("transformers", reason="needs the extra hf")
    before = alias.installed()
    alias.install()
    import torch

    folder = toys.make_tokenizer(tmp_path_factory.mktemp("llama"))
    size = len(transformers.AutoTokenizer.from_pretrained(folder))
    config = transformers.LlamaConfig(
        vocab_size=size,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=256,
        initializer_range=0.3,
        bos_token_id=256,
        eos_token_id=257,
    )
    torch.manual_seed(5)
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    if not before:
        alias.uninstall()
    return folder
