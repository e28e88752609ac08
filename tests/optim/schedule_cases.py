"""Schedules with options away from their defaults, jumps to an epoch, resumed runs, states and errors."""

from __future__ import annotations

import warnings

from tests.golden.answers import refusal
from tests.optim.optim_cases import SCHEDULES


def _optimizer(torch, kind="SGD", count=2, tensor=False, **options):
    first, second = (torch.nn.Parameter(torch.ones(1)) for _ in range(2))
    rates = [0.5, 0.1]
    if tensor:
        rates = [torch.tensor(r, dtype=torch.float64) for r in rates]
    groups = [{"params": [first], "lr": rates[0]}, {"params": [second]}][:count]
    momentum = {"momentum": 0.9} if kind == "SGD" else {}
    return getattr(torch.optim, kind)(groups, lr=rates[1], **momentum, **options)


def _seen(optimizer) -> list:
    """Rate and momentum of every group."""
    return [
        [float(g["lr"]), float(g["betas"][0] if "betas" in g else g["momentum"])]
        for g in optimizer.param_groups
    ]


def _run(torch, make, steps=14, **options) -> list:
    optimizer = _optimizer(torch, **options)
    schedule = make(torch.optim.lr_scheduler, optimizer)
    found = [_seen(optimizer)]
    for _ in range(steps):
        optimizer.step()
        schedule.step()
        found.append(_seen(optimizer) + [[float(v) for v in schedule.get_last_lr()]])
    return found


def _jumps(make):
    """Explicit epochs: forward, backward, and to the end of the schedule."""

    def case(torch):
        optimizer = _optimizer(torch)
        schedule = make(torch.optim.lr_scheduler, optimizer)
        optimizer.step()
        found = []
        for epoch in (1, 5, 6, 2, 9, 20, 21, 3, 55):
            schedule.step(epoch)
            found.append([_seen(optimizer), schedule.last_epoch])
            schedule.step()
            found.append([_seen(optimizer), schedule.last_epoch])
        return found

    return case


def _resumed(make):
    """A schedule created with last_epoch, as after loading an optimizer from a file."""

    def case(torch):
        found = []
        for last in (1, 4, 9):
            optimizer = _optimizer(torch)
            for group, lr in zip(optimizer.param_groups, (0.8, 0.4), strict=True):
                group["initial_lr"] = lr
                group["max_lr"], group["min_lr"] = 0.9, 0.01
                group["base_momentum"], group["max_momentum"] = 0.7, 0.95
            schedule = make(torch.optim.lr_scheduler, optimizer, last)
            found.append(_seen(optimizer))
            for _ in range(6):
                optimizer.step()
                schedule.step()
                found.append(_seen(optimizer))
        return found

    return case


RESUMABLE = {
    "lambda": lambda s, o, e: s.LambdaLR(o, lambda e: 0.9**e, e),
    "multiplicative": lambda s, o, e: s.MultiplicativeLR(o, lambda e: 0.9, e),
    "step": lambda s, o, e: s.StepLR(o, 3, 0.5, e),
    "multistep": lambda s, o, e: s.MultiStepLR(o, [3, 5], 0.5, e),
    "constant": lambda s, o, e: s.ConstantLR(o, 0.3, 6, e),
    "linear": lambda s, o, e: s.LinearLR(o, 0.2, 0.9, 8, e),
    "exponential": lambda s, o, e: s.ExponentialLR(o, 0.9, e),
    "polynomial": lambda s, o, e: s.PolynomialLR(o, 12, 2.0, e),
    "cosine": lambda s, o, e: s.CosineAnnealingLR(o, 9, 0.01, e),
    "restarts": lambda s, o, e: s.CosineAnnealingWarmRestarts(o, 5, 2, 0.01, e),
    "cyclic": lambda s, o, e: s.CyclicLR(o, 0.1, 0.9, 5, 7, last_epoch=e),
    "onecycle": lambda s, o, e: s.OneCycleLR(o, 0.9, 40, last_epoch=e),
}

