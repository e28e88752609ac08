"""torch.distributed._composable: the older place of `fully_shard`."""
