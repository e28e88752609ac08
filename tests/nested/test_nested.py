"""What PyTorch cannot compute of nested tensors, against the parts one by one; and attacks on files with nested tensors."""

from __future__ import annotations

import io
import pickle

import pytest

import msadapter as torch
from msadapter.nested._internal import nested_tensor as jagged_module

functional = torch.nn.functional
LENGTHS = [(3, 1, 4), (2, 2), (1,), (5, 2, 7, 1)]


@pytest.fixture(autouse=True)
def _names(torch_by_name):
    """Make `import torch` return this project, because tensors are pickled under torch's names."""


def _parts(lengths, *rest, seed=3):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(n, *rest, dtype=torch.float64, generator=generator) for n in lengths]


def _leaf(lengths, *rest, seed=3):
    parts = _parts(lengths, *rest, seed=seed)
    return torch.nested.nested_tensor(parts, layout=torch.jagged, requires_grad=True)


@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("name", ["sum", "mean", "prod", "amax", "amin", "softmax"])
def test_gradients_over_the_ragged_dim_are_those_of_the_parts(name, lengths):
    nested = _leaf(lengths, 4)
    found = getattr(torch, name)(nested, 1)
    rows = found.unbind()
    dense = [part.detach().clone().requires_grad_() for part in nested.unbind()]
    wanted = [getattr(torch, name)(part, 0) for part in dense]
    assert all(torch.equal(a, b) for a, b in zip(rows, wanted, strict=True))
    sum((row * row).sum() for row in rows).backward()
    sum((row * row).sum() for row in wanted).backward()
    assert all(torch.allclose(a, b.grad) for a, b in zip(nested.grad.unbind(), dense, strict=True))


@pytest.mark.parametrize("name", ["max", "min"])
def test_an_empty_part_gets_no_gradient_of_an_extreme(name):
    nested = _leaf((2, 0, 1), 3)
    values, indices = getattr(torch, name)(nested, 1)
    values.sum().backward()
    assert indices[1].tolist() == [0, 0, 0]
    first, empty, last = nested.grad.unbind()
    assert empty.shape == (0, 3) and first.sum() == 3 and torch.equal(last, torch.ones_like(last))


@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("is_causal", [False, True])
def test_attention_is_that_of_each_part(is_causal, lengths):
    nested = _leaf(lengths, 8)
    heads = nested.unflatten(-1, [2, 4]).transpose(1, 2)
    found = functional.scaled_dot_product_attention(heads, heads, heads, is_causal=is_causal)
    (found * found).sum().backward()
    for part, row, gradient in zip(nested.unbind(), found.unbind(), nested.grad.unbind(), strict=True):
        own = part.detach().clone().requires_grad_()
        one = own.unflatten(-1, [2, 4]).transpose(0, 1)
        wanted = functional.scaled_dot_product_attention(one, one, one, is_causal=is_causal)
        (wanted * wanted).sum().backward()
        assert torch.allclose(row, wanted) and torch.allclose(gradient, own.grad)


def test_a_dense_operand_of_each_part_gets_the_gradient_of_its_part():
    nested, scale = (
        _leaf((3, 1), 4),
        torch.tensor([[[2.0]], [[3.0]]], dtype=torch.float64, requires_grad=True),
    )
    (nested * scale).sum().backward()
    sums = [float(part.sum()) for part in nested.detach().unbind()]
    assert scale.grad.flatten().tolist() == pytest.approx(sums)
    assert [part.unique().item() for part in nested.grad.unbind()] == [2.0, 3.0]


def test_a_step_of_a_model_equals_that_of_the_parts():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.LayerNorm(8)).double()
    parts = _parts((3, 1, 2), 4)
    nested = torch.nested.as_nested_tensor(parts, layout=torch.jagged)
    model(nested).sum(1).pow(2).sum().backward()
    found = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    sum(model(part).sum(0).pow(2).sum() for part in parts).backward()
    assert all(torch.allclose(a, p.grad) for a, p in zip(found, model.parameters(), strict=True))


def test_one_number_of_a_part_reaches_no_other_part():
    nested = _leaf((3, 1, 4), 4)
    nested.softmax(1).unbind()[1].sum().backward()
    assert nested.grad.unbind()[0].abs().sum() == 0 and nested.grad.unbind()[2].abs().sum() == 0


