"""torch.utils.tensorboard: event files for TensorBoard."""

from .writer import FileWriter, SummaryWriter

__all__ = ["FileWriter", "SummaryWriter"]
