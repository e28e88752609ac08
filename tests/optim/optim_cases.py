"""Optimizers and schedules on small problems: the same code runs on PyTorch (golden data) and on msadapter."""

import warnings

import numpy as np

OPTIMIZERS = {
    "sgd": ("SGD", {"lr": 0.1}),
    "sgd_nesterov": ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    "sgd_maximize": ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.1, "maximize": True}),
    "adam": ("Adam", {"lr": 0.01, "foreach": False}),
    "adam_amsgrad": ("Adam", {"lr": 0.01, "amsgrad": True, "weight_decay": 0.1, "maximize": True}),
    "adamw": ("AdamW", {"lr": 0.01}),
    "adamw_amsgrad": ("AdamW", {"lr": 0.01, "amsgrad": True}),
    "adamax": ("Adamax", {"weight_decay": 0.1}),
    "nadam": ("NAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True}),
    "radam": ("RAdam", {"weight_decay": 0.1}),
    "adagrad": ("Adagrad", {"lr_decay": 0.1, "weight_decay": 0.01, "initial_accumulator_value": 0.1}),
    "adadelta": ("Adadelta", {"weight_decay": 0.1}),
    "rmsprop": ("RMSprop", {}),
    "rmsprop_centered": ("RMSprop", {"momentum": 0.9, "centered": True, "weight_decay": 0.1}),
    "rprop": ("Rprop", {}),
    "asgd": ("ASGD", {"t0": 3, "weight_decay": 0.1}),
    "adafactor": ("Adafactor", {"weight_decay": 0.1}),
    # Without a line search, more and larger steps jump about, so that the last bit of a gradient decides where they end.
    "lbfgs": ("LBFGS", {"lr": 0.1, "max_iter": 2}),
    "lbfgs_wolfe": ("LBFGS", {"line_search_fn": "strong_wolfe"}),
}


def run_optimizer(torch, name: str, steps: int = 8, resume_at: int | None = None) -> dict:
    """The parameters after the steps, and the keys of the state. resume_at: continue with a new optimizer from a state_dict."""
    kind, options = OPTIMIZERS[name]
    rng = np.random.RandomState(3)
    weights = [
        torch.nn.Parameter(torch.from_numpy(rng.randn(*shape).astype(np.float32))) for shape in ((4, 5), (5,))
    ]
    x = torch.from_numpy(rng.randn(7, 4).astype(np.float32))
    optimizer = getattr(torch.optim, kind)(weights, **options)

    def closure():
        optimizer.zero_grad()
        loss = ((x @ weights[0] + weights[1]).tanh() - 0.3).pow(2).sum()
        loss.backward()
        return loss

    for i in range(steps):
        if kind == "LBFGS":
            optimizer.step(closure)
        else:
            closure()
            optimizer.step()
        if i == resume_at:
            state = optimizer.state_dict()
            optimizer = getattr(torch.optim, kind)(weights, **options)
            optimizer.load_state_dict(state)
    saved = optimizer.state_dict()
    return {
        "values": [w.detach().numpy().reshape(-1).tolist() for w in weights],
        "state": sorted(saved["state"][0]) if saved["state"] else [],
        "group": sorted(saved["param_groups"][0]),
    }


