"""torch.distributed.elastic: events, metrics, timers, rendezvous, and reports of errors of processes.

torchrun itself is `distributed.agent`. It does not use these modules, which are for programs that import them.
"""
