"""What the drivers print: one line for each model, with numbers that any mistake would change."""

import torch


def step(name: str, model, output, target=None) -> None:
    """Print a model's loss (the mean square of its output, or of its distance to a target) and the norm of its gradients."""
    loss = output.float().pow(2).mean() if target is None else (output - target).float().pow(2).mean()
    model.zero_grad()
    loss.backward()
    squares = [p.grad.double().pow(2).sum() for p in model.parameters() if p.grad is not None]
    print(
        f"{name}: loss {loss.item():.7g} gradient {torch.stack(squares).sum().sqrt().item():.6g}", flush=True
    )
