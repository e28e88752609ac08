"""`__torch_dispatch__` of modes and subclasses. The expected values are those of PyTorch 2.13."""

import copy
import io
import math
import pickle

import pytest

import msadapter as torch
from msadapter.ops._declare import raw
from msadapter.utils._python_dispatch import TorchDispatchMode, is_traceable_wrapper_subclass


class Log(TorchDispatchMode):
    def __init__(self):
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


class Boxed(torch.Tensor):
    """Forwards every operator to the tensor inside it."""

    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, inner):
        like = {"strides": inner.stride(), "dtype": inner.dtype, "device": inner.device}
        return torch.Tensor._make_wrapper_subclass(cls, inner.size(), **like)

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        assert all(issubclass(t, cls) for t in types)
        result = func(*[a.inner if isinstance(a, cls) else a for a in args], **(kwargs or {}))
        return cls(result) if isinstance(result, torch.Tensor) else result


def test_a_mode_sees_the_operators_of_a_call():
    x = torch.ones(3, 4, requires_grad=True)
    with Log() as log:
        y = (x.relu() * 2).sum()
        torch.zeros(2)
    assert log.seen == ["aten.relu.default", "aten.mul.Tensor", "aten.sum.default", "aten.zeros.default"]
    y.backward()
    assert torch.equal(x.grad, torch.full((3, 4), 2.0))
    torch.ones(2).add(1)
    assert len(log.seen) == 4


def test_modes_nest_and_may_answer():
    class Double(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            result = func(*args, **(kwargs or {}))
            return result * 2 if func is torch.ops.aten.neg.default else result

    with Log() as outer, Double():
        assert torch.neg(torch.ones(1)).tolist() == [-2.0]
    assert outer.seen[1:] == ["aten.neg.default", "aten.mul.Tensor"]


def test_a_wrapper_has_no_memory_but_a_place():
    w = Boxed(torch.arange(4.0).view(2, 2).t())
    assert (tuple(w.shape), w.dtype, w.stride(), w.device.type) == ((2, 2), torch.float32, (1, 2), "cpu")
    assert type(w) is Boxed and w.is_leaf and not w.requires_grad


def test_a_wrapper_answers_its_operators():
    inner = torch.arange(4.0).view(2, 2)
    w = Boxed(inner)
    for result, expected in (
        (w + 1, inner + 1),
        (w @ w, inner @ inner),
        (w.softmax(-1), inner.softmax(-1)),
        (w.t(), inner.t()),
        (w[0], inner[0]),
        (w.detach(), inner),
        (2 * w, inner * 2),
    ):
        assert type(result) is Boxed and torch.equal(result.inner, expected)
    w.add_(1)
    assert inner.tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_an_attribute_of_a_saved_tensor_lives_as_long_as_the_graph():
    w = Boxed(torch.ones(2)).requires_grad_()
    y = (w * 3).exp()
    product = y.grad_fn.next_functions[0][0]
    leaf = product.next_functions[0][0].variable
    assert leaf is w and type(y.grad_fn._saved_result) is Boxed
    del leaf, product
    kept = torch.autograd.graph.get_gradient_edge(y)
    del y
    assert torch.autograd.grad(kept, w, Boxed(torch.ones(2)))[0].inner.tolist() == pytest.approx(
        [3 * math.e**3] * 2
    )


def test_a_kernel_that_a_subclass_does_not_see_is_refused():
    w = Boxed(torch.ones(2, 2))
    with pytest.raises(NotImplementedError, match="Boxed without memory"):
        raw.ReLU(w)


def test_a_subclass_that_refuses():
    class Refusing(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            raise NotImplementedError(f"not {func}")

    x = torch.Tensor._make_wrapper_subclass(Refusing, (2, 3))
    with pytest.raises(NotImplementedError, match=r"not aten.add.Tensor"):
        x + 1
    assert not is_traceable_wrapper_subclass(x)


def test_operators_of_a_handler_are_recorded():
    class Doubles(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            with torch.overrides.enable_reentrant_dispatch():
                self.inside = torch.ones(1, requires_grad=True).exp().grad_fn
            return func(*args, **(kwargs or {}))

    with Doubles() as mode:
        torch.ones(2).neg()
    assert mode.inside.name() == "ExpBackward0"


def test_dispatch_is_disabled_while_a_guard_lives():
    with Log() as log:
        guard = torch._C._DisableTorchDispatch()
        torch.ones(2).neg()
        del guard
        torch.ones(2).abs()
    assert log.seen == ["aten.ones.default", "aten.abs.default"]


def test_the_alias_of_a_dual_tensor_is_that_of_its_class():
    seen = []

    class Counted(torch.Tensor):
        __torch_function__ = torch._C._disabled_torch_function_impl

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            seen.append(str(func))
            guard = torch._C._DisableTorchDispatch()
            try:
                return func(*args, **(kwargs or {}))
            finally:
                del guard

    x = torch.ones(2).as_subclass(Counted)
    with torch.autograd.forward_ad.dual_level():
        seen.clear()
        dual = torch.autograd.forward_ad.make_dual(x, torch.full((2,), 3.0))
        assert seen[0] == "aten.alias.default" and seen.count("aten.alias.default") == 1
        assert torch.autograd.forward_ad.unpack_dual(dual).tangent.tolist() == [3.0, 3.0]


def _saved(x):
    stream = io.BytesIO()
    torch.save(x, stream)
    stream.seek(0)
    return stream


@pytest.mark.parametrize(
    "sent",
    [
        lambda x: pickle.loads(pickle.dumps(x)),
        lambda x: torch.load(_saved(x), weights_only=False),
        copy.copy,
    ],
)
def test_a_wrapper_is_pickled(sent):
    """As its facts and its attributes: a class without memory has nothing else."""
    x = Boxed(torch.arange(6.0).reshape(3, 2).t())
    x.requires_grad_()
    x.note = "kept"
    got = sent(x)
    assert type(got) is Boxed and got.note == "kept" and got.requires_grad and got.is_leaf
    assert (got.shape, got.stride(), got.dtype, str(got.device)) == ((2, 3), (1, 2), torch.float32, "cpu")
    assert torch.equal(got.inner, x.inner)


def test_a_file_of_weights_makes_a_wrapper_only_of_a_class_that_the_program_allows():
    x = Boxed(torch.arange(3.0))
    with pytest.raises(pickle.UnpicklingError, match="Boxed"):
        torch.load(_saved(x))
    with torch.serialization.safe_globals([Boxed]):
        assert torch.equal(torch.load(_saved(x)).inner, x.inner)


def test_no_tensor_without_memory_of_a_class_that_defines_no_operators():
    facts = torch.float32, (2,), (1,), 0, torch.strided, torch.device("cpu"), False
    with pytest.raises(TypeError, match="__torch_dispatch__"):
        torch._utils._rebuild_wrapper_subclass(torch.Tensor, *facts)
