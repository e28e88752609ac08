"""Sends ids through a Megatron checkpoint on its ranks and stores the logits. Started with upstream's own flags.

    megatron_program.py PROGRAMS IDS.json LOGITS.npy FLAGS...

PROGRAMS is the folder of upstream's pretrain_gpt.py, whose model is built, and IDS.json a list of ids.
"""

from __future__ import annotations

import json
import sys
from typing import Any


def main() -> None:
    programs, ids_file, logits_file = sys.argv[1:4]
    sys.argv = [sys.argv[0], *sys.argv[4:]]
    sys.path.insert(0, programs)
    import pretrain_gpt  # first, because MindSpeed-LLM adapts Megatron when it is imported
    import torch
    from megatron.core import parallel_state
    from megatron.core.enums import ModelType
    from megatron.training import get_model
    from megatron.training.checkpointing import load_checkpoint
    from megatron.training.initialize import initialize_megatron

    initialize_megatron()
    model = get_model(pretrain_gpt.model_provider, ModelType.encoder_or_decoder, wrap_with_ddp=False)
    load_checkpoint(model, None, None)
    for part in model:
        part.eval()
    with open(ids_file, encoding="utf-8") as file:
        ids = torch.tensor([json.load(file)], device=torch.cuda.current_device())
    logits = forward(model, ids)
    first = (
        parallel_state.get_tensor_model_parallel_rank() == 0 and parallel_state.get_data_parallel_rank() == 0
    )
    if logits is not None and first and parallel_state.get_expert_model_parallel_rank() == 0:
        import numpy

        numpy.save(logits_file, logits[0].float().cpu().numpy())
    torch.distributed.barrier()


def forward(model: list[Any], ids: Any) -> Any:
    """The logits of the whole vocabulary on the ranks of the last pipeline stage, else None."""
    import torch
    from megatron.core.pipeline_parallel import get_forward_backward_func
    from megatron.core.tensor_parallel import gather_from_tensor_model_parallel_region

    length = ids.shape[1]
    places = torch.arange(length, device=ids.device)[None]
    later = torch.ones(1, 1, length, length, dtype=torch.bool, device=ids.device).triu(1)

    def step(rows: Any, part: Any) -> Any:
        return part(ids, places, later), lambda output, non_loss_data=True: output

    with torch.no_grad():
        found = get_forward_backward_func()(
            forward_step_func=step,
            data_iterator=[None] * len(model) if len(model) > 1 else None,
            model=model,
            num_microbatches=microbatches(),
            seq_length=length,
            micro_batch_size=1,
            forward_only=True,
            collect_non_loss_data=True,
        )
    return gather_from_tensor_model_parallel_region(found[0]) if found else None


def microbatches() -> int:
    """An interleaved pipeline needs one for each stage."""
    from megatron.core import parallel_state

    interleaved = parallel_state.get_virtual_pipeline_model_parallel_world_size()
    return parallel_state.get_pipeline_model_parallel_world_size() if interleaved else 1


if __name__ == "__main__":
    main()
