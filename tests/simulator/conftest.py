"""The simulated NPU for the tests of this folder. It is built at the first use, like the CPU kernels."""

import os

import pytest

from msadapter._host import simulator
from tests.simulator.device import Device


@pytest.fixture(scope="session")
def home():
    return simulator.build(verbose=True)


@pytest.fixture(scope="session")
def npu(home):
    """A simulated device in this process. The library reads its settings when it is loaded."""
    wanted = {"MSADAPTER_SIMULATED_NPU_DEVICES": "2", "MSADAPTER_SIMULATED_NPU_MEMORY_GB": "1"}
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    device = Device(simulator.library(home))
    for name, value in before.items():
        os.environ.pop(name) if value is None else os.environ.__setitem__(name, value)
    return device
