"""nanochat's model and its optimizer, MuonAdamW, at a toy size: training steps and a few sampled tokens."""

import os

# The optimizer's steps are compiled functions, which are compared without the compiler here.
os.environ["TORCHDYNAMO_DISABLE"] = "1"

import torch
from nanochat.gpt import GPT, GPTConfig

torch.manual_seed(0)
with torch.device("meta"):
    model = GPT(
        GPTConfig(
            sequence_len=32, vocab_size=96, n_layer=4, n_head=2, n_kv_head=1, n_embd=64, window_pattern="SL"
        )
    )
model.to_empty(device="cpu")
model.init_weights()
optimizer = model.setup_optimizer()
ids = (torch.arange(4 * 33) * 7 % 89).reshape(4, 33)
for step in range(5):
    loss = model(ids[:, :-1], ids[:, 1:].contiguous())
    loss.backward()
    squares = [p.grad.double().pow(2).sum() for p in model.parameters() if p.grad is not None]
    optimizer.step()
    model.zero_grad(set_to_none=True)
    print(
        f"step {step}: loss {loss.item():.6f} gradient {torch.stack(squares).sum().sqrt().item():.5f}",
        flush=True,
    )
print("tokens", *model.generate([1, 8, 15], max_tokens=8, temperature=0.0))
