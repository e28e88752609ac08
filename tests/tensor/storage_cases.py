"""Storages, and memory that tensors share with each other and with numpy."""

from __future__ import annotations

import warnings

import numpy as np

from tests.golden.answers import refusal


def storage_is_shared(torch):
    x = torch.arange(12.0).view(3, 4)
    views = [x.t(), x[1], x[:, 1:3], x.view(-1), x.detach(), x.data, x.diagonal(), x.unsqueeze(0)]
    same = [v.untyped_storage().data_ptr() == x.untyped_storage().data_ptr() for v in views]
    offsets = [[v.data_ptr() - x.data_ptr(), v.storage_offset(), v.stride()] for v in views]
    views[2].fill_(-1)
    return same, offsets, x, x.clone().data_ptr() == x.data_ptr()


def storage_size_and_bytes(torch):
    x = torch.arange(6, dtype=torch.int16)
    s = x[2:].untyped_storage()
    return (
        s.nbytes(),
        len(s),
        s.tolist(),
        x.nbytes,
        x.itemsize,
        x.element_size(),
        s == x.untyped_storage(),
        str(s.device),
    )


def storage_resized_to_nothing(torch):
    x = torch.ones(4)
    x.untyped_storage().resize_(0)
    empty = x.untyped_storage().nbytes()
    x.untyped_storage().resize_(16)
    x.fill_(3)
    return empty, x.untyped_storage().nbytes(), x


def typed_storage(torch):
    x = torch.arange(4.0)
    s = x[1:].storage()
    s[0] = 9.0
    return len(s), s.tolist(), x, s.size(), str(s.dtype)


def set_to(torch):
    x, y = torch.zeros(2), torch.arange(6.0)
    x.set_(y)
    first = [x.shape, x.data_ptr() == y.data_ptr(), x.is_set_to(y)]
    x.set_(y.untyped_storage(), 1, (2, 2), (2, 1))
    x[0, 0] = 50
    z = torch.ones(3).set_()
    return first, x, y, z


def resize(torch):
    x = torch.arange(4.0)
    same = x.resize_(2)
    short = [same is x, x.clone(), x.untyped_storage().nbytes()]
    x.resize_(4)
    grown = torch.arange(2.0).resize_(3, 3)
    return (
        short,
        x,
        grown.shape,
        grown.stride(),
        grown.untyped_storage().nbytes(),
        torch.ones(2).resize_as_(torch.ones(1, 2)).shape,
    )


def memory_that_numpy_has_too(torch):
    """It cannot be resized, because it would move."""
    x, given = torch.ones(3), np.zeros(3)
    array, wide, y = x.numpy(), np.asarray(torch.ones(2)), torch.from_numpy(given)
    out = torch.zeros(2)
    seen = out.numpy()
    found = [
        refusal(lambda: x.resize_(9)),
        refusal(lambda: x.untyped_storage().resize_(90)),
        refusal(lambda: y.resize_(9)),
        refusal(lambda: torch.add(torch.ones(4), 1, out=out)),
        x.untyped_storage().resizable(),
        y.untyped_storage().resizable(),
        torch.tensor(given).untyped_storage().resizable(),
        torch.tensor([1.0, 2.0]).untyped_storage().resizable(),
        x.resize_(2).shape,
    ]
    array[0] = 5
    y[1] = 7
    return found, x, given.tolist(), wide.tolist(), seen.tolist()


def results_of_numpy(torch):
    x = torch.tensor([1, -2, 3])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numpy wants other arguments of PyTorch's method
        return np.greater(x, 0), np.abs(x), np.isnan(x.double()), np.matmul(x, x), np.negative(x[0])


def tensors_of_lists_of_arrays(torch):
    z = np.zeros
    uneven = [
        [z((3, 3)), z((3, 0))],
        [[z((3, 3)), z((3, 2))]],
        [[z(3), 1.5]],
        [[1, 2, 3], z(2)],
        [z(2), [1]],
        [[1], 2],
    ]
    found = [refusal(torch.tensor, data) for data in uneven]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return found, torch.tensor([z(2), z(2)]), torch.FloatStorage(np.int16(3)).size()


def data(torch):
    x = torch.zeros(2, requires_grad=True)
    d = x.data
    d.add_(1)
    x.data = torch.ones(3) * 4
    return d.requires_grad, d, x, x.is_leaf, d._version, x._version


def data_of_another_type(torch):
    x = torch.zeros(2)
    x.data = torch.ones(3, 2, dtype=torch.float64)
    return x


def numpy_shares_memory(torch):
    x = torch.arange(12.0).view(3, 4)
    a = x.t()[1:3, ::2].numpy()
    a[...] = -1
    x[0, 0] = 100
    return (
        x,
        a.strides,
        a.tolist(),
        x.numpy()[0, 0].item(),
        str(x.half().numpy().dtype),
        refusal(x.bfloat16().numpy),
    )


def from_numpy_shares_memory(torch):
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    x = torch.from_numpy(a.T)
    x[0, 1] = 50
    a[1, 2] = 60
    readings = [torch.from_numpy(np.array(3.5)), torch.tensor(a), torch.as_tensor(a).dtype]
    a[0, 0] = 7
    return (
        x,
        x.stride(),
        readings,
        refusal(torch.from_numpy, a[::-1]),
        refusal(torch.from_numpy, [1]),
        refusal(torch.from_numpy, np.array(["a"])),
    )


def numpy_functions_take_tensors(torch):
    x = torch.arange(4.0)
    return (
        np.sum(x.numpy()).item(),
        np.asarray(x).tolist(),
        float(np.add(x.numpy(), 1)[1]),
        np.array(x, dtype=np.int64).tolist(),
    )


def dlpack(torch):
    x = torch.arange(6.0).view(2, 3)
    y = torch.from_dlpack(x)
    z = np.from_dlpack(x.t())
    y[0, 0] = 9
    return x, z.tolist(), y.data_ptr() == x.data_ptr(), refusal(torch.ones(2, requires_grad=True).__dlpack__)
