"""A program that a type checker reads and nothing runs.

It is right but for the lines that end with the code of mypy's error.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, Dataset, TensorDataset
from typing_extensions import assert_type  # of typing from Python 3.11 on


class Net(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, 4)
        self.norm = nn.LayerNorm(4)
        self.scale = nn.Parameter(torch.ones(4))

    def forward(self, x: Tensor, flip: bool = False) -> Tensor:
        y = F.relu(self.linear(-x if flip else x))
        return self.norm(y) * self.scale


class Rows(Dataset[Tensor]):
    def __len__(self) -> int:
        return 3

    def __getitem__(self, index: int) -> Tensor:
        return torch.full((2,), index)


def train() -> None:
    model = Net(3)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    schedule = StepLR(optimizer, 10)
    data = TensorDataset(torch.randn(8, 3), torch.randint(0, 4, (8,)))
    loader = DataLoader(data, batch_size=4, shuffle=True)
    total: float = 0.0
    for x, y in loader:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = F.cross_entropy(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        total += loss.item()
    torch.save(model.state_dict(), "model.pt")


@torch.no_grad()
def tensors(x: Tensor, index: torch.LongTensor) -> None:
    assert_type(x + 1, Tensor)
    assert_type(1 - x, Tensor)
    assert_type(x > 0, Tensor)
    assert_type(x[0, :, None], Tensor)
    assert_type(x.sum(dim=(0, 1), keepdim=True), Tensor)
    assert_type(x.view(1, -1).permute(1, 0).to(torch.float16).contiguous(), Tensor)
    assert_type(x.add_(2).t(), Tensor)
    assert_type(torch.add(x, x, alpha=2, out=x), Tensor)
    assert_type(torch.max(x), Tensor)
    assert_type(torch.maximum(x, x), Tensor)
    assert_type(x.split(2), tuple[Tensor, ...])
    values, indices = x.max(dim=1)
    assert_type(values, Tensor)
    assert_type(torch.linalg.eigh(x).eigenvalues, Tensor)
    assert_type(x.gather(1, index), Tensor)
    assert_type(x.dim(), int)
    assert_type(x.size(0), int)
    assert_type(x.is_contiguous(), bool)
    assert_type(x.dtype, torch.dtype)
    assert_type(x.grad, Tensor | None)
    torch.cuda.is_available()
    assert_type(nn.Linear(2, 3).weight, nn.Parameter)
    torch.ops.aten.add(x, 1)


def wrong(x: Tensor, optimizer: torch.optim.SGD) -> int:
    x.no_such_method()  # attr-defined
    nn.Linear(3)  # call-arg
    torch.zeros("shape")  # arg-type
    optimizer.stop()  # attr-defined
    nn.Linaer(2, 3)  # attr-defined
    F.softmax(x, dim="rows")  # arg-type
    F.softmax(x, dims=1)  # call-arg
    x.reshape("a")  # arg-type
    torch.optim.Adam()  # call-arg
    return x.mean()  # return-value
