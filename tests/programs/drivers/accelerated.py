"""A training loop of accelerate: accumulation, clipping, bfloat16, saving and loading of the state."""

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, TensorDataset

for precision in ("no", "bf16"):
    accelerator = Accelerator(cpu=True, mixed_precision=precision, gradient_accumulation_steps=2)
    set_seed(5)
    x = torch.randn(48, 6)
    loader = DataLoader(TensorDataset(x, x.pow(2).sum(1, keepdim=True)), 8, shuffle=True)
    model = torch.nn.Sequential(torch.nn.Linear(6, 12), torch.nn.GELU(), torch.nn.Linear(12, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for epoch in range(2):
        for inputs, targets in loader:
            with accelerator.accumulate(model):
                loss = torch.nn.functional.mse_loss(model(inputs), targets)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
            print(precision, epoch, f"{loss.item():.5f}" if precision == "no" else f"{loss.item():.2f}")
    accelerator.save_state(f"state-{precision}")
    before = [p.clone() for p in model.parameters()]
    torch.nn.init.zeros_(accelerator.unwrap_model(model)[0].weight)
    accelerator.load_state(f"state-{precision}")
    print("restored", all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True)))
    Accelerator._instances = None
    accelerator.free_memory()
    from accelerate.state import AcceleratorState, GradientState, PartialState

    for state in (AcceleratorState, GradientState, PartialState):
        state._reset_state()
