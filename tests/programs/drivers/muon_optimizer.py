"""Modded-nanogpt's optimizer, Muon, and its model at a toy size: what one of its records defines, without its main program."""

import ast
from pathlib import Path

import torch

RECORD = Path("records/track_1_short/2024-10-10_Muon/train_gpt2.py")
tree = ast.parse(RECORD.read_text())
kinds = ast.Import, ast.ImportFrom, ast.ClassDef, ast.FunctionDef
defined = [node for node in tree.body if isinstance(node, kinds)]
assigned = [
    n for n in tree.body if isinstance(n, ast.Assign) and "zeropower_backends" in ast.unparse(n.targets[0])
]
space: dict = {"__name__": "record"}
body = sorted([*defined, *assigned], key=lambda node: node.lineno)
exec(compile(ast.Module(body, type_ignores=[]), str(RECORD), "exec"), space)

for backend in ("newtonschulz5", "svd"):
    torch.manual_seed(0)
    model = space["GPT"](space["GPTConfig"](vocab_size=64, n_layer=2, n_head=2, n_embd=32))
    ids = (torch.arange(4 * 33) * 7 % 61).reshape(4, 33)
    optimizers = [
        torch.optim.AdamW(model.lm_head.parameters(), lr=3e-3, betas=(0.9, 0.95), weight_decay=0),
        space["Muon"](model.transformer.h.parameters(), lr=3e-4, momentum=0.95, backend=backend),
    ]
    for step in range(4):
        _, loss = model(ids[:, :-1], ids[:, 1:].contiguous(), return_logits=False)
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        model.zero_grad()
        print(f"{backend} step {step}: loss {loss.item():.6f}", flush=True)
