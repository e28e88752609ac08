"""A Megatron checkpoint that continues texts on its ranks, which are processes of their own (`ranks_program.py`).

The ranks stay until this process ends. Each of them is connected to a socket in a folder that only this user can enter.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..conversion import checkpoints
from ..errors import UserError
from ..training import megatron
from ..training.folder import LATEST
from ..training.lines import last_errors
from ..upstream import trees as upstream_trees
from . import ranks_program
from .engine import Engine, longest_of

if TYPE_CHECKING:
    from ..config import Document
    from .section import Generate

_PATIENCE = 20.0  # seconds that ranks may take to end


class RanksEngine(Engine):
    """Continues token ids with the checkpoint of a configuration."""

    def __init__(self, document: Document, keys: Generate) -> None:
        self.document = document
        self.checkpoint = _checked(document, keys)
        super().__init__(keys)

    def _load(self) -> None:
        import transformers

        facts = checkpoints.facts_of(self.folder)
        settings = checkpoints.settings_of(self.document)
        checkpoints.check_geometry(settings, facts, self.folder)
        self.latest = checkpoints.latest(self.checkpoint)
        distributed = (self.latest / ".metadata").is_file()
        if not distributed:
            checkpoints.check_parts(settings, self.latest)
        kind = "torch_dist" if distributed else "torch"
        self.longest = longest_of(transformers.PretrainedConfig.from_dict(facts))
        place = Path(tempfile.mkdtemp(prefix="megatron-ms-"))
        address = str(place / "socket")
        trees = upstream_trees.find(settings.run.trees)
        words = [ranks_program.__file__, trees.programs, address, self.folder.resolve()]
        command = megatron.loading_command(
            settings, trees, words, self.checkpoint.resolve(), [("convert", "ckpt_format", kind)]
        )
        count = settings.run.processes
        print(f"loading {self.latest} on {count} processes ({checkpoints.layout(settings)})", file=sys.stderr)
        self.ranks = _Ranks(command, place, address, count)

    def files(self) -> list[Path]:
        """The files on which the texts depend."""
        return [*super().files(), *sorted(file for file in self.latest.rglob("*") if file.is_file())]

    def _generated(self, ids: Any, mask: Any, most: int, **options: Any) -> Any:
        streamer = options.pop("streamer", None)
        options |= {"max_new_tokens": most, "pad_token_id": self.tokenizer.pad_token_id}
        request = {
            "ids": ids.tolist(),
            "mask": mask.tolist(),
            "seed": self.keys.seed,
            "stream": streamer is not None,
            "options": options,
        }
        for message in self.ranks.ask(request):
            if "ids" in message:
                found = message["ids"]
            elif streamer is not None:
                streamer.put(self.torch.tensor(message["put"]))
        if streamer is not None:
            streamer.end()
        return self.torch.tensor(found)


def _checked(document: Document, keys: Generate) -> Path:
    """The folder of the checkpoint."""
    folder = Path(str(keys.checkpoint))
    if not (folder / LATEST).is_file():
        message = f"{folder} is not a checkpoint of Megatron: it has no file {LATEST}"
        raise document.error("generate.checkpoint", message)
    for name, value in (("dtype", "auto"), ("device", "cpu")):
        if getattr(keys, name) != value:
            other = {"dtype": "train.precision", "device": "run.device"}[name]
            raise document.error(f"generate.{name}", f"has no meaning for a checkpoint: give {other}")
    return folder


class _Ranks:
    """The processes of the ranks."""

    def __init__(self, command: megatron.Command, place: Path, address: str, count: int) -> None:
        self.log = place / "log.txt"
        self.connections: dict[int, Connection] = {}
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(address)
            server.listen(count)
            with self.log.open("wb") as log:
                self.process = subprocess.Popen(
                    command.words,
                    env=megatron.environment(command),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,  # Ctrl-C stops an answer, and not the ranks
                )
            weakref.finalize(self, _end, self.process, self.connections, place)
            self._connect(server, count)

    def _connect(self, server: socket.socket, count: int) -> None:
        """Waits until all ranks have loaded the checkpoint."""
        server.settimeout(1)
        while len(self.connections) < count:
            try:
                accepted, _ = server.accept()
            except TimeoutError:
                if self.process.poll() is not None:
                    raise self._failed() from None
                continue
            accepted.setblocking(True)
            connection = Connection(accepted.detach())
            self.connections[json.loads(connection.recv_bytes())["rank"]] = connection

    def ask(self, request: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Sends a request to all ranks. Yields rank 0's messages, of which the last has `ids`.

        If the caller ends before, as by Ctrl-C, the ranks stop, and what they still send is dropped.
        """
        first, text = self.connections[0], json.dumps(request).encode()
        whole = False
        try:
            for connection in self.connections.values():
                connection.send_bytes(text)
            try:
                while not whole:
                    message = json.loads(first.recv_bytes())
                    whole = "ids" in message
                    yield message
            finally:
                if not whole:
                    first.send_bytes(b"{}")
                    self._drop(first)
                for rank, connection in self.connections.items():
                    if rank:
                        self._drop(connection)
        except (EOFError, OSError):
            raise self._failed() from None

    @staticmethod
    def _drop(connection: Connection) -> None:
        """Reads what a rank still says of a request."""
        while "ids" not in json.loads(connection.recv_bytes()):
            pass

    def _failed(self) -> UserError:
        """The error for ranks that have ended, with their last lines."""
        try:
            self.process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            _kill(self.process)
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        last = "\n".join("    " + line for line in last_errors(lines))
        return UserError(
            f"generate.checkpoint: the ranks ended with exit code {self.process.returncode}\n{last}"
        )


def _end(process: subprocess.Popen[bytes], connections: dict[int, Connection], place: Path) -> None:
    """Ends the ranks: without a connection they leave by themselves."""
    for connection in connections.values():
        connection.close()
    deadline = time.monotonic() + (_PATIENCE if connections else 0)
    while process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    if process.poll() is None:
        _kill(process)
    shutil.rmtree(place)


def _kill(process: subprocess.Popen[bytes]) -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