SCHEDULES = {
    "lambda": lambda s, o: s.LambdaLR(o, lambda e: 0.9**e),
    "multiplicative": lambda s, o: s.MultiplicativeLR(o, [lambda e: 0.9, lambda e: 0.8]),
    "step": lambda s, o: s.StepLR(o, 7),
    "multistep": lambda s, o: s.MultiStepLR(o, [3, 9, 9, 20]),
    "constant": lambda s, o: s.ConstantLR(o, 0.3, 6),
    "linear": lambda s, o: s.LinearLR(o, 0.2, 0.9, 8),
    "exponential": lambda s, o: s.ExponentialLR(o, 0.9),
    "polynomial": lambda s, o: s.PolynomialLR(o, 20, 2.0),
    "cosine": lambda s, o: s.CosineAnnealingLR(o, 9, 0.01),
    "restarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 5, 2, 0.01),
    "cyclic": lambda s, o: s.CyclicLR(o, 0.1, 0.9, 5, 7),
    "cyclic_exp": lambda s, o: s.CyclicLR(o, 0.1, 0.9, 5, mode="exp_range", gamma=0.9),
    "onecycle": lambda s, o: s.OneCycleLR(o, 0.9, 60),
    "onecycle_3": lambda s, o: s.OneCycleLR(o, [0.9, 0.5], 60, three_phase=True, anneal_strategy="linear"),
    "sequential": lambda s, o: s.SequentialLR(
        o, [s.ConstantLR(o, 0.1, 2), s.ExponentialLR(o, 0.9), s.CosineAnnealingLR(o, 5)], [3, 11]
    ),
    "chained": lambda s, o: s.ChainedScheduler([s.ConstantLR(o, 0.1, 2), s.ExponentialLR(o, 0.9)]),
    "plateau": lambda s, o: s.ReduceLROnPlateau(
        o, mode="max", patience=2, cooldown=3, threshold_mode="abs", min_lr=[0.01, 0.02]
    ),
}


def run_schedule(torch, name: str, steps: int = 40) -> list:
    """(rate, momentum) of both groups after each step. The schedule is saved and restored half-way."""
    first, second = (torch.nn.Parameter(torch.ones(1)) for _ in range(2))
    optimizer = torch.optim.SGD([{"params": [first], "lr": 0.5}, {"params": [second]}], lr=0.1, momentum=0.9)
    seen = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        schedule = SCHEDULES[name](torch.optim.lr_scheduler, optimizer)
        for i in range(steps):
            optimizer.step()
            schedule.step(*([abs((i % 7) - 3) + 0.1 * i] if name == "plateau" else []))
            seen.append([[g["lr"], g["momentum"]] for g in optimizer.param_groups])
            if i == steps // 2:
                schedule.load_state_dict(schedule.state_dict())
    return seen


def _parameter(torch):
    return torch.nn.Parameter(torch.ones(2))


ERRORS = {
    "empty": lambda t: t.optim.SGD([], lr=0.1),
    "tensor": lambda t: t.optim.SGD(_parameter(t), lr=0.1),
    "negative lr": lambda t: t.optim.SGD([_parameter(t)], lr=-1),
    "twice": lambda t: (lambda p: t.optim.SGD([{"params": [p]}, {"params": [p]}], lr=0.1))(_parameter(t)),
    "beta": lambda t: t.optim.Adam([_parameter(t)], betas=(1.0, 0.9)),
    "non-leaf": lambda t: t.optim.SGD([_parameter(t) * 2], lr=0.1),
    "text": lambda t: t.optim.SGD(["a"], lr=0.1),
    "set": lambda t: t.optim.SGD([{"params": {_parameter(t)}}], lr=0.1),
    "groups": lambda t: t.optim.SGD([_parameter(t)]).load_state_dict({"state": {}, "param_groups": []}),
    "scheduler": lambda t: t.optim.lr_scheduler.StepLR(3, 3),
    "half named": lambda t: t.optim.SGD([("a", _parameter(t)), _parameter(t)]),
}


def error_of(torch, name: str) -> list:
    """[class, text] of the error."""
    try:
        ERRORS[name](torch)
    except Exception as err:
        return [type(err).__name__, str(err)]
    return ["none", ""]


def golden_cases() -> dict:
    return {
        **{f"optimizer {name}": lambda t, n=name: run_optimizer(t, n) for name in OPTIMIZERS},
        **{f"schedule {name}": lambda t, n=name: run_schedule(t, n) for name in SCHEDULES},
        **{f"error {name}": lambda t, n=name: error_of(t, n) for name in ERRORS},
    }