OPTIONS = {
    "step_defaults": (lambda s, o: s.StepLR(o, 3), {}),
    "multistep_unordered": (lambda s, o: s.MultiStepLR(o, [9, 3, 3], gamma=0.5), {}),
    "constant_defaults": (lambda s, o: s.ConstantLR(o), {}),
    "constant_of_a_tensor": (lambda s, o: s.ConstantLR(o, 0.25, 4), {"tensor": True}),
    "linear_defaults": (lambda s, o: s.LinearLR(o), {}),
    "linear_down": (lambda s, o: s.LinearLR(o, 1.0, 0.25, 4), {}),
    "linear_to_zero": (lambda s, o: s.LinearLR(o, 0.5, 0.0, 6), {}),
    "polynomial_defaults": (lambda s, o: s.PolynomialLR(o), {}),
    "cosine_beyond": (lambda s, o: s.CosineAnnealingLR(o, 4, 0.02), {}),
    "cosine_of_a_tensor": (lambda s, o: s.CosineAnnealingLR(o, 4), {"tensor": True}),
    "restarts_same": (lambda s, o: s.CosineAnnealingWarmRestarts(o, 4), {}),
    "restarts_times_3": (lambda s, o: s.CosineAnnealingWarmRestarts(o, 2, 3, 0.05), {}),
    "cyclic_triangular2": (lambda s, o: s.CyclicLR(o, 0.1, 0.9, 3, mode="triangular2"), {}),
    "cyclic_exp": (lambda s, o: s.CyclicLR(o, 0.1, 0.9, 3, 2, mode="exp_range", gamma=0.8), {}),
    "cyclic_own_scale": (lambda s, o: s.CyclicLR(o, 0.1, 0.9, 3, scale_fn=lambda x: 0.7**x), {}),
    "cyclic_own_scale_of_iterations": (
        lambda s, o: s.CyclicLR(o, 0.1, 0.9, 3, scale_fn=lambda x: 0.9**x, scale_mode="iterations"),
        {},
    ),
    "cyclic_lists": (
        lambda s, o: s.CyclicLR(
            o, [0.1, 0.2], [0.9, 0.5], 3, 4, base_momentum=[0.3, 0.5], max_momentum=[0.6, 0.95]
        ),
        {},
    ),
    "cyclic_adam": (lambda s, o: s.CyclicLR(o, 0.1, 0.9, 3), {"kind": "Adam"}),
    "cyclic_without_momentum": (lambda s, o: s.CyclicLR(o, 0.1, 0.9, 3, cycle_momentum=False), {}),
    "cyclic_of_a_tensor": (lambda s, o: s.CyclicLR(o, 0.1, 0.9, 3), {"tensor": True}),
    "onecycle_epochs": (lambda s, o: s.OneCycleLR(o, 0.9, epochs=5, steps_per_epoch=4), {}),
    "onecycle_adam": (lambda s, o: s.OneCycleLR(o, 0.9, 16), {"kind": "Adam"}),
    "onecycle_linear": (lambda s, o: s.OneCycleLR(o, 0.9, 16, pct_start=0.5, anneal_strategy="linear"), {}),
    "onecycle_three_phases": (
        lambda s, o: s.OneCycleLR(o, [0.9, 0.3], 16, pct_start=0.25, three_phase=True, div_factor=5.0),
        {},
    ),
    "onecycle_lists": (
        lambda s, o: s.OneCycleLR(
            o, 0.9, 16, base_momentum=[0.2, 0.3], max_momentum=[0.8, 0.9], final_div_factor=10.0
        ),
        {},
    ),
    "onecycle_without_momentum": (lambda s, o: s.OneCycleLR(o, 0.9, 16, cycle_momentum=False), {}),
    "sequential_of_chained": (
        lambda s, o: s.SequentialLR(
            o,
            [
                s.ChainedScheduler([s.ConstantLR(o, 0.1, 2), s.ExponentialLR(o, 0.9)]),
                s.LinearLR(o, 0.5, 1.0, 3),
                s.StepLR(o, 2),
            ],
            [4, 8],
        ),
        {},
    ),
    "sequential_of_sequential": (
        lambda s, o: s.SequentialLR(
            o,
            [
                s.SequentialLR(o, [s.LinearLR(o, 0.5), s.ExponentialLR(o, 0.8)], [3]),
                s.CosineAnnealingLR(o, 5),
            ],
            [6],
        ),
        {},
    ),
    "sequential_of_tensors": (
        lambda s, o: s.SequentialLR(o, [s.ConstantLR(o, 0.5, 2), s.ExponentialLR(o, 0.9)], [3]),
        {"tensor": True},
    ),
    "chained_of_chained": (
        lambda s, o: s.ChainedScheduler(
            [s.ChainedScheduler([s.ConstantLR(o, 0.1, 2), s.ExponentialLR(o, 0.9)], o), s.StepLR(o, 4)]
        ),
        {},
    ),
}


