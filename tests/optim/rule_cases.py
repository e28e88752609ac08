"""The update rules as functions, the states of optimizers, sparse gradients, limits of options and errors."""

from __future__ import annotations

import importlib
import warnings

from tests.golden.answers import refusal

KINDS = [
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "ASGD",
    "NAdam",
    "RAdam",
    "RMSprop",
    "Rprop",
    "SGD",
]


def _tensor(torch, *values, dtype="float64"):
    return torch.tensor(values, dtype=getattr(torch, dtype))


def _lists(torch, count):
    """Parameters, gradients and `count` lists of states of two tensors."""
    params = [_tensor(torch, 1.0, -2.0), _tensor(torch, 0.5)]
    grads = [_tensor(torch, 0.3, -0.1), _tensor(torch, -2.0)]
    states = [[_tensor(torch, 0.2 + k, 0.1), _tensor(torch, 0.4 + k)] for k in range(count)]
    return [params, grads, *states]


def _steps(torch, value=2.0):
    return [torch.tensor(value), torch.tensor(value + 1)]


def _rule(name, count, options, extra):
    """An update rule, called as a function in its loop form, for minimizing and maximizing."""

    def case(torch):
        function = getattr(importlib.import_module(f"{torch.__name__}.optim.{name}"), name)
        found = []
        for maximize in (False, True):
            lists = _lists(torch, count)
            more = [make(torch) for make in extra]
            given = {k: v(torch) if callable(v) else v for k, v in options.items()}
            function(*lists, *more, foreach=False, maximize=maximize, **given)
            found.append([[t.tolist() for t in column] for column in (*lists, *more)])
        return found

    return case


_ADAM = {"amsgrad": True, "beta1": 0.7, "beta2": 0.9, "lr": 0.1, "weight_decay": 0.2, "eps": 0.3}
_FEW = {"beta1": 0.7, "beta2": 0.9, "lr": 0.1, "weight_decay": 0.2, "eps": 0.3}
_SGD = {"weight_decay": 0.2, "momentum": 0.8, "lr": 0.1, "dampening": 0.3, "nesterov": False}
RULES = {
    "adam": ("adam", 3, _ADAM, [_steps]),
    "adam_decoupled": ("adam", 3, {**_ADAM, "decoupled_weight_decay": True}, [_steps]),
    "adam_without_amsgrad": ("adam", 3, {**_ADAM, "amsgrad": False, "weight_decay": 0}, [_steps]),
    "adamw": ("adamw", 3, _ADAM, [_steps]),
    "adamw_without_amsgrad": ("adamw", 3, {**_ADAM, "amsgrad": False}, [_steps]),
    "adamax": ("adamax", 2, _FEW, [_steps]),
    "nadam": (
        "nadam",
        2,
        {**_FEW, "momentum_decay": 0.3},
        [lambda t: [t.tensor(0.5), t.tensor(0.6)], _steps],
    ),
    "nadam_decoupled": (
        "nadam",
        2,
        {**_FEW, "momentum_decay": 0.3, "decoupled_weight_decay": True},
        [lambda t: [t.tensor(0.5), t.tensor(0.6)], _steps],
    ),
    "radam": ("radam", 2, _FEW, [_steps]),
    "radam_late": ("radam", 2, {**_FEW, "beta2": 0.99}, [lambda t: _steps(t, 40.0)]),
    "radam_decoupled": ("radam", 2, {**_FEW, "decoupled_weight_decay": True}, [_steps]),
    "adagrad": ("adagrad", 1, {"lr": 0.1, "weight_decay": 0.2, "lr_decay": 0.4, "eps": 0.3}, [_steps]),
    "adadelta": ("adadelta", 2, {"lr": 0.1, "rho": 0.6, "eps": 0.3, "weight_decay": 0.2}, [_steps]),
    "rmsprop": (
        "rmsprop",
        3,
        {
            "lr": 0.1,
            "alpha": 0.7,
            "eps": 0.3,
            "weight_decay": 0.2,
            "momentum": 0.8,
            "centered": True,
        },
        [_steps],
    ),
    "rmsprop_plain": (
        "rmsprop",
        3,
        {"lr": 0.1, "alpha": 0.7, "eps": 0.3, "weight_decay": 0, "momentum": 0, "centered": False},
        [_steps],
    ),
    "rprop": (
        "rprop",
        2,
        {"step_size_min": 0.05, "step_size_max": 0.9, "etaminus": 0.5, "etaplus": 1.2},
        [_steps],
    ),
    "sgd": ("sgd", 1, _SGD, []),
    "sgd_nesterov": ("sgd", 1, {**_SGD, "dampening": 0, "nesterov": True}, []),
    "sgd_without_momentum": ("sgd", 1, {**_SGD, "momentum": 0}, []),
    "asgd": (
        "asgd",
        1,
        {"lambd": 0.3, "lr": 0.1, "t0": 1, "alpha": 0.5, "weight_decay": 0.2},
        [lambda t: [t.tensor(1.0), t.tensor(0.5)], lambda t: [t.tensor(0.1), t.tensor(0.2)], _steps],
    ),
}


