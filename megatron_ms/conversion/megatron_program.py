"""Sends ids through a Megatron checkpoint on its ranks and stores the logits. Started with upstream's own flags.

    megatron_program.py PROGRAMS IDS.json LOGITS.npy FLAGS...

PROGRAMS is the folder of upstream's pretrain_gpt.py, whose model is built, and IDS.json a list of ids.
"""

from __future__ import annotations

import json
import sys

from megatron_ms.upstream import on_ranks


def main() -> None:
    programs, ids_file, logits_file = sys.argv[1:4]
    sys.argv = [sys.argv[0], *sys.argv[4:]]
    model = on_ranks.load(programs)
    import torch
    from megatron.core import parallel_state

    with open(ids_file, encoding="utf-8") as file:
        ids = torch.tensor([json.load(file)], device=torch.cuda.current_device())
    logits = on_ranks.forward(model, ids)
    first = (
        parallel_state.get_tensor_model_parallel_rank() == 0 and parallel_state.get_data_parallel_rank() == 0
    )
    if logits is not None and first and parallel_state.get_expert_model_parallel_rank() == 0:
        import numpy

        numpy.save(logits_file, logits[0].float().cpu().numpy())
    torch.distributed.barrier()


if __name__ == "__main__":
    main()
