"""Helpers around data parallelism, in one process: wrapping policies, recomputation wrappers, wrapper
subclasses.
"""

import copy
import dataclasses
import functools

import pytest

import msadapter as torch
from msadapter import nn
from msadapter.distributed import utils
from msadapter.distributed.algorithms._checkpoint import checkpoint_wrapper as recompute
from msadapter.distributed.checkpoint import filesystem
from msadapter.distributed.fsdp import _wrap_utils, wrap


class Wrapper(nn.Module):
    def __init__(self, module, **options):
        super().__init__()
        self.inner, self.options = module, options

    def forward(self, *args):
        return self.inner(*args)


def model():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(3, 4), nn.Sequential(nn.Linear(4, 4), nn.ReLU()), nn.ModuleList([nn.Linear(2, 2)])
    )


def wrapped(root) -> set:
    return {name for name, m in root.named_modules() if isinstance(m, Wrapper)}


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (wrap.ModuleWrapPolicy({nn.Linear}), {"0", "1.0", "2.0"}),
        (wrap.CustomPolicy(lambda m: {"x": 1} if isinstance(m, nn.ReLU) else False), {"1.1"}),
        (functools.partial(wrap.transformer_auto_wrap_policy, transformer_layer_cls={nn.Linear}), {"0", "1.0", "2.0"}),
        (functools.partial(wrap.lambda_auto_wrap_policy, lambda_fn=lambda m: isinstance(m, nn.ReLU)), {"1.1"}),
        (functools.partial(wrap.size_based_auto_wrap_policy, min_num_params=18), {"1.0"}),
        (functools.partial(wrap._or_policy, policies=[
            functools.partial(wrap._module_wrap_policy, module_classes={nn.ReLU}),
            functools.partial(wrap.lambda_auto_wrap_policy, lambda_fn=lambda m: isinstance(m, nn.ModuleList))]), {"1.1", "2"}),
    ],
)  # fmt: skip
def test_policies_choose(policy, expected):
    root = model()
    _wrap_utils._auto_wrap(root, policy, set(), set(), {"y": 2}, Wrapper)
    assert {name.replace("inner.", "") for name in wrapped(root)} == expected
    assert all(m.options["y"] == 2 for m in root.modules() if isinstance(m, Wrapper))


def test_wrapping_by_name():
    assert isinstance(wrap.wrap(nn.Linear(2, 2)), nn.Linear)
    with wrap.enable_wrap(wrapper_cls=Wrapper, a=1):
        made = wrap.wrap(nn.Linear(2, 2), b=2)
        with (
            pytest.raises(NotImplementedError, match="nested autowrap"),
            wrap.enable_wrap(wrapper_cls=Wrapper),
        ):
            pass
    assert isinstance(made, Wrapper) and made.options == {"a": 1, "b": 2}
    assert wrap.always_wrap_policy() is True


def test_mixed_precision_overrides_and_frozen_parameters():
    root = model()
    assert _wrap_utils._override_module_mixed_precision(root, [nn.ReLU]) == {nn.ReLU}
    assert root[1][1]._wrap_overrides == {"mixed_precision": None}
    with pytest.warns(UserWarning, match="mixed precision disabled"):
        _wrap_utils._warn_on_overridden_mixed_precision({nn.ReLU})
    root[0].bias.requires_grad_(False)
    with pytest.raises(ValueError, match="requires_grad=True and False"):
        _wrap_utils._validate_frozen_params(root, {root[0]}, set(), False)
    with pytest.warns(UserWarning, match="not recommend"):
        _wrap_utils._validate_frozen_params(root, {root[0]}, set(), True)


@pytest.mark.parametrize("way", list(recompute.CheckpointImpl))
def test_recomputation_wrapper(way):
    alone = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    again = copy.deepcopy(alone)
    runs = []
    again[0].register_forward_pre_hook(lambda *_: runs.append(1))
    recompute.apply_activation_checkpointing(
        again,
        functools.partial(recompute.checkpoint_wrapper, checkpoint_impl=way),
        lambda m: isinstance(m, nn.Linear),
    )
    assert isinstance(again[0], recompute.ActivationWrapper) and again[0].in_features == 3
    assert list(again.state_dict()) == list(alone.state_dict())
    assert [n for n, _ in again[0].named_parameters()] == ["weight", "bias"]
    again.load_state_dict(alone.state_dict())
    x = torch.randn(5, 3, requires_grad=True)
    alone(x).square().sum().backward()
    again(x).square().sum().backward()
    assert len(runs) == 2
    for p, q in zip(alone.parameters(), again.parameters(), strict=True):
        assert torch.equal(p.grad, q.grad)


