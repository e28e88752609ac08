"""The checks of the exercises of chapter 1. Each raises AssertionError with a hint if the answer is wrong."""

import torch


def exercise_1_1(gradient) -> None:
    x = torch.linspace(-2, 2, 9, dtype=torch.float64, requires_grad=True)
    g = torch.linspace(1, 3, 9, dtype=torch.float64)
    (x * torch.tanh(x)).backward(g)
    assert torch.allclose(gradient(g, x.detach()), x.grad), (
        "the formula is not g * (tanh(x) + x * (1 - tanh(x)^2)); was g forgotten?"
    )


def exercise_1_2(edit) -> None:
    engine = (
        "def engine():\n    assert has_cuda()\n    return 'running'\n\n\ndef has_cuda():\n    return False\n"
    )
    changed = edit(engine)
    names: dict = {}
    exec(changed, names)
    assert names["has_cuda"]() is True, "has_cuda still returns something else than True"
    assert changed.partition("def has_cuda")[0] == engine.partition("def has_cuda")[0], (
        "the edit changes engine too"
    )


def exercise_1_3(numbers) -> None:
    x = torch.tensor([3.0, 1.0, 2.0], requires_grad=True)
    (torch.sort(x).values @ torch.tensor([1.0, 10.0, 100.0])).backward()
    assert list(numbers) == x.grad.tolist(), "the smallest number of x is multiplied by 1, the largest by 100"
