"""How a connection of a TCPStore begins, and the format of its messages.

A connection begins with a handshake. The client sends a greeting, whether it has a secret, and a nonce (a random number that is
used once). With a secret, the server answers with its own nonce, the client proves by HMAC-SHA256 over both nonces that it
knows the secret, and the server proves the same. Nothing else is read from a client before this has succeeded. The handshake
authenticates both sides; the messages after it are not encrypted.

Each message is a frame: a list of byte strings, preceded by their number and their lengths.
"""

import hmac
import ipaddress
import os
import secrets
import socket
import stat
import struct
import time

from .._host.troubleshooting import see

MAX_PARTS = 1 << 20
MAX_PART = 256 << 20  # bytes of one value
MAX_FRAME = 1 << 30  # bytes of all parts of a frame
MAX_KEY = 64 << 10  # bytes of one key
SECRET_VARIABLE = "MSADAPTER_JOB_SECRET"
HOW_TO_AGREE = (
    "give every launcher of the job the same secret, by --rdzv-conf secret_file=PATH or by the environment variable "
    f"{SECRET_VARIABLE}"
)
_MAX_SECRET = 4096
_GREETING = b"msadapter store 1\n"
_NONCE = 32
_HELLO = len(_GREETING) + 1 + _NONCE
_OPEN, _CHALLENGE, _NEEDS_SECRET, _HAS_NO_SECRET, _WRONG_PROOF = b"OCNHW"
_REFUSALS = {
    _NEEDS_SECRET: "it needs the job's secret, and this process has none",
    _HAS_NO_SECRET: "this process has a secret, and the store has none",
    _WRONG_PROOF: "it has another secret than this process",
}
_LOOPBACK_NAMES = {
    "localhost": "127.0.0.1",
    "localhost.localdomain": "127.0.0.1",
    "localhost4": "127.0.0.1",
    "localhost6": "::1",
    "ip6-localhost": "::1",
    "ip6-loopback": "::1",
}


class BadFrame(ConnectionError):
    """What the other side has sent is not a frame, or a frame larger than the limits."""


class Refused(ConnectionError):
    """The two sides of a connection do not agree on the secret."""


# -- frames ------------------------------------------------------------------------------------------------
def send(connection: socket.socket, parts: list) -> None:
    """Sends a frame. ValueError, before anything is sent, if it is larger than the receiver would take."""
    if reason := _too_large([len(part) for part in parts]):
        raise ValueError(f"TCPStore: {reason}")
    sizes = struct.pack(f"<{len(parts) + 1}I", len(parts), *map(len, parts))
    connection.sendall(sizes + b"".join(parts))


def receive(connection: socket.socket) -> list:
    """The parts of the next frame. BadFrame, before anything of it is read, if it announces more than the limits."""
    (number,) = struct.unpack("<I", _read(connection, 4))
    if not 0 < number <= MAX_PARTS:
        raise BadFrame(f"the announced frame has {number} parts; a frame must have 1 to {MAX_PARTS}")
    sizes = struct.unpack(f"<{number}I", _read(connection, 4 * number))
    if reason := _too_large(sizes):
        raise BadFrame(reason)
    return [_read(connection, size) for size in sizes]


def _too_large(sizes) -> str:
    if len(sizes) > MAX_PARTS:
        return f"the message has {len(sizes)} keys and values; a message may have at most {MAX_PARTS}"
    if max(sizes) > MAX_PART:
        return f"the value has {max(sizes)} bytes; a value may have at most {MAX_PART} ({MAX_PART >> 20} MiB)"
    if sum(sizes) > MAX_FRAME:
        return f"the message has {sum(sizes)} bytes; a message may have at most {MAX_FRAME} ({MAX_FRAME >> 20} MiB)"
    return ""


def _read(connection: socket.socket, count: int, end: float | None = None) -> bytes:
    """Exactly `count` bytes. With `end`, a time of time.monotonic(), TimeoutError when they have not come by then."""
    data = bytearray()
    while len(data) < count:
        if end is not None:
            connection.settimeout(max(end - time.monotonic(), 0.001))
        piece = connection.recv(min(count - len(data), 1 << 20))
        if not piece:
            raise ConnectionError("the connection was closed")
        data += piece
    return bytes(data)


# -- the handshake -----------------------------------------------------------------------------------------
def _proof(secret: bytes, side: bytes, nonces: bytes) -> bytes:
    return hmac.digest(secret, _GREETING + side + nonces, "sha256")