def test_offload_wrapper():
    module = recompute.offload_wrapper(nn.Linear(3, 2))
    module(torch.ones(1, 3)).sum().backward()
    assert module.weight.grad.eq(1).all()


def test_storage_helpers():
    x = torch.ones(3, 4)
    utils._free_storage(x)
    assert x.untyped_storage().nbytes() == 0 and x.data_ptr() == 0
    assert utils._alloc_storage(x, x.shape) is True and utils._alloc_storage(x, x.shape) is False
    x.fill_(2)
    assert x.sum() == 24
    with pytest.raises(AssertionError, match="sole occupant"):
        utils._free_storage(torch.ones(4)[1:])


def test_container_helpers():
    @dataclasses.dataclass
    class Pair:
        a: object
        b: object

    given = {"x": [torch.ones(1), (torch.ones(2), "s")], "y": Pair(torch.ones(3), 4)}
    made = utils._apply_to_tensors(lambda t: t * 2, given)
    assert (
        made["x"][1][0].tolist() == [2, 2]
        and made["x"][1][1] == "s"
        and made["y"].a.sum() == 6
        and made["y"].b == 4
    )
    args, kwargs = utils._cast_forward_inputs(
        torch.bfloat16, torch.ones(1), torch.ones(1, dtype=torch.int64), k=[torch.ones(1)]
    )
    assert (args[0].dtype, args[1].dtype, kwargs["k"][0].dtype) == (
        torch.bfloat16,
        torch.int64,
        torch.bfloat16,
    )
    flat, names = utils._pack_kwargs(1, 2, c=3)
    assert utils._unpack_kwargs(flat, names) == ((1, 2), {"c": 3})
    assert utils._to_kwargs((torch.ones(1),), {"a": 1}, torch.device("cpu"))[1] == ({"a": 1},)
    with pytest.raises(AssertionError, match="no"):
        utils._p_assert(False, "no")
    state = {"module.a": 1, "b": 2}
    utils._replace_by_prefix(state, "module.", "")
    assert state == {"a": 1, "b": 2}


def test_wrapper_subclass():
    class Boxed(torch.Tensor):
        seen: list = []

        def __new__(cls, inner):
            return torch.Tensor._make_wrapper_subclass(
                cls, inner.shape, dtype=inner.dtype, device=inner.device
            )

        def __init__(self, inner):
            self.inner = inner

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            cls.seen.append(str(func))
            return cls(func(*(a.inner if isinstance(a, cls) else a for a in args), **(kwargs or {})))

    box = Boxed(torch.ones(2, 3, dtype=torch.float64))
    assert (box.shape, box.dtype, box.device.type, box.is_contiguous()) == (
        (2, 3),
        torch.float64,
        "cpu",
        True,
    )
    with torch.no_grad():
        made = torch.mm(box + 1, torch.ones(3, 1, dtype=torch.float64))
    assert (
        isinstance(made, Boxed)
        and made.inner.tolist() == [[6], [6]]
        and Boxed.seen == ["aten.add.Tensor", "aten.mm.default"]
    )


def test_wrapper_subclass_without_rule():
    class Empty(torch.Tensor):
        def __new__(cls):
            return torch.Tensor._make_wrapper_subclass(cls, (2,))

    with pytest.raises(NotImplementedError, match="no memory"):
        Empty() + 1


def test_what_is_not_supported_says_so():
    from msadapter.distributed import _symmetric_memory

    with pytest.raises(NotImplementedError, match="_symmetric_memory.rendezvous"):
        _symmetric_memory.rendezvous(None)
    with pytest.raises(NotImplementedError, match="SAFETENSORS"):
        filesystem._write_item(None, None, None, None, "", filesystem.SerializationFormat.SAFETENSORS)


def test_answers_of_policies():
    linear, other = nn.Linear(1, 1), nn.ReLU()
    policy = wrap.ModuleWrapPolicy({nn.Linear})
    assert "Linear" in repr(policy) and policy(other, True) is True
    assert [policy(m, False) for m in (linear, other)] == [True, False]
    for recurse, wanted in ((True, [True, True]), (False, [True, False])):
        assert [
            wrap._wrap_module_cls_individually(m, [nn.Linear], recurse) for m in (linear, other)
        ] == wanted
    with pytest.raises(ValueError, match="should return False/True or a kwarg dict"):
        wrap.CustomPolicy(lambda m: 3)._run_policy(linear, set(), {})
    assert wrap.CustomPolicy(lambda m: True)._run_policy(linear, {linear}, {}) == {}
    found = wrap.CustomPolicy(lambda m: {"a": 2})._run_policy(linear, set(), {"a": 1, "b": 3})
    assert found == {linear: {"a": 2, "b": 3}}
    root = model()
    for policy, wrapper in ((None, Wrapper), (wrap.always_wrap_policy, None)):
        with pytest.raises(AssertionError, match="Must specify"):
            wrap._recursive_wrap(root, policy, wrapper, set(), set())
    with pytest.raises(AssertionError, match="already wrapped"):
        wrap._recursive_wrap(Wrapper(root), wrap.always_wrap_policy, Wrapper, set(), set())
    made, count = wrap._recursive_wrap(root, wrap.always_wrap_policy, Wrapper, {root[1]}, {root[0].bias})
    assert isinstance(made, Wrapper) and count == sum(p.numel() for p in root.parameters()) - 4
    assert isinstance(root[0], Wrapper) and not isinstance(root[1], Wrapper)