def _steps_that_are_numbers(name):
    """The counters of steps must be tensors."""
    return lambda torch: refusal(
        lambda: _rule(name, RULES[name][1], RULES[name][2], extra=[lambda t: [1, 2]])(torch)
    )


def _parameter(torch, dtype="float64"):
    p = torch.nn.Parameter(_tensor(torch, 1.0, -2.0, 3.0, dtype=dtype))
    p.grad = _tensor(torch, 0.5, -0.25, 2.0, dtype=dtype)
    return p


def _numbers(value):
    return value.tolist() if hasattr(value, "tolist") else value


def _state(optimizer, p):
    return {
        k: [str(getattr(v, "dtype", type(v).__name__)), _numbers(v)] for k, v in optimizer.state[p].items()
    }


def _new_state(kind):
    """The state after one step in several dtypes and forms, with its dtypes."""

    def case(torch):
        found = []
        for dtype in ("float64", "float32", "bfloat16"):
            for form in ({}, {"foreach": False}, {"maximize": True}):
                p = _parameter(torch, dtype)
                optimizer = getattr(torch.optim, kind)([p], lr=0.5, **form)
                optimizer.step()
                found.append({k: v[0] for k, v in _state(optimizer, p).items()})
        return found

    return case


def _double_steps(kind):
    """The counter has the default dtype if that is float64."""

    def case(torch):
        torch.set_default_dtype(torch.float64)
        try:
            p = _parameter(torch)
            optimizer = getattr(torch.optim, kind)([p], lr=0.5)
            optimizer.step()
            return {k: v[0] for k, v in _state(optimizer, p).items()}
        finally:
            torch.set_default_dtype(torch.float32)

    return case


def _old_file(kind):
    """Groups and counters as older releases wrote them."""

    def case(torch):
        p = _parameter(torch)
        optimizer = getattr(torch.optim, kind)([p], lr=0.5)
        optimizer.step()
        saved = optimizer.state_dict()
        keep = (
            "params",
            "lr",
            "betas",
            "eps",
            "weight_decay",
            "momentum",
            "dampening",
            "rho",
            "alpha",
            "etas",
            "lambd",
        )
        keep += (
            "step_sizes",
            "t0",
            "lr_decay",
            "momentum_decay",
            "initial_accumulator_value",
            "beta2_decay",
            "d",
        )
        saved["param_groups"] = [{k: v for k, v in g.items() if k in keep} for g in saved["param_groups"]]
        for state in saved["state"].values():
            if "step" in state:
                state["step"] = 3.0
        other = getattr(torch.optim, kind)([p], lr=0.25)
        other.load_state_dict(saved)
        group = {k: _numbers(v) for k, v in other.param_groups[0].items() if k != "params"}
        other.step()
        return [dict(sorted(group.items())), _state(other, p), p.tolist()]

    return case


