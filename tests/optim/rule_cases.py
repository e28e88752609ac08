"""The update rules as functions, the states of optimizers, hooks, sparse gradients, averages of weights and errors."""

from __future__ import annotations

import importlib
import pickle
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
    """An update rule called as a function, with loops, in both directions of the gradient."""

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


def counters_of_fused_and_capturable_groups(torch):
    """Loading gives the counters of fused and capturable groups float32, and leaves others as they are."""
    found = []
    for options in ({"fused": True}, {"capturable": True}, {}):
        p = _parameter(torch)
        optimizer = torch.optim.Adam([p], foreach=False if not options else None)
        optimizer.step()
        saved = optimizer.state_dict()
        saved["state"][0]["step"] = torch.tensor(2.0, dtype=torch.float64)
        saved["state"][0]["other"] = [torch.ones(1, dtype=torch.float32), {"a": torch.ones(1)}]
        saved["param_groups"][0].update(options)
        optimizer.load_state_dict(saved)
        state = optimizer.state[p]
        other = state["other"]
        found.append([str(state["step"].dtype), str(other[0].dtype), str(other[1]["a"].dtype)])
    return found


def loaded_state_of_integers(torch):
    """State of a parameter that is no floating-point number keeps its dtype."""
    p = torch.tensor([1, 2])
    optimizer = torch.optim.SGD([p], lr=1)
    optimizer.load_state_dict(
        {"state": {0: {"a": torch.ones(2)}, 5: "of no parameter"}, "param_groups": [{"params": [0], "lr": 2}]}
    )
    return [str(optimizer.state[p]["a"].dtype), optimizer.state[5], optimizer.param_groups[0]["lr"]]


def names_of_parameters(torch):
    first, second = _parameter(torch), _parameter(torch)
    optimizer = torch.optim.SGD([("a", first), ("b", second)], lr=0.5)
    plain = torch.optim.SGD([first, second], lr=0.5)
    saved = optimizer.state_dict()
    optimizer.load_state_dict(plain.state_dict())
    found = [saved["param_groups"][0]["param_names"], optimizer.param_groups[0]["param_names"]]
    plain.load_state_dict(saved)
    found.append(plain.param_groups[0].get("param_names"))
    found.append(refusal(torch.optim.SGD, [first, ("b", second)], lr=0.5))
    found.append(refusal(optimizer.add_param_group, {"params": [_parameter(torch)]}))
    found.append(refusal(torch.optim.SGD([first]).add_param_group, {"params": [("c", second)]}))
    optimizer.add_param_group({"params": [("c", _parameter(torch))], "lr": 0.1})
    return [*found, optimizer.param_groups[1]["param_names"], optimizer.param_groups[1]["lr"]]


def groups_that_are_refused(torch):
    p = _parameter(torch)
    optimizer = torch.optim.SGD([p], lr=0.5)
    found = [
        refusal(optimizer.add_param_group, [p]),
        refusal(optimizer.add_param_group, {"params": p}),
        refusal(optimizer.add_param_group, {"params": [3]}),
        refusal(optimizer.add_param_group, {"params": {_parameter(torch)}}),
        refusal(optimizer.add_param_group, {"params": [_parameter(torch) * 2]}),
        refusal(optimizer.load_state_dict, {"state": {}, "param_groups": [{"params": [0, 1]}]}),
        refusal(optimizer.load_state_dict, {"state": {}, "param_groups": []}),
        refusal(torch.optim.SGD, _parameter(torch)),
        refusal(torch.optim.SGD, []),
    ]
    kept = _parameter(torch) * 2
    kept.retain_grad()
    optimizer.add_param_group({"params": kept})
    torch.optim.SGD([_parameter(torch) * 2], differentiable=True)
    return [*found, len(optimizer.param_groups)]


def twice_in_one_group(torch):
    p = _parameter(torch)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        optimizer = torch.optim.SGD([p, p], lr=0.5)
        torch.optim.SGD([p, _parameter(torch)], lr=0.5)
    return [
        [str(w.message).split(";")[0] for w in caught],
        optimizer.state_dict()["param_groups"][0]["params"],
    ]


