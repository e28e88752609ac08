"""A rank of a test job. It runs every check of a module in order and writes the results."""

import faulthandler
import importlib.util
import json
import os
import sys
import traceback
from datetime import timedelta

import torch.distributed as dist


def main():
    path, results = sys.argv[1:3]
    spec = importlib.util.spec_from_file_location("checks", path)
    checks = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = checks  # so that its functions can be pickled
    spec.loader.exec_module(checks)
    if "MSADAPTER_TEST_MPI" in os.environ:
        del os.memfd_create  # without it, a group has no shared memory, and all collectives go through MPI
    dist.init_process_group("cpu:gloo,cuda:nccl", timeout=timedelta(seconds=120))
    outcome = {}
    vars(checks).get("setup", lambda: None)()
    faulthandler.dump_traceback_later(float(os.environ["MSADAPTER_TEST_LIMIT"]), exit=True)
    for name in [name for name in vars(checks) if name.startswith("check_")]:
        try:
            getattr(checks, name)(dist.get_rank(), dist.get_world_size())
            outcome[name] = "ok"
        except Exception:
            outcome[name] = traceback.format_exc()
    vars(checks).get("teardown", lambda: None)()
    with open(f"{results}.{dist.get_rank()}", "w") as stream:
        json.dump(outcome, stream)
    dist.destroy_process_group()


main()