def _sparse(torch, rows, values, count=5):
    return torch.sparse_coo_tensor(
        torch.tensor([rows]), torch.tensor(values, dtype=torch.float64), (count, 2)
    )


def sparse_gradients(torch):
    found = []
    for kind, options in (
        ("SGD", {"lr": 0.5}),
        ("Adagrad", {"lr": 0.5, "eps": 0.1, "lr_decay": 0.3, "initial_accumulator_value": 0.2}),
        ("Adagrad", {"lr": 0.5, "maximize": True}),
        ("SparseAdam", {"lr": 0.5}),
        ("SparseAdam", {"lr": 0.5, "betas": (0.7, 0.9), "eps": 0.3, "maximize": True}),
    ):
        p = torch.nn.Parameter(torch.arange(10.0, dtype=torch.float64).reshape(5, 2))
        optimizer = getattr(torch.optim, kind)([p], **options)
        for rows, values in (
            ([1, 3, 1], [[1.0, 2.0], [0.5, -1.0], [3.0, 0.25]]),
            ([0, 3], [[1.0, 2.0], [0.5, -1.0]]),
        ):
            p.grad = _sparse(torch, rows, values)
            optimizer.step()
        found.append([p.tolist(), {k: _numbers(v) for k, v in optimizer.state[p].items() if v is not None}])
        p.grad = torch.sparse_coo_tensor(
            torch.zeros(1, 0, dtype=torch.long), torch.zeros(0, 2).double(), (5, 2)
        )
        optimizer.step()
        found.append(p.tolist())
    return found


def sparse_gradients_refused(torch):
    found = []
    for kind in (*KINDS, "SparseAdam"):
        p = torch.nn.Parameter(torch.ones(5, 2, dtype=torch.float64))
        optimizer = getattr(torch.optim, kind)([p])
        p.grad = _sparse(torch, [1], [[1.0, 2.0]])
        found.append([kind, *refusal(optimizer.step)])
    p = torch.nn.Parameter(torch.ones(5, 2, dtype=torch.float64))
    p.grad = torch.ones(5, 2, dtype=torch.float64)
    found.append(refusal(torch.optim.SparseAdam([p]).step))
    p.grad = _sparse(torch, [1], [[1.0, 2.0]])
    found.append(refusal(torch.optim.Adagrad([p], weight_decay=0.1).step)[0])
    found.append(refusal(torch.optim.SparseAdam, [_sparse(torch, [1], [[1.0, 2.0]])]))
    return found


def adafactor_with_extreme_options(torch):
    found = []
    for options in (
        {"beta2_decay": 0.0},
        {"d": 1.0, "eps": (None, 10.0)},
        {"eps": (0.5, 1e-3), "weight_decay": 0.5},
        {"lr": 5.0, "d": 3.0},
        {"lr": 0.2, "eps": (0.0, 0.0)},
    ):
        for dtype in ("float64", "float32"):
            p = torch.nn.Parameter(_tensor(torch, [1.0, -2.0, 0.5], [3.0, 0.0, 1.0], dtype=dtype))
            q = _parameter(torch, dtype)
            optimizer = torch.optim.Adafactor([p, q], **options)
            for k in range(3):
                p.grad = p.detach() * (0.5 + k) + 0.25
                optimizer.step()
            found.append([p.tolist(), q.tolist(), optimizer.state[p]["row_var"].tolist()])
            found.append([optimizer.state[p]["col_var"].tolist(), optimizer.state[q]["variance"].tolist()])
    return found


def adafactor_of_a_stack_of_matrices(torch):
    p = torch.nn.Parameter(torch.arange(1.0, 13.0, dtype=torch.float64).reshape(2, 3, 2))
    optimizer = torch.optim.Adafactor([p], lr=0.1)
    p.grad = (p.detach() - 5) / 7
    optimizer.step()
    return [p.tolist(), list(optimizer.state[p]["row_var"].shape), list(optimizer.state[p]["col_var"].shape)]