def options_that_must_be_given(torch):
    class Own(torch.optim.Optimizer):
        def step(self, closure=None):
            return None

    required = importlib.import_module(f"{torch.__name__}.optim.optimizer").required
    p = _parameter(torch)
    optimizer = Own([{"params": [p], "rate": 3}], {"rate": required, "more": 1})
    found = [optimizer.param_groups[0]["rate"], optimizer.param_groups[0]["more"]]
    return [*found, refusal(Own, [p], {"rate": required}), refusal(torch.optim.Optimizer([p], {}).step)[0]]


def hooks_of_steps(torch):
    p = _parameter(torch)
    optimizer = torch.optim.SGD([p], lr=0.5)
    seen = []

    def other_closure(_, args, kwargs):
        seen.append([len(args), sorted(kwargs)])
        return (args[0],), {"closure": lambda: 7.0}

    space = importlib.import_module(f"{torch.__name__}.optim.optimizer")
    handles = [
        space.register_optimizer_step_pre_hook(lambda *_: seen.append("global pre")),
        space.register_optimizer_step_post_hook(lambda *_: seen.append("global post")),
        optimizer.register_step_pre_hook(other_closure),
        optimizer.register_step_pre_hook(lambda *_: seen.append("second")),
        optimizer.register_step_post_hook(lambda o, args, kwargs: seen.append([len(args), sorted(kwargs)])),
    ]
    found = optimizer.step(lambda: 3.0)
    for handle in handles:
        handle.remove()
    before = len(seen)
    optimizer.step()
    bad = optimizer.register_step_pre_hook(lambda *_: 3)
    error = refusal(optimizer.step)[0]
    bad.remove()
    pair = optimizer.register_step_pre_hook(lambda *_: (1, 2, 3))
    error2 = refusal(optimizer.step)[0]
    pair.remove()
    return [found, seen, before == len(seen), error, error2]


def one_hook_for_subclasses(torch):
    """A step is wrapped once, also when a class has many objects and a subclass; post-hooks run once for each step."""

    class Own(torch.optim.SGD):
        def step(self, closure=None):
            return super().step(closure)

    seen = []
    found = []
    for kind in (Own, Own, torch.optim.SGD, torch.optim.SGD):
        optimizer = kind([_parameter(torch)], lr=0.5)
        optimizer.register_step_post_hook(lambda *_: seen.append(1))
        optimizer.step()
        found.append(len(seen))
    return found


def hooks_of_state_dicts(torch):
    p = _parameter(torch)
    optimizer = torch.optim.Adam([p], lr=0.5)
    seen = []
    optimizer.register_state_dict_pre_hook(lambda o: seen.append("first"))
    optimizer.register_state_dict_pre_hook(lambda o: seen.append("before it"), prepend=True)
    optimizer.register_state_dict_post_hook(lambda o, s: seen.append("after"))
    optimizer.register_state_dict_post_hook(lambda o, s: {**s, "more": len(s)}, prepend=True)
    optimizer.register_state_dict_post_hook(lambda o, s: {**s, "most": len(s)})
    optimizer.register_load_state_dict_pre_hook(lambda o, s: seen.append("load first"))
    handle = optimizer.register_load_state_dict_pre_hook(
        lambda o, s: s["param_groups"][0].update(lr=0.125) or {**s, "state": {}}, prepend=True
    )
    optimizer.register_load_state_dict_post_hook(lambda o: seen.append("load after"))
    optimizer.register_load_state_dict_post_hook(lambda o: seen.append("load after, before it"), prepend=True)
    optimizer.step()
    saved = optimizer.state_dict()
    optimizer.load_state_dict(saved)
    found = [len(optimizer.state), optimizer.param_groups[0]["lr"]]
    handle.remove()
    optimizer.load_state_dict(saved)
    return [seen, sorted(saved), saved["more"], saved["most"], found, len(optimizer.state)]


