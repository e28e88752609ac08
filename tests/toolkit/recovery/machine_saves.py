"""A rank that is a machine of its own writes checkpoints into its memory: machine_saves.py FOLDER SPIKES ITERATION ...

FOLDER/memory-N is the memory of machine N. SPIKES is a JSON object of iterations and lists of spikes, which rank 0 alone knows.
Upstream is a stand-in that writes one file for each rank; all the rest is the toolkit's own.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import torch

from megatron_ms.recovery import copies, manifest, memory
from megatron_ms.recovery.saving import Saving


def main() -> None:
    folder, spikes, numbers = Path(sys.argv[1]), json.loads(sys.argv[2]), map(int, sys.argv[3:])
    torch.distributed.init_process_group("gloo")
    rank, world = torch.distributed.get_rank(), torch.distributed.get_world_size()
    os.environ |= {"GROUP_RANK": str(rank), "GROUP_WORLD_SIZE": str(world)}
    os.environ |= {"LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1", "MSADAPTER_DEVICE": "cuda"}
    saving = Saving(folder, lambda number: tuple(spikes.get(str(number), ())) if rank == 0 else ())
    assert saving.machine == copies.Machine(rank, world, 0, 1)
    given = SimpleNamespace(save=str(folder / "checkpoints"), async_save=False)

    def write(iteration: int, *_: object, **__: object) -> None:
        file = manifest.place_of(Path(given.save), iteration) / f"mp_rank_{rank:02}" / "model.pt"
        file.parent.mkdir(parents=True)
        file.write_bytes(b"%d of %d" % (iteration, rank))

    upstream, checkpointing = ModuleType("megatron.training"), ModuleType("megatron.training.checkpointing")
    upstream.get_args, upstream.checkpointing = lambda: given, checkpointing  # type: ignore[attr-defined]
    checkpointing.save_checkpoint = lambda *words, **named: saving.save(write, *words, **named)  # type: ignore[attr-defined]
    for module in (ModuleType("megatron"), upstream, checkpointing):
        sys.modules[module.__name__] = module
    place = folder / f"memory-{rank}"
    memory.prepare(place)
    for number in numbers:
        saving.remember(place, number, None, None, None, 0.0, None)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
