"""The page of `chat --web`: a small server on the loopback interface that streams answers.

Only this machine can connect. Other programs and pages on it cannot talk to the model either: the address contains a secret
that every request must repeat, and the name of the host is checked, so that a page of another site cannot point its own name here.
"""

from __future__ import annotations

import json
import secrets
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from ..errors import UserError
from .conversation import Conversation

PAGE = Path(__file__).with_name("page.html")
_MOST = 1 << 20  # bytes of a question
_ADDRESS = "127.0.0.1"


class PageServer(ThreadingHTTPServer):
    """A server of the page. It has the conversation and the secret, so that two servers in a process have their own.

    Each connection has a thread, because browsers open some that they do not use for a while. Who talks to the model has `turn`.
    """

    daemon_threads = True  # the program ends although a browser keeps a connection open

    def __init__(self, port: int) -> None:
        super().__init__((_ADDRESS, port), _Handler)
        self.conversation: Conversation | None = None
        self.turn = threading.Lock()
        self.ended = False
        self.secret = secrets.token_urlsafe(24)

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    @property
    def url(self) -> str:
        """What the user opens in a browser."""
        return f"http://{_ADDRESS}:{self.port}/?key={self.secret}"


class _Handler(BaseHTTPRequestHandler):
    server: PageServer
    server_version = "chat"
    timeout = 30  # seconds that a client may be silent

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
        conversation = self.server.conversation
        if conversation is None:
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE)
        elif self.path == "/messages":
            said = json.dumps([[one.role, one.content] for one in conversation.messages]).encode("utf-8")
            self._begin("application/json", len(said))
            self.wfile.write(said)
        elif self.path == "/clear":
            with self.server.turn:
                conversation.clear()
            self._begin("text/plain", 0)
        elif self.path == "/ask" and isinstance(asked.get("question"), str) and asked["question"].strip():
            self._answer(conversation, asked["question"])
        else:
            self._refuse(HTTPStatus.NOT_FOUND)

    def _answer(self, conversation: Conversation, question: str) -> None:
        """Streams the answer. A reader that goes away ends it, and so does the end of the program."""
        self._begin("text/plain; charset=utf-8", None)

        def send(text: str) -> None:
            if self.server.ended:
                raise ConnectionResetError
            self.wfile.write(text.encode("utf-8"))
            self.wfile.flush()

        try:
            with self.server.turn:
                send("")
                conversation.ask(question, send)
        except UserError as error:
            send(f"({error})")
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def _known(self, key: str) -> bool:
        port = self.server.port
        host = self.headers.get("Host", "")
        return host in (f"{_ADDRESS}:{port}", f"localhost:{port}") and secrets.compare_digest(
            key.encode("utf-8"), self.server.secret.encode("utf-8")
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


def bind(port: int) -> PageServer:
    """A server that listens on this port of the loopback interface, or on a free one for 0. UserError if it is taken."""
    try:
        return PageServer(port)
    except (OSError, OverflowError) as error:
        raise UserError(f"--port {port}: {error}: name another port, or leave it out") from None


def serve(server: PageServer, conversation: Conversation) -> int:
    """Serve the page until Ctrl-C. Questions are answered one after the other, as there is one model."""
    server.conversation = conversation
    print(f"open {server.url}\nCtrl-C ends", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        print()
    finally:
        server.ended = True
        with server.turn:  # a running answer ends with its next piece
            server.server_close()
    return 0