def loading_leaves_the_file_alone(torch):
    p = _parameter(torch)
    optimizer = torch.optim.SGD([p], lr=0.5, momentum=0.5)
    optimizer.step()
    saved = optimizer.state_dict()
    other = torch.optim.SGD([_parameter(torch)], lr=0.1)
    other.load_state_dict(saved)
    other.param_groups[0]["lr"] = 7.0
    return [saved["param_groups"], sorted(saved), other.state_dict()["param_groups"]]


def pickled(torch):
    p = _parameter(torch)
    optimizer = torch.optim.Adam([p], lr=0.5)
    optimizer.register_step_pre_hook(lambda *_: None)
    optimizer.step()
    again = pickle.loads(pickle.dumps(optimizer))
    q = again.param_groups[0]["params"][0]
    q.grad = _tensor(torch, 1.0, 1.0, 1.0)
    seen = []
    again.register_step_post_hook(lambda *_: seen.append(1))
    again.step()
    return [again.defaults["lr"], q.tolist(), seen, sorted(again.__getstate__())]


def zeroed_gradients(torch):
    found = []
    for to_none in (True, False):
        p, unused = _parameter(torch), torch.nn.Parameter(torch.ones(1))
        (p * p).sum().backward(create_graph=True)
        recorded = p.grad.requires_grad
        optimizer = torch.optim.SGD([p, unused], lr=0.5)
        optimizer.zero_grad(set_to_none=to_none)
        g = p.grad
        found.append([recorded, None if g is None else [g.tolist(), g.requires_grad, g.grad_fn is None]])
        leaf = _tensor(torch, 1.0, 1.0, 1.0).requires_grad_()
        p.grad = leaf
        optimizer.zero_grad(to_none)
        found.append([p.grad is leaf, leaf.requires_grad, leaf.tolist()])
    return found


def closures(torch):
    """A closure runs with gradients on; the step itself without, and the mode comes back."""
    found = []
    for kind in ("SGD", "Adam", "Adafactor", "Rprop"):
        p = _parameter(torch)
        optimizer = getattr(torch.optim, kind)([p], lr=0.5)
        with torch.no_grad():
            value = optimizer.step(lambda: [torch.is_grad_enabled(), 5][0])
            found.append([value, torch.is_grad_enabled()])
        found.append([refusal(optimizer.step, lambda: 1 / 0)[0], torch.is_grad_enabled()])
    return found


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


def _averaged(make, use_buffers=False):
    """An average over four states of a model with a float and an integer buffer."""

    def case(torch):
        model = torch.nn.BatchNorm1d(2)
        average = torch.optim.swa_utils.AveragedModel(
            model, use_buffers=use_buffers, **make(torch.optim.swa_utils)
        )
        found = []
        for k in range(4):
            with torch.no_grad():
                model.weight.copy_(torch.tensor([1.0, 2.0]) * (k + 1) ** 2)
                model.running_mean.fill_(float(k * k))
                model.num_batches_tracked.fill_(k * 10)
            average.update_parameters(model)
            inner = average.module
            found.append([inner.weight.tolist(), inner.running_mean.tolist(), int(inner.num_batches_tracked)])
            found.append(int(average.n_averaged))
        model.eval(), average.eval()
        return [found, average(torch.ones(1, 2)).tolist(), sorted(average.state_dict())]

    return case


def functions_of_averages(torch):
    space = torch.optim.swa_utils
    found = []
    for make in (space.get_ema_avg_fn, space.get_ema_multi_avg_fn):
        for decay in (0.0, 1.0, -0.01, 1.01):
            found.append(refusal(make, decay))
    old, new = torch.tensor([1.0, 2.0]), torch.tensor([4.0, 8.0])
    found.append(space.get_ema_avg_fn(0.75)(old, new, 3).tolist())
    found.append(space.get_swa_avg_fn()(old, new, 3).tolist())
    for make in (space.get_ema_multi_avg_fn(0.75), space.get_swa_multi_avg_fn()):
        for count in (3, torch.tensor(3)):
            for mine, given in (
                ([old.clone()], [new.clone()]),
                ([torch.tensor([8, 40])], [torch.tensor([16, 80])]),
            ):
                try:
                    make(mine, given, count)
                except RuntimeError as error:
                    found.append(isinstance(error, RuntimeError))
                found.append([t.tolist() for t in mine])
    return [*found, refusal(space.AveragedModel, torch.nn.Linear(1, 1), None, max, max)[0]]


