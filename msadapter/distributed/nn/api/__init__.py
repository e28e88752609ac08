"""torch.distributed.nn.api: modules on other workers (``remote_module``)."""