def _swalr(torch, **options):
    return _run(torch, lambda s, o: torch.optim.swa_utils.SWALR(o, **options), 8)


def swalr_cos(torch):
    return _swalr(torch, swa_lr=0.05, anneal_epochs=5)


def swalr_linear_lists(torch):
    return _swalr(torch, swa_lr=[0.05, 0.3], anneal_epochs=4, anneal_strategy="linear")


def swalr_at_once(torch):
    return _swalr(torch, swa_lr=0.05, anneal_epochs=0)


def swalr_defaults(torch):
    return _swalr(torch, swa_lr=0.05)


def fractional_epochs_of_restarts(torch):
    found = []
    for times, length in ((1, 5), (2, 3), (3, 2)):
        optimizer = _optimizer(torch)
        schedule = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, length, times, 0.01)
        optimizer.step()
        for epoch in (0.25, 2.5, 3.0, 5, 5.75, 8, 9.5, 26.5, 1, 2):
            schedule.step(epoch)
            found.append([_seen(optimizer), schedule.last_epoch, schedule.T_cur, schedule.T_i])
        for _ in range(4):
            schedule.step()
            found.append([_seen(optimizer), schedule.last_epoch, schedule.T_cur, schedule.T_i])
    return found


def negative_epoch_of_restarts(torch):
    schedule = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(_optimizer(torch), 5)
    return refusal(schedule.step, -1)


def _plateau(mode, threshold_mode, tensor=False, **options):
    def case(torch):
        optimizer = _optimizer(torch, tensor=tensor)
        schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(
            optimizer, mode=mode, threshold_mode=threshold_mode, **options
        )
        found = []
        for k, metric in enumerate(
            [3.0, 2.5, 2.5, 2.4999, 2.4, 2.41, 2.5, 2.6, 2.7, 2.6, 2.4, 2.8, 3.2, 3.1, 3.3]
        ):
            schedule.step(torch.tensor(metric) if k % 2 else metric)
            found.append(
                [
                    _seen(optimizer),
                    schedule.best,
                    schedule.num_bad_epochs,
                    schedule.cooldown_counter,
                    schedule.in_cooldown,
                    [float(v) for v in schedule.get_last_lr()],
                ]
            )
        return [found, schedule.last_epoch]

    return case


PLATEAUS = {
    f"plateau_{mode}_{threshold_mode}_{k}": _plateau(mode, threshold_mode, **options)
    for mode in ("min", "max")
    for threshold_mode in ("rel", "abs")
    for k, options in enumerate(
        [
            {"patience": 0, "threshold": 0.01},
            {"patience": 1, "threshold": 0.1, "cooldown": 2, "factor": 0.5, "min_lr": 0.06},
            {"patience": 1, "threshold": 1e-4, "min_lr": [0.2, 0.001], "eps": 0.02},
            {"patience": 1, "threshold": 0.05, "tensor": True},
        ]
    )
}


def plateau_with_an_epoch_and_a_later_group(torch):
    optimizer = _optimizer(torch)
    schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, min_lr=0.02)
    optimizer.add_param_group({"params": [torch.nn.Parameter(torch.ones(1))], "lr": 0.3})
    for metric, epoch in ((1.0, 4), (2.0, 7), (2.0, None), (2.0, None), (2.0, None)):
        schedule.step(metric, epoch)
    return [_seen(optimizer), schedule.last_epoch, schedule.min_lrs]