_LIMITS = (
    ("lr", (0.0, -1e-9)),
    ("eps", (0.0, -1e-9)),
    ("weight_decay", (0.0, -1e-9)),
    ("betas", ((0.0, 0.5), (0.5, 0.0), (1.0, 0.5), (0.5, 1.0), (-0.1, 0.5), (0.5, -0.1))),
    ("rho", (0.0, 1.0, -0.1, 1.1)),
    ("alpha", (0.0, -0.1)),
    ("momentum", (0.0, -0.1)),
    ("lr_decay", (0.0, -0.1)),
    ("initial_accumulator_value", (0.0, -0.1)),
    ("momentum_decay", (0.0, -0.1)),
    ("etas", ((0.5, 1.0), (0.0, 1.2), (1.0, 1.2), (0.5, 1.01))),
    ("step_sizes", ((1.0, 1.0), (1.1, 1.0), (0.1, 1.0))),
    ("beta2_decay", (0.0, 0.1)),
    ("d", (1.0, 0.99)),
    ("t0", (0.0, -1.0)),
    ("lambd", (0.0, -1.0)),
    ("dampening", (0.5, -1.0)),
)
_ADAFACTOR = {"eps": ((0.0, 0.0), (None, -1e-9), (-1e-9, 0.0))}


def _limits(kind):
    """Each option at its limits and just beyond."""

    def case(torch):
        found = {}
        p = _parameter(torch)
        defaults = getattr(torch.optim, kind)([p]).defaults
        for option, values in _LIMITS:
            if option in defaults:
                for value in _ADAFACTOR.get(option, values) if kind == "Adafactor" else values:
                    kwargs = {option: value}
                    found[f"{option}={value}"] = refusal(getattr(torch.optim, kind), [p], **kwargs)
        return found

    return case


def forms_that_exclude_each_other(torch):
    found = []
    p = _parameter(torch)
    for kind in ("Adam", "AdamW", "SGD", "Adagrad"):
        for options in (
            {"fused": True, "foreach": True},
            {"fused": True, "differentiable": True},
            {"fused": False, "foreach": True},
            {"foreach": True, "differentiable": True},
        ):
            found.append(refusal(getattr(torch.optim, kind), [p], **options))
    for options in ({"foreach": True}, {"foreach": True, "capturable": True}, {"foreach": False}, {}):
        for kind in ("Adam", "AdamW"):
            found.append(refusal(getattr(torch.optim, kind), [p], lr=torch.tensor(0.1), **options))
    for options in ({"momentum": 0.5, "dampening": 0.1}, {"momentum": 0}, {"momentum": 0.5}):
        found.append(refusal(torch.optim.SGD, [p], nesterov=True, **options))
    return found


def complex_parameters(torch):
    found = []
    for kind in KINDS:
        p = torch.nn.Parameter(torch.tensor([1.0 + 2j, -3.0], dtype=torch.complex128))
        q = torch.nn.Parameter(torch.ones(2, dtype=torch.float64))
        optimizer = getattr(torch.optim, kind)([p, q], lr=0.5)
        p.grad, q.grad = (
            torch.tensor([0.5 - 1j, 2j], dtype=torch.complex128),
            torch.ones(2, dtype=torch.float64),
        )
        error = refusal(optimizer.step)
        found.append([kind, *error, torch.view_as_real(p.detach()).tolist(), q.tolist()])
    return found


def _muon(**options):
    def case(torch):
        found = []
        for shape in ((4, 6), (6, 4), (3, 3)):
            p = torch.nn.Parameter(torch.linspace(-1, 1, shape[0] * shape[1]).reshape(shape))
            optimizer = torch.optim.Muon([p], lr=0.5, **options)
            for k in range(3):
                p.grad = (torch.arange(float(p.numel())).reshape(shape) * (1.7 + k)).sin()
                optimizer.step()
            # The iteration runs in bfloat16: two decimals are comparable.
            found.append(
                [[round(float(v), 1) for v in p.detach().square().sum(1).sqrt()], sorted(optimizer.state[p])]
            )
            found.append([round(v, 4) for v in optimizer.state[p]["momentum_buffer"].flatten().tolist()])
        return found

    return case


