"""Breaks the adapter or a program on purpose: python course/breakages.py NAME runs a chapter with one defect.

A chapter that teaches something must fail if that is wrong, in the section that teaches it. The tests run each chapter with the
defects that belong to it. Most of them change a function of the adapter. Some change one line of a chapter, or of a program that
it starts.
"""

from __future__ import annotations

import itertools
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("MSADAPTER_DEVICE", "cuda")  # as chapter 5 sets it; the others do not ask for a device
import msadapter  # noqa: E402

msadapter.install()

import torch  # noqa: E402
from torch.nn import functional  # noqa: E402

HERE = Path(__file__).resolve().parent
# name -> (the section that must fail, what breaks the adapter)
BREAKAGES: dict[str, tuple[str, Callable[[], None]]] = {}
# name -> (the section that must fail, the file, its line, what takes the line's place)
EDITS: dict[str, tuple[str, str, str, str]] = {
    "resume_without_the_optimizer": (
        "2.7",
        "programs/pretrain.py",
        'optimizer.load_state_dict(state["optimizer"])',
        "pass",
    ),
    "tensor_ranks_with_other_halves": (
        "2.6",
        "programs/pretrain.py",
        "gate, up = (part.chunk(size)[rank] for part in values.chunk(2))",
        "gate, up = values.chunk(size)[rank].chunk(2)",
    ),
    "gradients_that_stay_at_home": (
        "2.6",
        "programs/pretrain.py",
        "torch.distributed.all_reduce(parameter.grad, group=parallel_state.get_data_parallel_group())",
        "pass",
    ),
    "merge_without_its_scale": (
        "3.6",
        "3_finetuning.py",
        "self.layer.weight + self.scale * self.b @ self.a",
        "self.layer.weight + self.b @ self.a",
    ),
    "chat_with_the_old_model": ("3.7", "3_finetuning.py", "model: merged,", "model: tuned,"),
    "keys_before_queries": ("3.8", "3_finetuning.py", "torch.cat([q, k, v], 1)", "torch.cat([k, q, v], 1)"),
    "kl_that_is_dropped": ("4.7", "4_reinforcement_learning.py", " + beta * k3", ""),
    "exchange_that_is_forgotten": (
        "5.6",
        "programs/data_parallel.py",
        "parameter.register_post_accumulate_grad_hook(begin)",
        "pass",
    ),
}


