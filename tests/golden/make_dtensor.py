"""Writes dtensor.json: what real PyTorch (gloo on CPU) gives for the cases of dtensor_cases.py.

python -m tests.golden.make_dtensor
"""

import json
import os
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.distributed.device_mesh import init_device_mesh

from tests.golden import dtensor_cases as cases


def run(rank, size, shape, chosen, path):
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(size), MASTER_ADDR="127.0.0.1", MASTER_PORT="29517")
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", shape)
    made = {}
    for name, case in getattr(cases, chosen).items():
        try:
            made[name] = cases.outcome(case, mesh)
        except Exception as err:  # the script's reader sees which cases are no cases of PyTorch
            made[name] = {"error": f"{type(err).__name__}: {str(err).splitlines()[0][:150]}"}
    if rank == 0:
        Path(path).write_text(json.dumps(made))
    dist.destroy_process_group()


def main():
    target = Path(__file__).with_name("dtensor.json")
    found = {"version": torch.__version__, "seed": "values are sines of indices"}
    for chosen, shape in (("CASES", (2,)), ("CASES_OF_FOUR", (2, 2))):
        part = target.with_suffix(".part")
        size = 2 if len(shape) == 1 else 4
        mp.spawn(run, (size, shape, chosen, str(part)), nprocs=size)
        found[chosen] = json.loads(part.read_text())
        part.unlink()
    for name, value in {**found["CASES"], **found["CASES_OF_FOUR"]}.items():
        if "error" in value:
            print(name, value["error"])
    target.write_text(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
