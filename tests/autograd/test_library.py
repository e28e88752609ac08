"""torch.library: overloads, and the older form of impl."""

from __future__ import annotations

import uuid

import numpy as np
import pytest

import msadapter as torch
from msadapter.library import Library, impl


@pytest.fixture
def library():
    made = Library("toy", "DEF")
    yield made
    made._destroy()


def test_overloads_are_chosen_by_the_arguments(library):
    library.define("scale.Tensor(Tensor x, Tensor by, *, int? times=None) -> Tensor")
    library.define("scale.List(Tensor x, int[] by, *, int? times=None) -> Tensor")

    @impl(library, "scale.Tensor", "CompositeExplicitAutograd")
    def of_tensor(x, by, *, times=None):
        return x * by

    @impl(library, "scale.List", "CompositeExplicitAutograd")
    def of_list(x, by, *, times=None):
        return x * sum(by) * (times or 1)

    x = torch.ones(2)
    assert torch.ops.toy.scale(x, torch.tensor(3.0)).tolist() == [3, 3]
    assert torch.ops.toy.scale(x, [1, 4], times=2).tolist() == [10, 10]
    assert torch.ops.toy.scale.List(x, [2]).tolist() == [2, 2]
    assert torch.ops.toy.scale.overloads() == ["Tensor", "List"]
    with pytest.raises(RuntimeError, match="no overload takes these arguments"):
        torch.ops.toy.scale(x, "three")
    with pytest.raises(AttributeError, match="no overload"):
        torch.ops.toy.scale.Scalar  # noqa: B018


def test_a_name_is_either_overloaded_or_not(library):
    library.define("plain(Tensor x) -> Tensor")
    with pytest.raises(RuntimeError, match="without overloads"):
        library.define("plain.Tensor(Tensor x) -> Tensor")


def test_a_function_that_wants_the_keys_is_refused():
    made = Library("keyed", "DEF")
    made.define("f(Tensor x) -> Tensor")
    with pytest.raises(NotImplementedError, match="Library.impl: with_keyset=True"):
        made.impl("f", lambda keys, x: x, "CPU", with_keyset=True)
    made._destroy()


def test_nothing_is_left_of_a_library():
    made = Library("other", "DEF")
    made.define("f.A(Tensor x) -> Tensor")
    made._destroy()
    with pytest.raises(AttributeError):
        torch.ops.other.f  # noqa: B018


def test_numbers_of_any_kind_are_scalars():
    """torch.types.Number is the union of the kinds of numbers, and one of them more would be another type."""

    def scaled(
        x: torch.Tensor, by: torch.types.Number, more: torch.types.Number | None = None
    ) -> torch.Tensor:
        return x * by * (more or 1)

    text = torch.library.infer_schema(scaled, mutates_args=())
    assert text == "(Tensor x, Scalar by, Scalar? more=None) -> Tensor"
    operator = torch.library.custom_op("numbers_of_any_kind::scaled", scaled, mutates_args=())
    assert operator(torch.ones(2), 2.5, more=2).tolist() == [5, 5]

    def refused(x: int | float) -> torch.Tensor: ...

    with pytest.raises(ValueError, match="unsupported type"):
        torch.library.infer_schema(refused, mutates_args=())


@pytest.fixture
def scaled():
    name = f"vmaplib::scaled_{uuid.uuid4().hex}"

    @torch.library.custom_op(name, mutates_args=())
    def scaled(x: torch.Tensor, y: torch.Tensor, factor: float = 1.0) -> torch.Tensor:
        return torch.from_numpy(
            np.asarray(x.numpy() * y.numpy() * factor)
        )  # not for a batched tensor, which has no numbers

    return scaled


def test_vmap_calls_an_operator_for_each_element(scaled):
    x, y = torch.arange(6.0).reshape(2, 3), torch.ones(3) * 2
    assert torch.equal(torch.vmap(scaled, (0, None))(x, y), x * 2)
    assert torch.equal(torch.vmap(torch.vmap(lambda a, b: scaled(a, b, factor=3.0)))(x, x), x * x * 3)


@pytest.mark.parametrize("register", [lambda op, rule: op.register_vmap(rule), torch.library.register_vmap])
def test_vmap_calls_the_rule_of_an_operator(scaled, register):
    seen = []

    def rule(info, in_dims, x, y, factor=1.0):
        seen.append((info.batch_size, info.randomness, in_dims, tuple(x.shape), factor))
        x, y = (
            a.unsqueeze(-1) if d is None else a.movedim(d, -1) for a, d in zip((x, y), in_dims, strict=False)
        )
        return x * y * factor, -1

    register(scaled, rule)
    x, y = torch.arange(6.0).reshape(2, 3), torch.ones(3) * 2
    assert torch.equal(torch.vmap(lambda a, b: scaled(a, b, factor=3.0), (0, None))(x, y), x * 6)
    assert seen == [(2, "error", (0, None, None), (2, 3), 3.0)]
    assert torch.equal(scaled(x, x), x * x) and len(seen) == 1  # no batch


def test_a_rule_for_vmap_by_a_decorator_and_the_gradient(scaled):
    def save(ctx, inputs, output):
        ctx.save_for_backward(inputs[1])

    @torch.library.register_vmap(scaled)
    def rule(info, in_dims, x, y, factor):
        return scaled(x, y, factor), 0

    scaled.register_autograd(lambda ctx, g: (g * ctx.saved_tensors[0], None, None), setup_context=save)
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    y = torch.arange(3.0).expand(2, 3)
    assert torch.equal(torch.autograd.grad(torch.vmap(scaled, (0, 0, None))(x, y, 1.0).sum(), x)[0], y)


def test_what_vmap_refuses_of_operators(scaled):
    x = torch.ones(2, 3)
    with pytest.raises(ValueError, match="got unexpected type for op"):
        torch.library.register_vmap(3, print)
    scaled.register_vmap(lambda info, in_dims, x, y: 3)
    with pytest.raises(RuntimeError, match="to have two returns"):
        torch.vmap(scaled)(x, x)

    @torch.library.custom_op(f"vmaplib::doubled_{uuid.uuid4().hex}", mutates_args=("x",))
    def doubled(x: torch.Tensor) -> None:
        x.mul_(2)

    with pytest.raises(RuntimeError, match="Batching rule not implemented"):
        torch.vmap(lambda a: (doubled(a), a)[1])(x)
