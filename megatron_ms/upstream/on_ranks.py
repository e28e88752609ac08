"""Megatron's model on the ranks of a layout, for programs that are started there with upstream's own flags."""

from __future__ import annotations

import functools
import sys
from typing import Any


def load(programs: str) -> list[Any]:
    """The parts of the model that this rank has, with the weights of the checkpoint that `--load` names.

    programs: the folder of upstream's pretrain_gpt.py, whose model is built.
    """
    sys.path.insert(0, programs)
    import pretrain_gpt  # first, because MindSpeed-LLM adapts Megatron when it is imported
    from megatron.core.enums import ModelType
    from megatron.training import arguments, get_model
    from megatron.training.checkpointing import load_checkpoint
    from megatron.training.initialize import initialize_megatron

    if hasattr(arguments, "parse_and_validate_args"):  # of newer releases, which do it apart
        arguments.parse_and_validate_args()
    initialize_megatron()
    provider = pretrain_gpt.model_provider
    if hasattr(pretrain_gpt, "gpt_builder"):  # of newer releases, whose provider takes the builder
        provider = functools.partial(provider, pretrain_gpt.gpt_builder)
    model = get_model(provider, ModelType.encoder_or_decoder, wrap_with_ddp=False)
    _refuse_parts(model)
    load_checkpoint(model, None, None)
    for part in model:
        part.eval()
    return list(model)


def _refuse_parts(model: list[Any]) -> None:
    """Lets a checkpoint without exactly the tensors of the model be an error, which newer releases catch to load what fits."""
    for part in model:
        part.load_state_dict = functools.partial(_load_whole, part.load_state_dict, [])


def _load_whole(
    load: Any, failed: list[RuntimeError], state: Any, strict: bool = True, **options: Any
) -> Any:
    """Calls `load`, and raises the first error again if it is then called for what fits."""
    if failed:
        raise failed[0]
    try:
        return load(state, strict=strict, **options)
    except RuntimeError as error:
        failed.append(error)
        raise


def forward(model: list[Any], ids: Any) -> Any:
    """The logits of the whole vocabulary on the ranks of the last pipeline stage, else None.

    ids: [rows, length], the same on all ranks. The logits are [rows, length, vocabulary with its padding].

    MindSpeed-LLM's flash attention gets no mask, as in a training, and then makes its own. With a window the operator
    takes only that one.
    """
    import torch
    from megatron.core.pipeline_parallel import get_forward_backward_func
    from megatron.core.tensor_parallel import gather_from_tensor_model_parallel_region

    rows, length = ids.shape
    places = torch.arange(length, device=ids.device)[None].expand(rows, length)
    hidden = None
    if not _makes_masks():
        later = torch.ones(length, length, dtype=torch.bool, device=ids.device).triu(1)
        hidden = later[None, None].expand(rows, 1, length, length)

    def step(batch: Any, part: Any) -> Any:
        return part(ids, places, hidden), lambda output, non_loss_data=True: output

    with torch.no_grad():
        found = get_forward_backward_func()(
            forward_step_func=step,
            data_iterator=[None] * len(model) if len(model) > 1 else None,
            model=model,
            num_microbatches=_microbatches(),
            seq_length=length,
            micro_batch_size=rows,
            forward_only=True,
            collect_non_loss_data=True,
        )
    return gather_from_tensor_model_parallel_region(found[0]) if found else None


def _makes_masks() -> bool:
    """Whether attention is the flash attention of MindSpeed, which alone has `sparse_mode`, the pattern of its mask."""
    from megatron.training import get_args

    args = get_args()
    return bool(getattr(args, "use_flash_attn", False)) and hasattr(args, "sparse_mode")


def _microbatches() -> int:
    """An interleaved pipeline needs one for each stage."""
    from megatron.core import parallel_state

    interleaved = parallel_state.get_virtual_pipeline_model_parallel_world_size()
    return parallel_state.get_pipeline_model_parallel_world_size() if interleaved else 1
