"""torch.distributed._shard: descriptions of sharded tensors."""