def test_classes_without_mixed_precision():
    root = model()

    class Mixed:
        _module_classes_to_ignore = (nn.ReLU,)

    with pytest.warns(UserWarning, match="mixed precision disabled"):
        _wrap_utils._auto_wrap(
            root, wrap.ModuleWrapPolicy({nn.Linear}), set(), set(), {"mixed_precision": Mixed}, Wrapper
        )
    options = {n.replace("inner.", ""): m.options for n, m in root.named_modules() if isinstance(m, Wrapper)}
    assert options == {
        "0": {"mixed_precision": Mixed},
        "1.0": {"mixed_precision": Mixed},
        "1.1": {"mixed_precision": None},
        "2.0": {"mixed_precision": Mixed},
    }
    kept = wrap._run_mixed_precision_override_policy(model(), [nn.ReLU], set(), {"a": 1}, {})
    assert list(kept.values()) == [{"a": 1, "mixed_precision": None}]
    root = model()
    assert wrap._run_mixed_precision_override_policy(root, [nn.ReLU], {root[1][1]}, {}, {}) == {}


@pytest.mark.parametrize("way", list(recompute.CheckpointImpl))
def test_recomputation_with_keywords_and_functions(way):
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 2)

        def forward(self, x, y=None, *, scale=1.0):
            return self.layer(x) * scale + y

    inner = Scaled()
    wrapper = recompute.checkpoint_wrapper(inner, way)
    x, y = torch.randn(4, 3, requires_grad=True), torch.randn(4, 2, requires_grad=True)
    first = torch.autograd.grad(inner(x, y, scale=3.0).square().sum(), (x, y))
    second = (
        torch.autograd.grad(wrapper(x, y, scale=3.0).square().sum(), (x, y))
        if way.name != "REENTRANT"
        else None
    )
    if second is None:  # re-entrant recomputation needs backward()
        wrapper(x, scale=3.0, y=y).square().sum().backward()
        second = x.grad, y.grad
    assert all(torch.allclose(a, b) for a, b in zip(first, second, strict=True))
    calls = []
    own = recompute.checkpoint_wrapper(
        inner, way, lambda f, *a, note, **k: calls.append(note) or f(*a, **k), note="n"
    )
    assert torch.equal(own(x, y), inner(x, y)) and calls == ["n"]


def test_recomputation_by_a_policy():
    root = model()
    recompute.apply_activation_checkpointing(root, auto_wrap_policy=wrap.ModuleWrapPolicy({nn.ReLU}))
    assert isinstance(root[1][1], recompute.CheckpointWrapper) and isinstance(root[0], nn.Linear)
    root = model()
    recompute.apply_activation_checkpointing(root)
    assert isinstance(root[0], recompute.CheckpointWrapper) and not isinstance(
        root, recompute.CheckpointWrapper
    )
    root = model()
    only = functools.partial(wrap.lambda_auto_wrap_policy, lambda_fn=lambda m: isinstance(m, nn.ReLU))
    recompute.apply_activation_checkpointing(root, auto_wrap_policy=only)
    assert isinstance(root[1][1], recompute.CheckpointWrapper) and isinstance(root[0], nn.Linear)


def test_modules_that_policies_by_class_ignore():
    root = model()
    policy = wrap.ModuleWrapPolicy([nn.Linear, nn.ReLU])
    found = policy._run_policy(root, {root[0], root[1][1]}, {"a": 1})
    assert set(found) == {root[1][0], root[2][0]} and all(options == {"a": 1} for options in found.values())
    assert len({id(options) for options in found.values()}) == 2  # each may be changed by itself
    assert policy(root[0], False) and policy(root[1], True) and not policy(root[1], False)
    assert "Linear" in repr(policy)
    answers = {root[0]: True, root[1]: {"a": 2, "b": 3}, root[2]: {}}
    custom = wrap.CustomPolicy(lambda m: answers.get(m, False))
    found = custom._run_policy(root, {root[0]}, {"a": 1})
    assert found == {root[1]: {"a": 2, "b": 3}, root[2]: {"a": 1}}
    with pytest.raises(ValueError, match="should return False/True or a kwarg dict, but it returned 3"):
        wrap.CustomPolicy(lambda m: 3)._run_policy(root, set(), {})


