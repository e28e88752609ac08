"""A training run with a scaled loss and an overflow, which runs on PyTorch (golden data) and on msadapter."""


def run_scaler(torch) -> list:
    """Return (parameters, scale, state) after each of 12 steps. Step 5 overflows."""
    p = torch.nn.Parameter(torch.tensor([0.5, -1.0, 2.0, 0.25]))
    optimizer = torch.optim.SGD([p], lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=3)
    seen = []
    for i in range(12):
        optimizer.zero_grad()
        loss = (p * torch.arange(4)).pow(2).sum() * (float("inf") if i == 5 else 0.01)
        scaler.scale(loss).backward()
        if i % 2:
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_([p], 1.0)
        scaler.step(optimizer)
        scaler.update()
        seen.append([p.tolist(), scaler.get_scale(), scaler.state_dict()])
        if i == 7:
            state = scaler.state_dict()
            scaler = torch.amp.GradScaler("cpu")
            scaler.load_state_dict(state)
    return seen


def golden_cases() -> dict:
    return {"scaler": run_scaler}