def plateau_with_a_list_and_a_later_group(torch):
    optimizer = _optimizer(torch)
    schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, min_lr=[0.02, 0.01])
    optimizer.add_param_group({"params": [torch.nn.Parameter(torch.ones(1))], "lr": 0.3})
    schedule.step(1.0)
    return refusal(schedule.step, 2.0)


class _Falling:
    """A callable object: schedules save its attributes."""

    def __init__(self, base):
        self.base = base

    def __call__(self, x):
        return self.base**x


def state_of_callable_objects(torch):
    found = []
    for make in (
        lambda s, o, base: s.LambdaLR(o, [_Falling(base), lambda e: 1.0]),
        lambda s, o, base: s.MultiplicativeLR(o, [_Falling(base), lambda e: 0.5]),
        lambda s, o, base: s.CyclicLR(o, 0.1, 0.9, 3, scale_fn=_Falling(base)),
    ):
        optimizer = _optimizer(torch)
        schedule = make(torch.optim.lr_scheduler, optimizer, 0.5)
        for _ in range(3):
            optimizer.step()
            schedule.step()
        saved = schedule.state_dict()
        found.append(str(saved.get("lr_lambdas", saved.get("_scale_fn_custom"))))
        other = make(torch.optim.lr_scheduler, optimizer, 0.25)
        other.load_state_dict(saved)
        other.step()
        found.append([_seen(optimizer), other.last_epoch])
    return found


def _saved(make):
    """The saved state after 5 steps without the names of objects, and the rates when a new schedule continues from it."""

    def case(torch):
        space = torch.optim.lr_scheduler
        optimizer = _optimizer(torch)
        schedule = make(space, optimizer)
        steps = [[2.0]] * 6 if isinstance(schedule, space.ReduceLROnPlateau) else [[]] * 6
        for arguments in steps:
            optimizer.step()
            schedule.step(*arguments)
        saved = schedule.state_dict()
        plain = {
            k: v
            for k, v in saved.items()
            if isinstance(v, (int, float, bool, str, list)) and "lambda" not in k
        }
        again = _optimizer(torch)
        other = make(space, again)
        for mine, theirs in zip(again.param_groups, optimizer.param_groups, strict=True):
            mine["lr"], mine["momentum"] = theirs["lr"], theirs["momentum"]
        other.load_state_dict(saved)
        found = []
        for arguments in steps:
            again.step()
            other.step(*arguments)
            found.append(_seen(again))
        inner = saved.get("_schedulers", [])
        plain.pop("_schedulers", None)
        return [plain, [sorted(s) for s in inner], found]

    return case


def _messages(caught) -> list[str]:
    return [str(w.message).split("\n")[0].strip() for w in caught]


def warnings_about_the_order(torch):
    found = []
    for stepped in (False, True):
        optimizer = _optimizer(torch)
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            if stepped:
                optimizer.step()
            schedule.step()
            schedule.step()
        found.append([m.split("  Failure")[0] for m in _messages(caught)])
    return found


def warning_about_a_replaced_step(torch):
    optimizer = _optimizer(torch)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    optimizer.step = lambda: None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        schedule.step()
    return [m.split("See")[0].strip() for m in _messages(caught)]


def warning_about_an_epoch(torch):
    optimizer = _optimizer(torch)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    optimizer.step()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        schedule.step(3)
    return [m.split("Please")[0] for m in _messages(caught)]


def _outside_a_step(make):
    """get_lr() warns if it is not called by step()."""

    def case(torch):
        optimizer = _optimizer(torch)
        schedule = make(torch.optim.lr_scheduler, optimizer)
        if not hasattr(schedule, "_get_lr_called_within_step") or "Sequential" in str(type(schedule)):
            return None
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                rates = [float(v) for v in schedule.get_lr()]
            except Exception as error:
                rates = type(error).__name__
        return [rates, _messages(caught)]

    return case


def steps_are_counted_once(torch):
    """Two schedules wrap the optimizer's step once. Hooks and the closure still work."""
    optimizer = _optimizer(torch)
    calls = []
    optimizer.register_step_pre_hook(lambda *_: calls.append("pre"))
    torch.optim.lr_scheduler.StepLR(optimizer, 2)
    first = optimizer.step
    torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    value = optimizer.step(lambda: 3.5)
    return [optimizer.step is first, value, calls, optimizer._opt_called]


