"""Breaks the adapter on purpose: python course/breakages.py NAME CHAPTER runs a chapter with one defect.

A chapter that teaches something must fail if that is wrong. The tests run each chapter with the defects that belong to it.
"""

from __future__ import annotations

import itertools
import os
import runpy
import sys
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("MSADAPTER_DEVICE", "cuda")  # as chapter 5 sets it; the others do not ask for a device
import msadapter  # noqa: E402

msadapter.install()

import torch  # noqa: E402
from torch.nn import functional  # noqa: E402

BREAKAGES: dict[str, tuple[str, Callable[[], None]]] = {}  # name -> (chapter, what breaks it)


def _breaks(chapter: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    def note(function: Callable[[], None]) -> Callable[[], None]:
        BREAKAGES[function.__name__] = (chapter, function)
        return function

    return note


@_breaks("1")
def optimizer_that_skips() -> None:
    torch.optim.AdamW.step = lambda self, closure=None: None


@_breaks("1")
def attention_without_its_mask() -> None:
    whole = functional.scaled_dot_product_attention
    functional.scaled_dot_product_attention = lambda q, k, v, *args, is_causal=False, **kw: whole(
        q, k, v, *args, **kw
    )


@_breaks("1")
def other_random_numbers() -> None:
    seed = torch.manual_seed
    torch.manual_seed = lambda number: seed(number + 1)


@_breaks("1")
def gradients_that_are_not_checked() -> None:
    torch.autograd.gradcheck = lambda *args, **kw: True


@_breaks("1")
def patches_without_fingerprints() -> None:
    from patches import manager

    manager.check_target = lambda *args, **kw: None


@_breaks("2")
def sources_in_turn() -> None:
    from megatron_ms.data import blending

    blending.order = lambda weights: (n % len(weights) for n in itertools.count())


@_breaks("2")
def mean_that_is_a_sum() -> None:
    torch.Tensor.mean = torch.Tensor.sum


@_breaks("3")
def loss_that_counts_the_question() -> None:
    whole = functional.cross_entropy
    functional.cross_entropy = lambda scores, labels, **kw: whole(scores, labels.clamp(min=0))


@_breaks("3")
def parameters_that_cannot_be_frozen() -> None:
    torch.nn.Module.requires_grad_ = lambda self, requires_grad=True: self


@_breaks("4")
def clamp_without_limits() -> None:
    torch.Tensor.clamp = lambda self, *args, **kw: self


@_breaks("4")
def biased_standard_deviation() -> None:
    std = torch.Tensor.std
    torch.Tensor.std = lambda self, *args, **kw: std(self, *args, correction=0, **kw)


@_breaks("4")
def gradients_that_are_zero() -> None:
    clip = torch.nn.utils.clip_grad_norm_
    torch.nn.utils.clip_grad_norm_ = lambda parameters, *args: clip(list(parameters), 0.0)


@_breaks("4")
def exponential_without_gradient() -> None:
    exp = torch.Tensor.exp
    torch.Tensor.exp = lambda self: exp(self.detach())


@_breaks("4")
def samples_that_ignore_the_chances() -> None:
    torch.multinomial = lambda p, n, **kw: torch.randint(
        p.shape[-1], (*p.shape[:-1], n), generator=kw.get("generator")
    )


@_breaks("5")
def checkpoint_that_keeps_everything() -> None:
    from torch.utils import checkpoint

    checkpoint.checkpoint = lambda function, *args, use_reentrant=None: function(*args)


@_breaks("5")
def gelu_that_keeps_its_result_too() -> None:
    class Keeps(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x, x.clone())
            return whole(x)

        @staticmethod
        def backward(ctx, g):
            x = ctx.saved_tensors[0].detach().requires_grad_()
            with torch.enable_grad():
                return torch.autograd.grad(whole(x), x, g)[0]

    whole = functional.gelu
    functional.gelu = Keeps.apply


@_breaks("5")
def moments_in_half_precision() -> None:
    step = torch.optim.AdamW.step

    def halved(self, closure=None):
        step(self, closure)
        for state in self.state.values():
            state["exp_avg"] = state["exp_avg"].half()

    torch.optim.AdamW.step = halved


def main(name: str) -> None:
    chapter, function = BREAKAGES[name]
    folder = Path(__file__).resolve().parent
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    function()
    (source,) = folder.glob(f"{chapter}_*.py")
    runpy.run_path(str(source), run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1])
