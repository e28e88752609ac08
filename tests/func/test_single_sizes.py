"""vmap of composites that take a list of sizes, with a single number in its place."""

import pytest

import msadapter as torch


@pytest.mark.parametrize("size", [(1,), ((1,),), (5,), ([2, 1],)])
def test_sum_to_size(size):
    x = torch.arange(40.0).reshape(4, 2, 5)
    x = x[:, 0] if size != ([2, 1],) else x
    found = torch.func.vmap(lambda row: row.sum_to_size(*size))(x)
    assert torch.equal(found, torch.stack([row.sum_to_size(*size) for row in x]))