def undone_first_steps(torch):
    space, optimizer = torch.optim.lr_scheduler, _optimizer(torch)
    parts = [space.ConstantLR(optimizer, 0.1, 2), space.ExponentialLR(optimizer, 0.9)]
    chained = space.ChainedScheduler(parts)
    third = space.StepLR(optimizer, 3)
    whole = space.SequentialLR(optimizer, [chained, third], [4])
    before = [s.last_epoch for s in (*parts, third, whole)]
    whole.recursive_undo()
    after = [s.last_epoch for s in (*parts, third)]
    whole.recursive_undo(third)
    return [before, after, third.last_epoch, _seen(optimizer)]


def _error(make, **options):
    return lambda torch: refusal(make, torch.optim.lr_scheduler, _optimizer(torch, **options))


ERRORS = {
    "lambda_count": lambda s, o: s.LambdaLR(o, [lambda e: e]),
    "multiplicative_count": lambda s, o: s.MultiplicativeLR(o, [lambda e: e]),
    "multiplicative_number": lambda s, o: s.MultiplicativeLR(o, [lambda e: e, 3]),
    "multiplicative_plain_number": lambda s, o: s.MultiplicativeLR(o, 3),
    "constant_above": lambda s, o: s.ConstantLR(o, 1.01),
    "constant_below": lambda s, o: s.ConstantLR(o, -0.01),
    "constant_zero": lambda s, o: [s.ConstantLR(o, 0), None][1],
    "constant_one": lambda s, o: [s.ConstantLR(o, 1.0), None][1],
    "linear_start_zero": lambda s, o: s.LinearLR(o, 0),
    "linear_start_above": lambda s, o: s.LinearLR(o, 1.01),
    "linear_end_below": lambda s, o: s.LinearLR(o, 0.5, -0.01),
    "linear_end_above": lambda s, o: s.LinearLR(o, 0.5, 1.01),
    "linear_limits": lambda s, o: [s.LinearLR(o, 1.0, 0.0), None][1],
    "restarts_zero": lambda s, o: s.CosineAnnealingWarmRestarts(o, 0),
    "restarts_one": lambda s, o: [s.CosineAnnealingWarmRestarts(o, 1), None][1],
    "restarts_float": lambda s, o: s.CosineAnnealingWarmRestarts(o, 2.0),
    "restarts_times_zero": lambda s, o: s.CosineAnnealingWarmRestarts(o, 2, 0),
    "restarts_times_float": lambda s, o: s.CosineAnnealingWarmRestarts(o, 2, 2.0),
    "restarts_eta": lambda s, o: s.CosineAnnealingWarmRestarts(o, 2, 2, "a"),
    "cyclic_mode": lambda s, o: s.CyclicLR(o, 0.1, 0.9, mode="a"),
    "cyclic_count": lambda s, o: s.CyclicLR(o, [0.1], 0.9),
    "cyclic_optimizer": lambda s, o: s.CyclicLR(3, 0.1, 0.9),
    "onecycle_nothing": lambda s, o: s.OneCycleLR(o, 0.9),
    "onecycle_half": lambda s, o: s.OneCycleLR(o, 0.9, epochs=3),
    "onecycle_other_half": lambda s, o: s.OneCycleLR(o, 0.9, steps_per_epoch=3),
    "onecycle_zero": lambda s, o: s.OneCycleLR(o, 0.9, 0),
    "onecycle_one": lambda s, o: [s.OneCycleLR(o, 0.9, 10, pct_start=1.0), None][1],
    "onecycle_float": lambda s, o: s.OneCycleLR(o, 0.9, 10.0),
    "onecycle_epochs_zero": lambda s, o: s.OneCycleLR(o, 0.9, epochs=0, steps_per_epoch=3),
    "onecycle_steps_zero": lambda s, o: s.OneCycleLR(o, 0.9, epochs=3, steps_per_epoch=0),
    "onecycle_share": lambda s, o: s.OneCycleLR(o, 0.9, 10, pct_start=1.1),
    "onecycle_share_below": lambda s, o: s.OneCycleLR(o, 0.9, 10, pct_start=-0.1),
    "onecycle_share_int": lambda s, o: s.OneCycleLR(o, 0.9, 10, pct_start=1),
    "onecycle_anneal": lambda s, o: s.OneCycleLR(o, 0.9, 10, anneal_strategy="a"),
    "onecycle_optimizer": lambda s, o: s.OneCycleLR(3, 0.9, 10),
    "onecycle_count": lambda s, o: s.OneCycleLR(o, [0.9], 10),
    "plateau_factor": lambda s, o: s.ReduceLROnPlateau(o, factor=1.0),
    "plateau_mode": lambda s, o: s.ReduceLROnPlateau(o, "a"),
    "plateau_threshold": lambda s, o: s.ReduceLROnPlateau(o, threshold_mode="a"),
    "plateau_count": lambda s, o: s.ReduceLROnPlateau(o, min_lr=[0.1]),
    "plateau_optimizer": lambda s, o: s.ReduceLROnPlateau(3),
    "sequential_nothing": lambda s, o: s.SequentialLR(o, [], []),
    "sequential_milestones": lambda s, o: s.SequentialLR(o, [s.StepLR(o, 3), s.StepLR(o, 3)], [1, 2]),
    "sequential_plateau": lambda s, o: s.SequentialLR(o, [s.StepLR(o, 3), s.ReduceLROnPlateau(o)], [1]),
    "sequential_object": lambda s, o: s.SequentialLR(o, [s.StepLR(o, 3), 7], [1]),
    "chained_nothing": lambda s, o: s.ChainedScheduler([]),
    "chained_object": lambda s, o: s.ChainedScheduler([s.StepLR(o, 3), 7]),
    "resumed_without_initial": lambda s, o: s.StepLR(o, 3, last_epoch=4),
    "abstract": lambda s, o: s.LRScheduler(o),
}