def test_sizes_at_which_modules_are_wrapped():
    policy, linear = wrap.size_based_auto_wrap_policy, nn.Linear(2, 2)
    for numel, expected in ((10**8 - 1, False), (10**8, True)):
        assert policy(linear, False, numel) is policy(linear, True, numel) is expected
    heads, container = nn.MultiheadAttention(4, 2), nn.ModuleList()
    for module, inside, itself in (
        (heads, False, True),
        (container, True, False),
        (nn.ModuleDict(), True, False),
    ):
        assert (policy(module, True, 7, 7), policy(module, False, 7, 7)) == (inside, itself)
    given = {"force_leaf_modules": {nn.Linear}, "exclude_wrap_modules": {nn.MultiheadAttention}}
    for module, inside, itself in ((heads, True, False), (container, True, True), (linear, False, True)):
        assert (policy(module, True, 7, 7, **given), policy(module, False, 7, 7, **given)) == (inside, itself)


def test_a_module_in_two_places_is_replaced_once():
    shared, seen = nn.ReLU(), []
    tree = nn.Sequential(nn.Sequential(shared), nn.Sequential(shared))
    wrap._post_order_apply(tree, lambda module: seen.append(module))
    assert seen == [shared, tree[0], tree[1], tree]


def test_the_root_is_not_wrapped_by_a_policy():
    root = model()
    choose = wrap._construct_wrap_fn(root, {root: {}, root[0]: {"a": 1}}, Wrapper)
    assert choose(root) is None and choose(root[1]) is None and choose(root[0]).options == {"a": 1}


def test_classes_without_mixed_precision_are_wrapped_too():
    root = model()
    options, chosen = {"mixed_precision": "bf16", "a": 1}, {root[0]: {"mixed_precision": "bf16", "a": 2}}
    made = wrap._run_mixed_precision_override_policy(root, [nn.Linear], {root[2][0]}, options, chosen)
    assert made is chosen and made == {
        root[0]: {"mixed_precision": None, "a": 2},
        root[1][0]: {"mixed_precision": None, "a": 1},
    }
    assert options["mixed_precision"] == "bf16"


def test_wrapping_by_a_function():
    def linears(module, recurse, nonwrapped_numel):
        asked.append((type(module).__name__, recurse, nonwrapped_numel))
        return recurse or isinstance(module, (nn.Linear, nn.Sequential))

    asked, root = [], nn.Sequential(nn.Linear(1, 2), nn.Sequential(nn.Linear(2, 3), nn.PReLU()))
    ignored = root[1][0].bias
    made, count = wrap._recursive_wrap(root, linears, Wrapper, {root[1][1]}, {ignored}, a=1)
    assert isinstance(made, Wrapper) and made.options == {"a": 1} and count == 4 + 6 + 1
    assert isinstance(root[0], Wrapper) and isinstance(root[1], Wrapper)
    assert isinstance(root[1].inner[0], Wrapper) and isinstance(root[1].inner[1], nn.PReLU)
    assert asked == [
        ("Sequential", True, 11),
        ("Linear", True, 4),
        ("Linear", False, 4),
        ("Sequential", True, 7),
        ("Linear", True, 6),
        ("Linear", False, 6),
        ("Sequential", False, 1),
        ("Sequential", False, 0),
    ]
    plain = nn.Sequential(nn.Linear(1, 2))
    made, count = wrap._recursive_wrap(plain, linears, Wrapper, set(), set(), only_wrap_children=True)
    assert made is plain and count == 4 and isinstance(plain[0], Wrapper)
    never = nn.Sequential(nn.Linear(1, 2))
    made, count = wrap._recursive_wrap(never, lambda **k: False, Wrapper, set(), set())
    assert made is never and count == 0 and isinstance(never[0], nn.Linear)
    with pytest.raises(AssertionError, match="is already wrapped"):
        wrap._recursive_wrap(plain, linears, Wrapper, set(), set())
    wrap._recursive_wrap(plain, linears, Wrapper, {plain[0]}, set())
    for policy, cls, said in ((None, Wrapper, "auto_wrap_policy"), (linears, None, "wrapper_cls")):
        with pytest.raises(AssertionError, match=f"Must specify {said}"):
            wrap._recursive_wrap(nn.ReLU(), policy, cls, set(), set())
