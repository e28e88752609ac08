"""The page of `chat --web`: a small server on the loopback interface that streams answers.

Only this machine can connect. Other programs and pages on it cannot talk to the model either: the address contains a secret
that every request must repeat, and the name of the host is checked, so that a page of another site cannot point its own name here.
"""

from __future__ import annotations

import json
import secrets
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from socketserver import BaseServer
from typing import Any, ClassVar

from ..errors import UserError
from .conversation import Conversation

PAGE = Path(__file__).with_name("page.html")
_MOST = 1 << 20  # bytes of a question
_ADDRESS = "127.0.0.1"


class _Handler(BaseHTTPRequestHandler):
    conversation: ClassVar[Conversation]
    secret: ClassVar[str]
    server_version = "chat"
    timeout = 30  # seconds that a silent client may hold the server

    def do_GET(self) -> None:  # noqa: N802  # the name is given by http.server
        path, _, query = self.path.partition("?")
        if path != "/" or not self._known(query.removeprefix("key=")):
            self._refuse(HTTPStatus.NOT_FOUND)
            return
        page = PAGE.read_bytes()
        self._begin("text/html; charset=utf-8", len(page))
        self.wfile.write(page)

    def do_POST(self) -> None:  # noqa: N802
        if not self._known(self.headers.get("X-Key", "")):
            self._refuse(HTTPStatus.FORBIDDEN)
            return
        asked = self._body()
        if asked is None:
            self._refuse(HTTPStatus.BAD_REQUEST)
            return
        if self.path == "/clear":
            self.conversation.clear()
            self._begin("text/plain", 0)
        elif self.path == "/ask" and isinstance(asked.get("question"), str) and asked["question"].strip():
            self._answer(asked["question"])
        else:
            self._refuse(HTTPStatus.NOT_FOUND)

    def _answer(self, question: str) -> None:
        """Streams the answer. A reader that goes away ends it."""
        self._begin("text/plain; charset=utf-8", None)

        def send(text: str) -> None:
            self.wfile.write(text.encode("utf-8"))
            self.wfile.flush()

        try:
            self.conversation.ask(question, send)
        except UserError as error:
            send(f"({error})")
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def _known(self, key: str) -> bool:
        port = port_of(self.server)
        host = self.headers.get("Host", "")
        return host in (f"{_ADDRESS}:{port}", f"localhost:{port}") and secrets.compare_digest(
            key.encode("utf-8"), self.secret.encode("utf-8")
        )

    def _body(self) -> dict[str, Any] | None:
        length = self.headers.get("Content-Length", "")
        if not length.isdigit() or int(length) > _MOST:
            return None
        try:
            value = json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError):
            return None
        return value if isinstance(value, dict) else None

    def _begin(self, kind: str, length: int | None) -> None:
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", kind)
        if length is not None:
            self.send_header("Content-Length", str(length))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header(
            "Content-Security-Policy",
            "default-src 'none'; connect-src 'self'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
            "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        )
        self.end_headers()

    def _refuse(self, status: HTTPStatus) -> None:
        self.send_error(status)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: the address, and with it the secret, would be in the log."""


def bind(port: int) -> HTTPServer:
    """A server that listens on this port of the loopback interface, or on a free one for 0. UserError if it is taken."""
    try:
        return HTTPServer((_ADDRESS, port), _Handler)
    except (OSError, OverflowError) as error:
        raise UserError(f"--port {port}: {error}: name another port, or leave it out") from None


def port_of(server: BaseServer) -> int:
    """The port that a server listens on."""
    return int(server.server_address[1])  # type: ignore[index]  # a pair, as the server is of the internet


def address(server: HTTPServer) -> str:
    """What the user opens in a browser."""
    return f"http://{_ADDRESS}:{port_of(server)}/?key={_Handler.secret}"


def prepare(server: HTTPServer, conversation: Conversation) -> str:
    """Connects the conversation and returns the address of the page."""
    _Handler.conversation, _Handler.secret = conversation, secrets.token_urlsafe(24)
    return address(server)


def serve(server: HTTPServer, conversation: Conversation) -> int:
    """Serve the page until Ctrl-C. Requests are answered one after the other, as there is one model."""
    print(f"open {prepare(server, conversation)}\nCtrl-C ends", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        print()
    finally:
        server.server_close()
    return 0