def updated_statistics(torch):
    found = []
    batches = [torch.tensor([[1.0, 2.0], [3.0, 8.0]]), torch.tensor([[5.0, 1.0], [2.0, 2.0]])]
    for training in (True, False):
        model = torch.nn.Sequential(torch.nn.BatchNorm1d(2, momentum=0.3), torch.nn.Identity())
        model[0].running_mean.fill_(77.0)
        model.train(training)
        torch.optim.swa_utils.update_bn(iter(batches) if training else [(b, 1) for b in batches], model)
        layer = model[0]
        found.append(
            [layer.running_mean.tolist(), layer.running_var.tolist(), layer.momentum, model.training]
        )
        found.append([int(layer.num_batches_tracked), [m.training for m in model.modules()]])
    plain = torch.nn.Linear(2, 2)
    plain.eval()
    torch.optim.swa_utils.update_bn(batches, plain)
    without = torch.nn.BatchNorm1d(2, track_running_stats=False)
    torch.optim.swa_utils.update_bn(batches, without)
    lists = torch.nn.BatchNorm1d(2)
    torch.optim.swa_utils.update_bn([[batches[0], 3], [batches[1], 4]], lists, device="cpu")
    return [*found, plain.training, without.momentum, lists.running_mean.tolist(), lists.momentum]


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
        "averaged": _averaged(lambda s: {}),
        "averaged_with_buffers": _averaged(lambda s: {"device": "cpu"}, use_buffers=False),
        "averaged_ema": _averaged(lambda s: {"avg_fn": s.get_ema_avg_fn(0.75)}),
        "averaged_multi_ema": _averaged(
            lambda s: {"multi_avg_fn": s.get_ema_multi_avg_fn(0.75)}, use_buffers=True
        ),
        "averaged_multi_swa": _averaged(lambda s: {"multi_avg_fn": s.get_swa_multi_avg_fn()}),
        "averaged_own": _averaged(
            lambda s: {"avg_fn": lambda old, new, n: old + new * (n + 1)}, use_buffers=True
        ),
    }
)


def profiler_names(torch):
    """What profilers call the two steps of an optimizer."""
    optimizer = torch.optim.RMSprop([_parameter(torch)])
    return optimizer._zero_grad_profile_name


def names_in_some_groups_only(torch):
    """The whole text of the refusal says which kind of group was refused."""
    named = torch.optim.SGD([("a", _parameter(torch))])
    plain = torch.optim.SGD([_parameter(torch)])
    texts = []
    for optimizer, group in ((named, [_parameter(torch)]), (plain, [("b", _parameter(torch))])):
        try:
            optimizer.add_param_group({"params": group})
        except ValueError as error:
            texts.append(" ".join(str(error).split()).split("cannot add")[1:])
    return texts


def statistics_without_a_device(torch):
    layer = torch.nn.BatchNorm1d(2)
    seen = []
    layer.register_forward_pre_hook(
        lambda m, args: seen.append([type(args[0]).__name__, str(args[0].device)])
    )
    for device in (None, "cpu"):
        torch.optim.swa_utils.update_bn([torch.ones(3, 2)], layer, device=device)
    moved = []

    class Batch:
        def to(self, device):
            moved.append(str(device))
            return torch.ones(3, 2)

    torch.optim.swa_utils.update_bn([Batch()], layer, device="cpu")
    return [seen, moved, refusal(torch.optim.swa_utils.update_bn, [Batch()], layer)[0] != "nothing raised"]


def flags_of_restarts(torch):
    """Nobody is warned of a rate that the schedule computes itself, in both kinds of steps."""
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
    """The bracket counts in units of the largest element of the direction: with others much smaller than it too."""
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
