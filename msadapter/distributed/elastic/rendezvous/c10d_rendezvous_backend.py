"""The backend "c10d": the state of a rendezvous in a store of torch.distributed."""

from __future__ import annotations

import binascii
import os
import socket
import tempfile
from base64 import b64decode, b64encode
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from ...meeting import DEFAULT_PORT
from ...store import FileStore, Store
from ...tcp_store import TCPStore
from ..events import NodeState, construct_and_record_rdzv_event
from .api import RendezvousConnectionError, RendezvousError, RendezvousParameters, RendezvousStateError
from .dynamic_rendezvous import RendezvousBackend, Token
from .utils import _matches_machine_hostname, parse_rendezvous_endpoint

_FAILURES = (ValueError, RuntimeError, OSError)  # of a store, or of a name that is unknown


def _reach(call: Callable, *arguments, **options) -> Any:
    """Calls something of a store. RendezvousConnectionError if it fails."""
    try:
        return call(*arguments, **options)
    except _FAILURES as error:
        raise RendezvousConnectionError(
            "The connection to the C10d store has failed. See inner exception for details."
        ) from error


class C10dRendezvousBackend(RendezvousBackend):
    """Keeps the state of the rendezvous ``run_id`` in a store, as base64. The token of a state is that text."""

    _NULL_SENTINEL = (
        "Y2FuaW1hZGFt"  # stands for no state, because reading a key that is not set would wait for it
    )

    def __init__(self, store: Store, run_id: str) -> None:
        if not run_id:
            raise ValueError("The run id must be a non-empty string.")
        self._store, self._key = store, f"torch.rendezvous.{run_id}"
        _reach(store.compare_set, self._key, "", self._NULL_SENTINEL)

    @property
    def name(self) -> str:
        """ "c10d"."""
        return "c10d"

    def get_state(self) -> tuple[bytes, Token] | None:
        """(state, token), or None if there is no state."""
        return self._decoded(_reach(self._store.get, self._key))

    def set_state(self, state: bytes, token: Token | None = None) -> tuple[bytes, Token, bool] | None:
        """Sets the state if the present one has this token. Returns (state, token, whether it is the given state)."""
        if token and not isinstance(token, bytes):  # never one of this backend
            present = self.get_state()
            return None if present is None else (*present, False)
        expected = token.decode() if token else self._NULL_SENTINEL
        written = _reach(self._store.compare_set, self._key, expected, b64encode(state).decode())
        present = self._decoded(written)
        return None if present is None else (*present, present[0] == state)

    def _decoded(self, text: bytes) -> tuple[bytes, Token] | None:
        if text == self._NULL_SENTINEL.encode():
            return None
        try:
            return b64decode(text), text
        except binascii.Error as error:
            raise RendezvousStateError(
                "The state object is corrupt. See inner exception for details."
            ) from error


def _create_tcp_store(params: RendezvousParameters) -> TCPStore:
    """The store at the endpoint. This process makes it if ``is_host`` says so, by default if the endpoint is on this machine."""
    host, port = parse_rendezvous_endpoint(params.endpoint, default_port=DEFAULT_PORT)
    given = params.get_as_bool("is_host")
    timeout = params.get_as_int("read_timeout", 60)
    if timeout is None or timeout <= 0:
        raise ValueError("The read timeout must be a positive integer.")

    def make(first: bool) -> TCPStore:
        socket.getaddrinfo(host, port)  # the others have to find this node by the same name
        return TCPStore(host, port, is_master=first, multi_tenant=True, timeout=timedelta(seconds=timeout))

    first = _matches_machine_hostname(host) if given is None else given
    if given is None and first:
        try:
            store = make(True)
        except _FAILURES:  # another process of this machine has made it already
            return _reach(make, False)
    else:
        store = _reach(make, first)
    if first:
        text = f"process {os.getpid()} keeps the store of the rendezvous"
        construct_and_record_rdzv_event(params.run_id, text, NodeState.INIT)
    return store


def _create_file_store(params: RendezvousParameters) -> FileStore:
    """The store in the file that the endpoint names, by default in a new temporary file."""
    path = params.endpoint
    if not path:
        try:
            opened, path = tempfile.mkstemp()
        except OSError as error:
            raise RendezvousError(
                "The file creation for C10d store has failed. See inner exception for details."
            ) from error
        os.close(opened)
    return _reach(FileStore, path)


def create_backend(params: RendezvousParameters) -> tuple[C10dRendezvousBackend, Store]:
    """(backend, its store). The parameters may have:

    - ``store_type``: "tcp" for a TCPStore, which is the default, or "file" for a FileStore
    - ``read_timeout``: how many seconds an operation of a TCPStore may take, by default 60
    - ``is_host``: whether this process makes the TCPStore, by default whether the endpoint is on this machine
    """
    kind = params.get("store_type", "tcp").strip().lower()
    try:
        if kind not in ("file", "tcp"):
            raise ValueError("Invalid store type given. Currently only supports file and tcp.")
        store = _create_file_store(params) if kind == "file" else _create_tcp_store(params)
        return C10dRendezvousBackend(store, params.run_id), store
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        construct_and_record_rdzv_event(params.run_id, text, NodeState.FAILED)
        raise
