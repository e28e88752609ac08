"""transformers' models with the parameters of vLLM: one projection for queries, keys and values, one for gate and up.

MindSpeed-RL moves the weights of Megatron into an engine by the names, shapes and dtypes of vLLM's parameters, and replaces
the storage of each (`param.data = ...`). transformers' own layers then read their parts of these parameters.
"""

from __future__ import annotations

from typing import Any

import torch
import transformers


class Part:
    """What transformers calls as `q_proj(x)`: some rows of a linear layer. It has no parameters of its own."""

    def __init__(self, whole: torch.nn.Linear, start: int, size: int) -> None:
        self.whole, self.rows = whole, slice(start, start + size)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        bias = self.whole.bias
        return torch.nn.functional.linear(
            x, self.whole.weight[self.rows], None if bias is None else bias[self.rows]
        )


def _merge(module: torch.nn.Module, whole: str, parts: tuple[str, ...]) -> None:
    """Replaces linear layers of a module by one, of which they become parts."""
    layers = [getattr(module, name) for name in parts]
    first, sizes = layers[0], [layer.out_features for layer in layers]
    made = torch.nn.Linear(first.in_features, sum(sizes), bias=first.bias is not None)
    made = made.to(first.weight.device, first.weight.dtype)
    for kind in ("weight", "bias"):
        if getattr(first, kind) is not None:
            getattr(made, kind).data.copy_(torch.cat([getattr(layer, kind).data for layer in layers]))
    setattr(module, whole, made)
    for name, size in zip(parts, sizes, strict=True):
        delattr(module, name)
        setattr(module, name, Part(made, sum(sizes[: parts.index(name)]), size))


ARCHITECTURES = ("LlamaForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM")


def build(folder: str, dtype: torch.dtype, load: bool, trust_remote_code: bool = False) -> Any:
    """The model of a folder with a config.json, with vLLM's parameters. load: whether to read its weights, too.

    Raises:
        NotImplementedError: the architecture is not one of ARCHITECTURES.
    """
    config = transformers.AutoConfig.from_pretrained(folder, trust_remote_code=trust_remote_code)
    architecture = (config.architectures or ["none"])[0]
    if architecture not in ARCHITECTURES:
        raise NotImplementedError(
            f"{folder}: vllm.LLM on a CPU answers for {', '.join(ARCHITECTURES)}, and this is {architecture}"
        )
    kind = getattr(transformers, architecture)
    model = (kind.from_pretrained(folder) if load else kind(config)).to(dtype)
    for layer in model.model.layers:
        _merge(layer.self_attn, "qkv_proj", ("q_proj", "k_proj", "v_proj"))
        _merge(layer.mlp, "gate_up_proj", ("gate_proj", "up_proj"))
    return model.eval().requires_grad_(False)
