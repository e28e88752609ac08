"""What MindSpeed-RL's launcher and Ray ask CANN: how many devices has this machine, and of which kind?"""

import torch


class rt:
    """CANN's runtime."""

    @staticmethod
    def get_device_count() -> tuple[int, int]:
        """The number of devices, and 0 for success."""
        return torch.npu.device_count(), 0


def get_soc_name() -> str:
    """The name that the adapter gives the processor."""
    return str(torch.npu.get_device_name())
