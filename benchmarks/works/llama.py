"""A training step (forward, backward, AdamW) of a transformers Llama: hidden size 512, 4 layers, sequence length 256."""

from __future__ import annotations

import torch

from .registry import NotHere

BATCH, SEQUENCE, VOCABULARY = 2, 256, 4096


def training_step(wrap=lambda model: model):
    """Prepares the step of a model that ``wrap`` can replace, for example by its compiled form."""
    try:
        from transformers import LlamaConfig, LlamaForCausalLM
    except ImportError as error:
        raise NotHere(f"transformers is not installed ({error})") from None
    torch.manual_seed(1234)
    config = LlamaConfig(
        hidden_size=512,
        intermediate_size=1376,
        num_hidden_layers=4,
        num_attention_heads=8,
        num_key_value_heads=8,
        vocab_size=VOCABULARY,
        max_position_embeddings=SEQUENCE,
    )
    model = wrap(LlamaForCausalLM(config))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    tokens = torch.randint(0, VOCABULARY, (BATCH, SEQUENCE))

    def step():
        optimizer.zero_grad()
        loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()
        return loss.item()

    return step
