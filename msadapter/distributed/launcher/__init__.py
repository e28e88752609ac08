"""torch.distributed.launcher: what torchrun does, for programs that start ranks themselves, such as notebooks."""

from .api import LaunchConfig, elastic_launch, launch_agent

__all__ = ["LaunchConfig", "elastic_launch", "launch_agent"]
