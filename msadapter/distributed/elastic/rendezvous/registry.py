"""The backends that every program has, and those of installed packages."""

from __future__ import annotations

import logging
from importlib.metadata import entry_points

from ...._errors import unsupported
from . import c10d_rendezvous_backend, static_tcp_rendezvous
from .api import RendezvousHandler, RendezvousParameters, rendezvous_handler_registry
from .dynamic_rendezvous import create_handler

__all__ = ["get_rendezvous_handler"]

log = logging.getLogger(__name__)


def _create_static_handler(params: RendezvousParameters) -> RendezvousHandler:
    return static_tcp_rendezvous.create_rdzv_handler(params)


def _create_c10d_handler(params: RendezvousParameters) -> RendezvousHandler:
    backend, store = c10d_rendezvous_backend.create_backend(params)
    return create_handler(store, backend, params)


def _create_etcd_handler(params: RendezvousParameters) -> RendezvousHandler:
    raise unsupported(
        "torch.distributed.elastic.rendezvous",
        f"the backend {params.backend!r} is not supported; c10d does the same without a server of etcd",
    )


def _register_default_handlers() -> None:
    for name, creator in (
        ("etcd", _create_etcd_handler),
        ("etcd-v2", _create_etcd_handler),
        ("c10d", _create_c10d_handler),
        ("static", _create_static_handler),
    ):
        rendezvous_handler_registry.register(name, creator)


def _register_out_of_tree_handlers() -> None:
    """Adds the backends that installed packages announce as entry points ``torchrun.handlers``. A broken one is logged."""
    for found in entry_points(group="torchrun.handlers"):
        try:
            rendezvous_handler_registry.register(found.name, found.load()())
        except Exception:
            log.warning("The rendezvous backend %s cannot be registered", found.name, exc_info=True)


def get_rendezvous_handler(params: RendezvousParameters) -> RendezvousHandler:
    """Makes a handler of the backend that ``params`` names. ValueError if no such backend is registered."""
    return rendezvous_handler_registry.create_handler(params)