def _swalr_error(**options):
    return lambda torch: refusal(lambda: torch.optim.swa_utils.SWALR(_optimizer(torch), **options))


def too_many_steps_of_onecycle(torch):
    optimizer = _optimizer(torch)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.9, 3)
    found = []
    for _ in range(5):
        optimizer.step()
        found.append(refusal(schedule.step) + _seen(optimizer))
    return found


def schedulers_of_two_optimizers(torch):
    space = torch.optim.lr_scheduler
    one, two = _optimizer(torch), _optimizer(torch)
    pair = [space.StepLR(one, 3), space.StepLR(two, 3)]
    found = [refusal(space.ChainedScheduler, pair)[0], refusal(space.SequentialLR, one, pair, [2])[0]]
    return found + [refusal(space.ChainedScheduler, pair[:1], two)[0]]


def momentum_of_an_optimizer_without(torch):
    p = torch.nn.Parameter(torch.ones(1))
    space = torch.optim.lr_scheduler
    return [
        refusal(space.CyclicLR, torch.optim.Adagrad([p]), 0.1, 0.9),
        refusal(space.OneCycleLR, torch.optim.Adagrad([p]), 0.9, 10),
    ]


CASES = (
    {f"jumps_{n}": _jumps(m) for n, m in SCHEDULES.items() if n not in ("sequential", "chained", "plateau")}
    | {f"resumed_{name}": _resumed(make) for name, make in RESUMABLE.items()}
    | {name: (lambda torch, m=make, o=o: _run(torch, m, **o)) for name, (make, o) in OPTIONS.items()}
    | PLATEAUS
    | {f"saved_{name}": _saved(make) for name, make in SCHEDULES.items()}
    | {f"outside_{name}": _outside_a_step(make) for name, make in SCHEDULES.items() if name != "plateau"}
    | {f"error_{name}": _error(make) for name, make in ERRORS.items()}
    | {
        "error_swalr_strategy": _swalr_error(swa_lr=0.1, anneal_strategy="a"),
        "error_swalr_epochs": _swalr_error(swa_lr=0.1, anneal_epochs=-1),
        "error_swalr_float": _swalr_error(swa_lr=0.1, anneal_epochs=1.5),
        "error_swalr_count": _swalr_error(swa_lr=[0.1]),
    }
)