def _refused(reason: str) -> Refused:
    """The error of a client, with what to do."""
    return Refused(f"{reason}: {HOW_TO_AGREE} {see('another-secret')}")


def greet(connection: socket.socket, secret: bytes | None, seconds: float) -> None:
    """The client's side of the handshake. Raises Refused if client and server do not agree on the secret."""
    end, own = time.monotonic() + seconds, secrets.token_bytes(_NONCE)
    connection.settimeout(seconds)
    connection.sendall(_GREETING + (b"S" if secret else b"-") + own)
    kind = _read(connection, 1, end)[0]
    if kind in _REFUSALS:
        raise _refused(_REFUSALS[kind])
    if kind == _CHALLENGE and secret:
        nonces = own + _read(connection, _NONCE, end)
        connection.sendall(_proof(secret, b"client", nonces))
        if _read(connection, 1, end)[0] != _OPEN:
            raise _refused(_REFUSALS[_WRONG_PROOF])
        if not hmac.compare_digest(_read(connection, 32, end), _proof(secret, b"server", nonces)):
            raise _refused("it could not prove that it knows the secret of this job")
    elif kind != _OPEN or secret:
        raise Refused("what answers there is not a store of msadapter, or one of another version")
    connection.settimeout(None)


def admit(connection: socket.socket, secret: bytes | None, seconds: float) -> None:
    """The server's side of the handshake. If the client is not admitted, it is told why, and Refused is raised."""
    end = time.monotonic() + seconds
    hello = _read(connection, _HELLO, end)
    if not hello.startswith(_GREETING):
        raise BadFrame("the peer is not a client of this store")
    has_secret = hello[len(_GREETING) : -_NONCE] == b"S"
    if has_secret != bool(secret):
        kind = _NEEDS_SECRET if secret else _HAS_NO_SECRET
        connection.sendall(bytes([kind]))
        raise Refused("it has no secret" if secret else "it has a secret, and this store has none")
    if secret is None:
        connection.sendall(bytes([_OPEN]))
    else:
        challenge = secrets.token_bytes(_NONCE)
        connection.sendall(bytes([_CHALLENGE]) + challenge)
        nonces = hello[-_NONCE:] + challenge
        if not hmac.compare_digest(_read(connection, 32, end), _proof(secret, b"client", nonces)):
            connection.sendall(bytes([_WRONG_PROOF]))
            raise Refused("it does not know the secret of this job")
        connection.sendall(bytes([_OPEN]) + _proof(secret, b"server", nonces))
    connection.settimeout(None)


# -- addresses and secrets ---------------------------------------------------------------------------------
def loopback_of(host: str) -> str | None:
    """The loopback address that a host name or an address means, or None if it is not loopback.

    Names are not looked up: many machines give their own name a loopback address, which other machines cannot reach.
    """
    text = host.strip("[]").lower()
    if text in _LOOPBACK_NAMES:
        return _LOOPBACK_NAMES[text]
    try:
        return text if ipaddress.ip_address(text).is_loopback else None
    except ValueError:
        return None


def secret_of_environment() -> bytes | None:
    """The job's secret from the environment, or None. ValueError if it is set but empty."""
    given = os.environ.get(SECRET_VARIABLE)
    return None if given is None else checked_secret(os.fsencode(given), SECRET_VARIABLE)


def secret_of_file(path: str) -> bytes:
    """The job's secret from a file, without white space around it. ValueError if another user could know or change it."""
    # a named pipe must not block the launcher
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as stream:
            status = os.fstat(stream.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise ValueError(f"secret_file={path} is not a regular file")
            if status.st_uid not in (0, os.geteuid()):
                raise ValueError(f"secret_file={path} belongs to user {status.st_uid}, not to you or root")
            if status.st_mode & 0o077:
                raise ValueError(
                    f"other users may read or write secret_file={path} (mode {status.st_mode & 0o777:o}): "
                    f"chmod 600 {path}"
                )
            return checked_secret(stream.read(_MAX_SECRET + 1).strip(), f"secret_file={path}")
    except OSError as err:
        raise ValueError(f"secret_file={path} cannot be read: {err.strerror}") from err


def checked_secret(secret: bytes, where: str) -> bytes:
    """`secret`; ValueError, which names where it came from, if no environment variable could hold it."""
    if not secret or len(secret) > _MAX_SECRET or b"\0" in secret:
        raise ValueError(
            f"{where}: the secret must have 1 to {_MAX_SECRET} bytes, none of them zero; "
            "`openssl rand -hex 32` makes a good one"
        )
    return secret
