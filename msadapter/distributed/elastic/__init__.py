"""torch.distributed.elastic: reports of errors of processes. torchrun itself is `distributed.agent`."""
