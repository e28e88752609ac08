"""The process group that tests in one process share."""

from __future__ import annotations

import pytest

import msadapter.distributed as dist
from msadapter.distributed.device_mesh import init_device_mesh


@pytest.fixture(scope="module")
def world():
    """One process group for all tests of a module; a mesh of its only process."""
    variables = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "localhost", "MASTER_PORT": "0"}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        dist.init_process_group("gloo")
        yield init_device_mesh("cpu", (1,), mesh_dim_names=("x",))
    dist.destroy_process_group()
