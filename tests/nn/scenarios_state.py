"""Cases with hooks, lazy modules, parametrizations, pruning and packed sequences."""

import gc
import pickle
import warnings
import weakref
from importlib import import_module

from .scenarios import failure, numbers, scenario


def _told(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [[w.category.__name__, str(w.message)] for w in caught if "non-full" in str(w.message)]


@scenario
def hooks_that_miss_gradients(torch):
    nn = torch.nn

    def module(function):
        class Made(nn.Module):
            def forward(self, *args):
                return function(*args)

        made = Made()
        made.register_backward_hook(lambda *args: None)
        return made

    a, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    return [
        _told(lambda: module(lambda m: (m[0].clone(), m[1].clone()))([a, b])),
        _told(lambda: module(lambda x, y: [x.clone(), y.clone()])(a, b)),
        _told(lambda: module(lambda x, y: (x.clone(), y.clone()))(a, b)),
        _told(lambda: module(lambda x: x.clone().clone())(a)),
        _told(lambda: module(lambda x: x * 2)(a)),
        _told(lambda: module(lambda x, y: x * y)(a.clone(), b.clone())),
    ]


@scenario
def inputs_of_hooked_modules_keep_their_requirement(torch):
    seen = []

    class Seeing(torch.nn.Module):
        def forward(self, x, y, z):
            seen.append([x.requires_grad, y.requires_grad, z.requires_grad])
            return x.sum() + y.sum() + z.sum()

    module = Seeing()
    module.register_full_backward_hook(lambda m, gi, go: seen.append([g is None for g in gi]))
    x, y, z = torch.ones(2, requires_grad=True), torch.ones(2), torch.ones(2, dtype=torch.float64)
    module(x, y, z).backward()
    return [seen, numbers(x.grad), y.grad is None]


@scenario
def global_hooks_that_are_reset(torch):
    home, seen = import_module(f"{torch.__name__}.nn.modules.module"), []
    home.register_module_forward_hook(lambda *args: seen.append("forward"))
    torch.nn.Identity()(torch.ones(1))
    kept = home._global_forward_hooks
    home._global_forward_hooks = type(kept)()
    torch.nn.Identity()(torch.ones(1))
    home.register_module_forward_hook(lambda *args: seen.append("again"))
    torch.nn.Identity()(torch.ones(1))
    home._global_forward_hooks = type(kept)()
    return seen


@scenario
def modules_with_load_hooks_are_freed(torch):
    module = torch.nn.Linear(1, 1)
    seen = []

    def hook(m, *args):
        seen.append(type(m).__name__)

    module.register_load_state_dict_pre_hook(hook)
    module.load_state_dict(module.state_dict())
    gc.disable()
    try:
        reference = weakref.ref(module)
        del module
        return [seen, reference() is None]
    finally:
        gc.enable()


@scenario
def modules_without_shapes(torch):
    nn, found = torch.nn, []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = pickle.loads(pickle.dumps(nn.LazyBatchNorm1d()))
        found.append(failure(module.share_memory))
        module(torch.ones(3, 2))
        found.append([type(module).__name__, tuple(module.running_mean.shape)])
    parameter = nn.parameter.UninitializedParameter()
    buffer = pickle.loads(pickle.dumps(nn.parameter.UninitializedBuffer(dtype=torch.float64)))
    found += [failure(parameter.share_memory_), failure(buffer.share_memory_)]
    parameter.materialize(3)
    buffer.materialize((2, 1))
    return [*found, type(parameter).__name__, tuple(parameter.shape), tuple(buffer.shape)]


@scenario
def parametrisations_in_a_chain(torch):
    nn, parametrize = torch.nn, import_module(f"{torch.__name__}.nn.utils.parametrize")

    class Halve(nn.Module):
        def forward(self, x):
            return x / 2

        def right_inverse(self, x):
            return x * 2

    class Rotate(nn.Module):
        def __init__(self, wrong=None):
            super().__init__()
            self.wrong = wrong

        def forward(self, x):
            return x.roll(1, 0)

        def right_inverse(self, x):
            if self.wrong == "dtype":
                return x.double()
            return x[:1] if self.wrong == "shape" else None if self.wrong else x.roll(-1, 0)

    class Pair(nn.Module):
        def forward(self, x, y):
            return x + y

        def right_inverse(self, x):
            return x - 1, torch.ones_like(x)

    def made():
        module = nn.Linear(2, 3)
        with torch.no_grad():
            module.weight.copy_(torch.arange(6.0).reshape(3, 2))
        return module

    module = made()
    parametrize.register_parametrization(module, "weight", Halve())
    parametrize.register_parametrization(module, "weight", Rotate())
    found = [numbers(module.weight), numbers(module.parametrizations.weight.original)]
    module.weight = torch.ones(3, 2)
    found.append(numbers(module.parametrizations.weight.original))
    for wrong in ("dtype", "shape", "nothing"):
        found.append(failure(parametrize.register_parametrization, module, "weight", Rotate(wrong)))
    pair = made()
    parametrize.register_parametrization(pair, "weight", Pair())
    parametrize.register_parametrization(pair, "weight", Halve())
    found += [numbers(pair.weight), len(list(pair.parameters()))]
    empty = nn.Module()
    parametrize.transfer_parametrizations_and_params(pair, empty)
    return [
        *found,
        numbers(empty.weight),
        empty.parametrizations.weight.original0 is pair.parametrizations.weight.original0,
    ]


@scenario
def amounts_of_pruning(torch):
    prune = import_module(f"{torch.__name__}.nn.utils.prune")
    module = torch.nn.Linear(3, 2)
    prune.l1_unstructured(module, "weight", 2)
    again = pickle.loads(pickle.dumps(module))
    return [
        failure(prune._validate_pruning_amount_init, "much"),
        failure(prune._validate_pruning_amount_init, 1.5),
        failure(prune._validate_pruning_amount_init, -1),
        failure(prune._validate_pruning_amount, 20, 19),
        failure(prune._validate_pruning_amount, 0.5, 19),
        [prune._compute_nparams_toprune(a, 15) for a in (0, 10, 0.5)],
        failure(prune._validate_structured_pruning, torch.ones(3)),
        failure(prune._validate_pruning_dim, torch.ones(3, 3), 2),
        failure(prune.ln_structured, module, "bias", 1, 2, 0),
        int((again.weight == 0).sum()),
        again.weight.is_leaf,
        bool((again.weight == module.weight).all()),
    ]


@scenario
def dtypes_of_packed_sequences(torch):
    rnn = import_module(f"{torch.__name__}.nn.utils.rnn")
    packed = rnn.pack_padded_sequence(torch.arange(6.0).reshape(3, 2), [3, 2])
    names = ("double", "float", "half", "long", "int", "short", "char", "byte")
    empty = failure(rnn.pack_padded_sequence, torch.ones(0, 0), [])
    without_batch = failure(rnn.pack_padded_sequence, torch.ones(25, 0, 100), list(range(3, 0, -1)))
    return [[str(getattr(packed, name)().data.dtype) for name in names], empty, without_batch]


@scenario
def convolutions_without_channels(torch):
    found = []
    for n, size in ((1, [15]), (2, [9, 7]), (3, [5, 4, 6])):
        layer = getattr(torch.nn, f"Conv{n}d")(0, 4, 2, stride=2, padding=1)
        x = torch.ones(2, 0, *size, requires_grad=True)
        y = layer(x)
        y.sum().backward()
        found.append(
            [tuple(y.shape), tuple(x.grad.shape), tuple(layer.weight.grad.shape), numbers(layer.bias.grad)]
        )
    for n in (2, 3):
        for kind in ("avg", "max"):
            x = torch.ones(1, 2, *[4] * n, requires_grad=True)
            pooled = getattr(torch.nn.functional, f"adaptive_{kind}_pool{n}d")(x, 0)
            found.append([tuple(pooled.shape), failure(pooled.sum().backward)])
    return [*found, callable(torch.nn.functional.grad.conv2d_input)]
