"""Complete training steps."""

from __future__ import annotations

import dataclasses
import functools

import torch

from . import gpt, llama, megatron_core
from .registry import work

for _name, _config in gpt.CONFIGS.items():
    work(
        f"GPT step {_name}",
        "training steps",
        flops=gpt.flops(_config),
        target=1.0,
        memory=_config.dtype == "float32",
    )(functools.partial(gpt.training_step, _config))

work("Llama step (transformers)", "training steps", target=0.9, memory=True)(llama.training_step)

# The same steps after torch.compile on both sides. PyTorch compiles them as a whole, msadapter fuses element-wise chains alone.
for _name, _config in gpt.CONFIGS.items():
    work(f"GPT step {_name}, compiled", "compiled training steps", flops=gpt.flops(_config), target=1.0)(
        functools.partial(gpt.training_step, _config, torch.compile)
    )
work("Llama step (transformers), compiled", "compiled training steps", target=1.0)(
    functools.partial(llama.training_step, torch.compile)
)

for _name, _config in megatron_core.CONFIGS.items():
    work(
        f"Megatron step {_name}",
        "training steps",
        target=1.3 if _config.fused else 1.0,
        memory=not _config.fused,
    )(functools.partial(megatron_core.training_step, _config))

# Growth of the cost: one size at a time is varied, starting from this model.
MIDDLE = gpt.Config(layers=4, hidden=128, heads=8, sequence=128, micro_batch=2, micro_batches=1)
GROWTH = {
    "layers": (1, 2, 4, 8, 16),
    "hidden": (64, 128, 256, 512),
    "sequence": (64, 128, 256, 512),
    "micro_batch": (1, 2, 4, 8),
}
for _size, _values in GROWTH.items():
    for _value in _values:
        _config = dataclasses.replace(MIDDLE, **{_size: _value})
        work(f"GPT, {_size} {_value}", "growth", flops=gpt.flops(_config))(
            functools.partial(gpt.training_step, _config)
        )
