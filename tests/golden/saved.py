"""What may be changed in place between an operator's call and its backward pass: the same code runs on PyTorch and here.

An operator saves some inputs and results for its gradient. Changing one of these in place makes the backward pass
raise; all else may be changed. The cases are the first float64 samples of the suite samples with a gradient.
"""

from __future__ import annotations

from tests.golden.second_order import call, decoded, tensors


def names(cases: dict) -> list[str]:
    """The cases of the suite samples that are used here."""
    return [
        name
        for name in cases
        if name.rpartition("-")[0].endswith("-float64") and name[-2:] in ("-0", "-1", "-2")
    ]


def changeable(torch, case: dict, arrays) -> list[bool] | None:
    """For every differentiable result, then every tensor among the arguments: whether it may be changed in place."""
    allowed, k = [], 0
    while True:
        torch.manual_seed(1)
        args = decoded(torch, case["args"], arrays)
        kwargs = {name: decoded(torch, v, arrays) for name, v in case["kwargs"].items()}
        given = tensors([args, list(kwargs.values())])
        outputs = [y for y in tensors(call(torch, case["path"], args, kwargs)) if y.requires_grad]
        if not outputs:
            return None
        targets = [*outputs, *given]
        if k == len(targets):
            return allowed
        targets[k].detach().zero_()
        try:
            torch.autograd.grad(
                [y.sum() for y in outputs], [x for x in given if x.requires_grad], allow_unused=True
            )
            allowed.append(True)
        except RuntimeError as error:
            if "modified by an inplace operation" not in str(error):
                raise
            allowed.append(False)
        k += 1
