"""torch.distributed.elastic: events, metrics, timers, rendezvous, and reports of errors of processes.

torchrun itself is `distributed.agent`, which uses none of these modules. `distributed.launcher` runs the same agent for programs,
and uses those for output and errors.
"""
