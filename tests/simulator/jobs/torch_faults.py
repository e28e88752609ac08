"""Faults of the simulated NPU as a PyTorch program sees them: run by test_torch.py.

python torch_faults.py KIND ...: injects one fault after the other, and prints the errors that the program gets where it waits
for the device.
"""

import sys

import torch

from msadapter._host import simulator

x = torch.ones(1000, device="npu")


def meet(fault):
    assert (x + 1).sum().item() == 2000
    simulator.inject_faults(fault)
    y = x
    for _ in range(20):
        y = y * 1.5 + 1  # operators are issued on, because the device has not reported its fault yet
    try:
        y.cpu()
    except RuntimeError as error:
        print("raised", type(error).__name__, str(error).replace("\n", " "))
    else:
        raise AssertionError("the fault was not noticed")


def restart():
    """The device stays stopped, and the host goes on. After a restart, tensors from before still have their memory."""
    try:
        torch.npu.synchronize()
    except RuntimeError:
        print("stopped")
    assert torch.ones(3).sum().item() == 3
    assert torch.npu.stop_device(0) == 0
    try:
        x * 2
    except RuntimeError as error:
        assert "FORCE STOP" in str(error), error
    else:
        raise AssertionError("a stopped device computed")
    torch.npu.restart_device(0)
    assert (x * 2).sum().item() == 2000
    print("restarted")


for kind in sys.argv[1:]:
    meet(kind)
    restart()
