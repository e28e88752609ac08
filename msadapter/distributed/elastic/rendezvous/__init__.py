"""torch.distributed.elastic.rendezvous: how the nodes of a job find each other and agree on their ranks.

A handler of the backend "static" has ranks that the program gives. One of "c10d" waits until enough nodes have come, numbers
them, and lets nodes join and leave between two rounds. torchrun of this package does not use them: its launchers meet by
`distributed.meeting`, with the same ports and times of waiting.
"""

from .api import (
    RendezvousClosedError,
    RendezvousConnectionError,
    RendezvousError,
    RendezvousGracefulExitError,
    RendezvousHandler,
    RendezvousHandlerCreator,
    RendezvousHandlerRegistry,
    RendezvousInfo,
    RendezvousParameters,
    RendezvousStateError,
    RendezvousStoreInfo,
    RendezvousTimeoutError,
    rendezvous_handler_registry,
)
from .registry import _register_default_handlers, _register_out_of_tree_handlers

_register_default_handlers()
_register_out_of_tree_handlers()

__all__ = [
    "RendezvousClosedError",
    "RendezvousConnectionError",
    "RendezvousError",
    "RendezvousGracefulExitError",
    "RendezvousHandler",
    "RendezvousHandlerCreator",
    "RendezvousHandlerRegistry",
    "RendezvousInfo",
    "RendezvousParameters",
    "RendezvousStateError",
    "RendezvousStoreInfo",
    "RendezvousTimeoutError",
    "rendezvous_handler_registry",
]