@pytest.mark.parametrize(
    "call",
    [
        lambda x: torch.fft.fft(x),
        lambda x: torch.cumsum(x, -1),
        lambda x: x.as_strided((2,), (1,)),
        lambda x: functional.conv1d(x, torch.ones(1, 1, 1)),
        lambda x: torch.addcmul(x, x, x),
        lambda x: torch.add(x, 1, out=x),
        lambda x: torch.ones(3, 1, 4).copy_(x),
        lambda x: x[torch.tensor([0])],
        lambda x: x.__setitem__(0, 1),
        lambda x: torch.add(x, torch.nested.nested_tensor([torch.ones(2)])),
    ],
)
def test_what_is_not_supported_is_refused(call):
    nested = torch.nested.nested_tensor([torch.ones(3, 4), torch.ones(1, 4)], layout=torch.jagged)
    with pytest.raises(NotImplementedError, match="docs/coverage.md"):
        call(nested)


def test_a_write_through_the_nested_tensor_is_seen_in_its_values_and_parts():
    values = torch.arange(6.0).reshape(3, 2)
    nested = torch.nested.nested_tensor_from_jagged(values, torch.tensor([0, 2, 3]))
    nested.mul_(10)
    nested.unbind()[1].add_(1)
    assert values.tolist() == [[0.0, 10.0], [20.0, 30.0], [41.0, 51.0]]


def test_a_write_that_gradients_need_is_noticed():
    nested = _leaf((3, 1), 4)
    doubled = nested * 2
    square = doubled * doubled
    doubled.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        square.sum().backward()


def test_the_same_offsets_give_the_same_length_as_long_as_they_live():
    values, offsets = torch.ones(4, 2), torch.tensor([0, 1, 4])
    lengths = {torch.nested.nested_tensor_from_jagged(values, offsets).shape[1] for _ in range(3)}
    for _ in range(50):  # new tensors may get the address of one that is gone
        lengths.add(torch.nested.nested_tensor_from_jagged(values, torch.tensor([0, 1, 4])).shape[1])
    assert len(lengths) == 51


def test_pickle_keeps_the_flag_and_attributes():
    nested = _leaf((2, 1), 2)
    nested.note = "kept"
    again = pickle.loads(pickle.dumps(nested))
    assert again.requires_grad and again.note == "kept" and again.shape[1] != nested.shape[1]


def _file(offsets, lengths=None, ragged=1):
    arguments = {"values": torch.ones(4, 2), "offsets": offsets, "lengths": lengths, "_ragged_idx": ragged}
    made = torch.nested.nested_tensor([torch.ones(2, 2)], layout=torch.jagged)
    file = io.BytesIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jagged_module.NestedTensor, "_file_parts", lambda self: arguments)
        torch.save(made, file)
    file.seek(0)
    return file


@pytest.mark.parametrize(
    "offsets, lengths, ragged",
    [
        ([0, 9], None, 1),
        ([0, 3, 1], None, 1),
        ([-1, 2], None, 1),
        ([0, 4], [9], 1),
        ([0, 4], [1, 1], 1),
        ([], None, 1),
        ([0, 4], None, 5),
        ([0, 4], None, 0),
    ],
)
def test_a_damaged_file_is_refused(offsets, lengths, ragged):
    lengths = None if lengths is None else torch.tensor(lengths)
    file = _file(torch.tensor(offsets, dtype=torch.int64), lengths, ragged)
    with pytest.raises(RuntimeError, match="nested tensor"):
        torch.load(file)
    assert torch.load(_file(torch.tensor([0, 1, 4]))).unbind()[1].shape == (3, 2)


@pytest.mark.parametrize(
    "sizes, strides, offsets",
    [
        ([[2, 9]], [[9, 1]], [0]),
        ([[2, 2]], [[2, 1]], [7]),
        ([[-1, 2]], [[2, 1]], [0]),
        ([[2, 2]], [[2, 1]], [-1]),
    ],
)
def test_parts_outside_of_the_buffer_are_refused(sizes, strides, offsets):
    with pytest.raises(RuntimeError, match="part 0 of a nested tensor"):
        torch._nested_view_from_buffer(torch.ones(8), *map(torch.tensor, (sizes, strides, offsets)))


def test_a_length_is_no_number():
    length = torch.nested.nested_tensor([torch.ones(2, 3)], layout=torch.jagged).shape[1]
    assert isinstance(length, torch.SymInt) and length == length and length != 2
    assert repr(length * 3).startswith("3*j") and hash(length) == hash(length * 1)
    with pytest.raises(TypeError):
        range(length)
    with pytest.raises(ValueError, match="indeterminate"):
        assert length < 5
    assert length >= 2 and not length < 2
    assert torch.Size([1, length])[:2] == (1, length)
