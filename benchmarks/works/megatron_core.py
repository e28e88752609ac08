"""Megatron Core's GPTModel from the checkout that MSADAPTER_MEGATRON names, with torch's AdamW.

The sizes are those of the loss-parity runs. On real PyTorch without a GPU, `_cpu_answers` replaces the few functions of
torch.cuda that Megatron calls. Nothing else differs between the sides.
"""

from __future__ import annotations

import dataclasses
import os
import sys
import tempfile

import torch

from . import gpt
from .registry import NotHere


@dataclasses.dataclass(frozen=True)
class Config(gpt.Config):
    """The sizes of the GPT, and whether to use Megatron's fused functions."""

    fused: bool = False


CONFIGS = {
    "128 float32": Config(),
    "128 float32, fused flags": Config(fused=True),
    "512 float32": Config(hidden=512, sequence=512, micro_batches=1),
}


def _cpu_answers() -> None:
    """Replaces functions of torch.cuda on a PyTorch without a GPU by those of the CPU (device and random state)."""
    cuda = torch.cuda
    cuda.current_device = lambda: "cpu"
    cuda.get_rng_state = cuda.random.get_rng_state = lambda *a, **k: torch.get_rng_state()
    cuda.set_rng_state = cuda.random.set_rng_state = lambda state, *a, **k: torch.set_rng_state(state)
    cuda.manual_seed = cuda.manual_seed_all = lambda seed: None
    cuda._lazy_init, cuda._lazy_call = lambda: None, lambda call, **k: call()
    cuda.default_generators = {"cpu": torch.default_generator, 0: torch.default_generator}
    cuda.nvtx.range_push = cuda.nvtx.range_pop = lambda *a: None
    torch.Tensor.cuda = lambda self, *a, **k: self
    torch.nn.Module.cuda = lambda self, *a, **k: self


def _scripted(function):
    """Compiles a function with TorchScript, as Megatron does on older PyTorch. Methods stay unchanged."""
    return function if "self" in function.__code__.co_varnames[:1] else torch.jit.script(function)


def _megatron():
    path = os.environ.get("MSADAPTER_MEGATRON")
    if not path:
        raise NotHere("MSADAPTER_MEGATRON names no Megatron-LM checkout")
    sys.path.insert(0, path)
    if not torch.cuda.is_available():
        _cpu_answers()
    try:
        import megatron.core.jit
    except ImportError as error:
        raise NotHere(f"Megatron core cannot be imported ({error})") from None
    if torch.cuda.current_device() == "cpu":
        megatron.core.jit.jit_fuser = _scripted  # torch.compile would need a compiler for GPUs


def _parallel_state():
    from megatron.core import parallel_state, tensor_parallel

    if parallel_state.is_initialized():
        return
    if not torch.distributed.is_initialized():
        store = os.path.join(tempfile.mkdtemp(prefix="rendezvous"), "store")
        torch.distributed.init_process_group("gloo", init_method=f"file://{store}", rank=0, world_size=1)
    parallel_state.initialize_model_parallel()
    tensor_parallel.model_parallel_cuda_manual_seed(1234)


def _model(config: Config):
    from megatron.core.models.gpt import GPTModel
    from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
    from megatron.core.transformer import TransformerConfig

    about = TransformerConfig(
        num_layers=config.layers,
        hidden_size=config.hidden,
        num_attention_heads=config.heads,
        attention_dropout=0.0,
        hidden_dropout=0.0,
        use_cpu_initialization=True,
        attention_softmax_in_fp32=True,
        init_method_std=0.02,
        masked_softmax_fusion=config.fused,
        bias_activation_fusion=config.fused,
        bias_dropout_fusion=config.fused,
        gradient_accumulation_fusion=False,
        persist_layer_norm=False,
    )
    return GPTModel(
        config=about,
        transformer_layer_spec=get_gpt_layer_local_spec(),
        vocab_size=config.vocabulary,
        max_sequence_length=config.sequence,
        share_embeddings_and_output_weights=True,
    )


def training_step(config: Config):
    """Prepares an optimizer step: gradient accumulation, clipping, AdamW."""
    _megatron()
    torch.manual_seed(1234)
    _parallel_state()
    model = _model(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.95), weight_decay=0.01)
    shape = (config.micro_batches, config.micro_batch, config.sequence + 1)
    data = torch.randint(0, config.vocabulary, shape)
    places = torch.arange(config.sequence).expand(config.micro_batch, -1)
    mask = torch.ones(1, 1, config.sequence, config.sequence, dtype=torch.bool).triu(1)

    def step():
        optimizer.zero_grad()
        total = 0.0
        for part in data:
            loss = model(part[:, :-1], places, mask, labels=part[:, 1:]).mean() / config.micro_batches
            loss.backward()
            total += loss.item()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return total

    return step