def muon_errors(torch):
    matrix, vector = torch.nn.Parameter(torch.ones(2, 3)), torch.nn.Parameter(torch.ones(2))
    make = torch.optim.Muon
    found = [
        refusal(make, [vector]),
        refusal(make, [matrix], lr=-0.1),
        refusal(make, [matrix], lr=0.0),
        refusal(make, [matrix], momentum=-0.1),
        refusal(make, [matrix], momentum=0.0),
        refusal(make, [matrix], weight_decay=-0.1),
        refusal(make, [matrix], weight_decay=0.0),
        refusal(make, [matrix], lr=torch.ones(2)),
        refusal(make, [matrix], adjust_lr_fn="other"),
        refusal(make, [matrix], adjust_lr_fn="original"),
    ]
    matrix.grad = torch.ones(2, 3)
    for options in ({"ns_steps": 100}, {"ns_steps": 99}, {"ns_coefficients": (1.0, 2.0)}):
        found.append(refusal(make([matrix], **options).step))
    complex_one = torch.nn.Parameter(torch.ones(2, 2, dtype=torch.complex64))
    complex_one.grad = torch.ones(2, 2, dtype=torch.complex64)
    found.append(refusal(make([complex_one]).step))
    matrix.grad = torch.ones(2, 3).to_sparse()
    return [*found, refusal(make([matrix]).step)]


CASES = (
    {f"rule_{n}": _rule(k, count, o, extra=e) for n, (k, count, o, e) in RULES.items()}
    | {
        f"counters_{k}": _steps_that_are_numbers(k)
        for k in ["adam", "adamw", "adamax", "nadam", "radam", "adagrad", "adadelta", "rmsprop", "rprop"]
    }
    | {f"state_{kind}": _new_state(kind) for kind in KINDS}
    | {f"double_steps_{kind}": _double_steps(kind) for kind in KINDS}
    | {f"old_file_{kind}": _old_file(kind) for kind in KINDS if kind != "Adafactor"}
    | {f"limits_{kind}": _limits(kind) for kind in (*KINDS, "SparseAdam")}
    | {
        "muon": _muon(),
        "muon_plain": _muon(nesterov=False, momentum=0.5, weight_decay=0.3),
        "muon_rms": _muon(adjust_lr_fn="match_rms_adamw"),
        "muon_few_steps": _muon(ns_steps=2, eps=40.0, ns_coefficients=(2.0, -1.5, 0.5)),
    }
)


def flags_of_restarts(torch):
    """There is no warning about a rate that the schedule computes itself, in both kinds of steps."""
    found = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        optimizer = torch.optim.SGD([_parameter(torch)], lr=0.5)
        schedule = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 3)
        optimizer.step()
        schedule.step()
        schedule.step(2)
        found.append([str(w.message)[:40] for w in caught])
        schedule.get_lr()
        found.append(len(caught))
    return found


def searches_in_narrow_brackets(torch):
    """The size of the bracket is measured by the largest element of the direction, also if others are much smaller."""
    found = []
    for small in (1e-7, 1e-4, 1.0):
        x = torch.nn.Parameter(torch.tensor([3.0, 2.0], dtype=torch.float64))
        scale = torch.tensor([1.0, small], dtype=torch.float64)
        optimizer = torch.optim.LBFGS([x], lr=5.0, max_iter=3, max_eval=40, line_search_fn="strong_wolfe")

        def closure(x=x, scale=scale, optimizer=optimizer):
            optimizer.zero_grad()
            loss = ((x * scale).abs() ** 1.5).sum() + ((x * scale - 0.3) * 40).abs().sum()
            loss.backward()
            return loss

        found.append([optimizer.step(closure).item(), x.tolist(), optimizer.state[x]["func_evals"]])
    return found
