"""Endpoints, settings and timers of rendezvous."""

from __future__ import annotations

import contextlib
import functools
import ipaddress
import random
import re
import socket
import threading
import time
import weakref
from collections.abc import Callable
from datetime import timedelta

from ...wire import loopback_of

__all__ = ["parse_rendezvous_endpoint"]

_SHORTEST_DELAY = 0.01  # seconds


def _parse_rendezvous_config(config_str: str) -> dict[str, str]:
    """Parses 'key=value,...'. A value may contain '='. ValueError if a key or a value is empty."""
    config: dict[str, str] = {}
    for part in config_str.split(",") if config_str.strip() else ():
        key, _, value = (piece.strip() for piece in part.partition("="))
        if not key:
            raise ValueError(
                "The rendezvous configuration string must be in format <key1>=<value1>,...,<keyN>=<valueN>."
            )
        if not value:
            raise ValueError(f"The rendezvous configuration option '{key}' must have a value specified.")
        config[key] = value
    return config


def _try_parse_port(port_str: str) -> int | None:
    """The number of one to five digits. None for another text."""
    return int(port_str) if port_str and re.match(r"^[0-9]{1,5}$", port_str) else None


def parse_rendezvous_endpoint(endpoint: str | None, default_port: int) -> tuple[str, int]:
    """(host, port) of 'host' or 'host:port', by default localhost. An IPv6 address may be in brackets.

    ValueError if the host or the port is malformed.
    """
    endpoint = (endpoint or "").strip()
    if not endpoint:
        return "localhost", default_port
    host, colon, digits = endpoint, "", ""
    if not (endpoint.startswith("[") and endpoint.endswith("]")) and ":" in endpoint:
        host, colon, digits = endpoint.rpartition(":")
    if len(host) > 1 and host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    port = _try_parse_port(digits) if colon else default_port
    if port is None or (colon and port >= 2**16):
        raise ValueError(
            f"The port number of the rendezvous endpoint '{endpoint}' must be an integer between 0 and 65536."
        )
    if not re.match(r"^[\w\.:-]+$", host):
        raise ValueError(
            f"The hostname of the rendezvous endpoint '{endpoint}' must be a dot-separated list of labels, "
            "an IPv4 address, or an IPv6 address."
        )
    return host, port


def _found(host: str) -> list[tuple[str, str]]:
    """(address, canonical name or "") of each address of a host."""
    known = socket.getaddrinfo(host, None, proto=socket.IPPROTO_TCP, flags=socket.AI_CANONNAME)
    return [(str(address[0]), name) for *_, name, address in known]


def _matches_machine_hostname(host: str) -> bool:
    """Whether a name or an address is this machine's. False also for an alias or a second network that its name does not show."""
    if loopback_of(host) is not None:
        return True
    addresses = set()
    with contextlib.suppress(ValueError, socket.gaierror):  # such a name may still be this machine's own
        addresses = {address for address, _ in _found(host)}
    with contextlib.suppress(ValueError):  # a name
        addresses.add(str(ipaddress.ip_address(host)))
    own = socket.gethostname()
    if host == own:
        return True
    return any(name == host or address in addresses for address, name in _found(own))


def _delay(seconds: float | tuple[float, float]) -> None:
    """Sleeps, for a random time between two limits if a pair is given. Less than 10 ms is no time."""
    if isinstance(seconds, tuple):
        seconds = random.uniform(*seconds)
    if seconds >= _SHORTEST_DELAY:
        time.sleep(seconds)


class _PeriodicTimer:
    """Calls a function again and again in a thread, until it is cancelled or nobody holds it any more."""

    def __init__(self, interval: timedelta, function: Callable[..., None], *args, **kwargs) -> None:
        self._name: str | None = None
        self._interval = interval.total_seconds()
        self._call = functools.partial(function, *args, **kwargs)
        self._stop: weakref.finalize | None = None  # there is one once the timer has started

    @property
    def name(self) -> str | None:
        """The name of the thread."""
        return self._name

    def _check_not_started(self) -> None:
        if self._stop:
            raise RuntimeError("The timer has already started.")

    def set_name(self, name: str) -> None:
        """Names the thread. RuntimeError after the start."""
        self._check_not_started()
        self._name = name

    def start(self) -> None:
        """Starts the thread. The first call is after one interval. RuntimeError after the first start."""
        self._check_not_started()
        over = threading.Event()
        thread = threading.Thread(
            target=_repeat,
            args=(over, self._interval, self._call),
            name=self._name or "PeriodicTimer",
            daemon=True,
        )
        self._stop = weakref.finalize(self, _end, over, thread)
        self._stop.atexit = False  # at the end of the interpreter a daemon thread may already be gone
        thread.start()

    def cancel(self) -> None:
        """Ends the thread and waits for it. Does nothing if it has not started or has ended."""
        if self._stop:
            self._stop()


def _repeat(over: threading.Event, interval: float, call: Callable[[], None]) -> None:
    while not over.wait(interval):
        call()


def _end(over: threading.Event, thread: threading.Thread) -> None:
    over.set()
    if thread is not threading.current_thread():  # the function may drop the last reference to the timer
        thread.join()