def _breaks(section: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    def note(function: Callable[[], None]) -> Callable[[], None]:
        BREAKAGES[function.__name__] = (section, function)
        return function

    return note


@_breaks("1.1")
def optimizer_that_skips() -> None:
    torch.optim.AdamW.step = lambda self, closure=None: None


@_breaks("1.3")
def silu_that_is_relu() -> None:
    functional.silu = functional.relu


@_breaks("1.6")
def attention_without_its_mask() -> None:
    whole = functional.scaled_dot_product_attention
    functional.scaled_dot_product_attention = lambda q, k, v, *args, is_causal=False, **kw: whole(
        q, k, v, *args, **kw
    )


@_breaks("1.6")
def other_random_numbers() -> None:
    seed = torch.manual_seed
    torch.manual_seed = lambda number: seed(number + 1)


@_breaks("1.4")
def gradients_that_are_not_checked() -> None:
    torch.autograd.gradcheck = lambda *args, **kw: True


@_breaks("1.5")
def patches_without_fingerprints() -> None:
    from patches import manager

    manager.check_target = lambda *args, **kw: None


@_breaks("2.3")
def sources_in_turn() -> None:
    from megatron_ms.data import blending

    blending.order = lambda weights: (n % len(weights) for n in itertools.count())


@_breaks("2.5")
def mean_that_is_a_sum() -> None:
    torch.Tensor.mean = torch.Tensor.sum


@_breaks("2.8")
def conversion_with_gate_for_up() -> None:
    import model

    whole = model.from_megatron

    def swapped(source, shape=None):
        found = whole(source, shape)
        for name in [name for name in found if "gate_proj" in name]:
            other = name.replace("gate", "up")
            found[name], found[other] = found[other], found[name]
        return found

    model.from_megatron = swapped


@_breaks("3.3")
def loss_that_counts_the_question() -> None:
    whole = functional.cross_entropy
    functional.cross_entropy = lambda scores, labels, **kw: whole(scores, labels.clamp(min=0))


@_breaks("3.4")
def parameters_that_cannot_be_frozen() -> None:
    torch.nn.Module.requires_grad_ = lambda self, requires_grad=True: self


@_breaks("4.3")
def clamp_without_limits() -> None:
    torch.Tensor.clamp = lambda self, *args, **kw: self


@_breaks("4.5")
def biased_standard_deviation() -> None:
    std = torch.Tensor.std
    torch.Tensor.std = lambda self, *args, **kw: std(self, *args, correction=0, **kw)


@_breaks("4.1")
def gradients_that_are_zero() -> None:
    clip = torch.nn.utils.clip_grad_norm_
    torch.nn.utils.clip_grad_norm_ = lambda parameters, *args: clip(list(parameters), 0.0)


@_breaks("4.1")
def exponential_without_gradient() -> None:
    exp = torch.Tensor.exp
    torch.Tensor.exp = lambda self: exp(self.detach())


@_breaks("4.1")
def samples_that_ignore_the_chances() -> None:
    torch.multinomial = lambda p, n, **kw: torch.randint(
        p.shape[-1], (*p.shape[:-1], n), generator=kw.get("generator")
    )


@_breaks("5.4")
def checkpoint_that_keeps_everything() -> None:
    from torch.utils import checkpoint

    checkpoint.checkpoint = lambda function, *args, use_reentrant=None: function(*args)


@_breaks("5.3")
def silu_that_keeps_its_result_too() -> None:
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

    whole = functional.silu
    functional.silu = Keeps.apply


@_breaks("5.2")
def moments_in_half_precision() -> None:
    step = torch.optim.AdamW.step

    def halved(self, closure=None):
        step(self, closure)
        for state in self.state.values():
            state["exp_avg"] = state["exp_avg"].half()

    torch.optim.AdamW.step = halved


def section_of(name: str) -> str:
    """The section, such as "4.7", that must fail with this defect."""
    return (EDITS.get(name) or BREAKAGES[name])[0]


def source_of(name: str) -> Path:
    """The chapter that must notice this defect."""
    (source,) = HERE.glob(f"{section_of(name)[0]}_*.py")
    return source


def edited(name: str) -> tuple[Path, str]:
    """The file that a defect of EDITS changes, and its text with the defect.

    Raises:
        ValueError: the line is not there once.
    """
    _, file, line, replacement = EDITS[name]
    text = (HERE / file).read_text(encoding="utf-8")
    if text.count(line) != 1:
        raise ValueError(f"{file}: has {line!r} {text.count(line)} times, and should have it once")
    return HERE / file, text.replace(line, replacement)


def _start_instead(program: Path, text: str, folder: Path) -> None:
    """Lets torchrun start another text where a chapter starts a program."""
    import lesson

    copy = folder / "programs" / program.name
    copy.parent.mkdir()
    copy.write_text(text, encoding="utf-8")
    (folder / "model.py").symlink_to(HERE / "model.py")
    whole = lesson.torchrun
    lesson.torchrun = lambda processes, *words, **kw: whole(
        processes, *[copy if word == program else word for word in words], **kw
    )


def main(name: str) -> None:
    source, folder = source_of(name), tempfile.TemporaryDirectory(prefix="course-")
    os.chdir(HERE)
    sys.path.insert(0, str(HERE))
    text = source.read_text(encoding="utf-8")
    if name in EDITS:
        file, changed = edited(name)
        if file == source:
            text = changed
        else:
            _start_instead(file, changed, Path(folder.name))
    else:
        BREAKAGES[name][1]()
    with folder:
        exec(compile(text, str(source), "exec"), {"__name__": "__main__", "__file__": str(source)})


if __name__ == "__main__":
    main(sys.argv[1])
