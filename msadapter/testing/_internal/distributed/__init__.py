"""torch.testing._internal.distributed."""
