"""Parameter groups, hooks, state dicts, closures and pickling of optimizers."""

from __future__ import annotations

import importlib
import pickle
import warnings

from tests.golden.answers import refusal
from tests.optim.rule_cases import _parameter, _tensor


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
    """The state of a parameter that is not floating point keeps its dtype."""
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
    """A closure runs with gradients on and the step itself without. Afterwards the mode is restored."""
    found = []
    for kind in ("SGD", "Adam", "Adafactor", "Rprop"):
        p = _parameter(torch)
        optimizer = getattr(torch.optim, kind)([p], lr=0.5)
        with torch.no_grad():
            value = optimizer.step(lambda: [torch.is_grad_enabled(), 5][0])
            found.append([value, torch.is_grad_enabled()])
        found.append([refusal(optimizer.step, lambda: 1 / 0)[0], torch.is_grad_enabled()])
    return found


def profiler_names(torch):
    """The names of an optimizer's two steps in profilers."""
    optimizer = torch.optim.RMSprop([_parameter(torch)])
    return optimizer._zero_grad_profile_name


def names_in_some_groups_only(torch):
    """The full text of the error says which kind of group was refused."""
    named = torch.optim.SGD([("a", _parameter(torch))])
    plain = torch.optim.SGD([_parameter(torch)])
    texts = []
    for optimizer, group in ((named, [_parameter(torch)]), (plain, [("b", _parameter(torch))])):
        try:
            optimizer.add_param_group({"params": group})
        except ValueError as error:
            texts.append(" ".join(str(error).split()).split("cannot add")[1:])
    return texts
