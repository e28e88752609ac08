"""torch.distributed.elastic: what its processes say of their errors; torchrun is `distributed.agent`."""
