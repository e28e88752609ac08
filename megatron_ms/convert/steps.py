"""Tools for steps: hashes, stamps, atomic writes, child processes, progress display."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from patches.tree import keep_aside, stream_sha256

ROOT = Path(__file__).resolve().parents[2]


class ConvertError(Exception):
    """A step failed. The message tells the user what is wrong and what to do."""


def digest(*parts: str | bytes | Path) -> str:
    """The sha256 of texts, bytes, and the contents of files or whole folders (with the names of their files)."""
    whole = hashlib.sha256()
    for part in parts:
        if isinstance(part, Path):
            for file in [part] if part.is_file() else _files(part):
                whole.update(os.fsencode(file.relative_to(part.parent)) + b"\0")
                whole.update(hashlib.sha256(file.read_bytes()).digest())
        else:
            content = part.encode("utf-8", "surrogateescape") if isinstance(part, str) else part
            whole.update(len(content).to_bytes(8, "little") + content)
    return whole.hexdigest()


def _files(folder: Path) -> list[Path]:
    skipped = {"__pycache__", ".git"}
    found = (path for path in folder.rglob("*") if not skipped & set(path.relative_to(folder).parts))
    return sorted(path for path in found if path.is_file())


def file_sha256(path: Path) -> str:
    """The sha256 of a file's content."""
    with open(path, "rb") as file:
        return stream_sha256(file)


def write_atomically(path: Path, content: str) -> None:
    """Writes a file completely or not at all. A file that already has this content is not touched."""
    raw = content.encode("utf-8", "surrogateescape")
    if path.is_file() and not path.is_symlink() and path.read_bytes() == raw:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    # The temporary name is new each time. Under a fixed name, another user could place a link to another file.
    handle, beside = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    try:
        with open(handle, "wb") as file:
            file.write(raw)
        os.chmod(beside, 0o666 & ~_umask())
        os.replace(beside, path)
    except BaseException:
        os.unlink(beside)
        raise


def _umask() -> int:
    """The process's umask, which can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


class Stamp:
    """A file that records a finished step: the key of its inputs, and the size and hash of each file that it wrote."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def holds(self, key: str) -> bool:
        """True if the key is equal and every recorded file still has the recorded content."""
        try:
            recorded = json.loads(self.path.read_text(encoding="utf-8"))
            if recorded["key"] != key:
                return False
            for name, (size, sha256) in recorded["files"].items():
                path = Path(name)
                if path.stat().st_size != size or file_sha256(path) != sha256:
                    return False
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return False  # an unreadable stamp is treated as missing, so the step is done again
        return True

    def keep_strangers(self, files: Iterable[Path]) -> None:
        """Renames those of the given files that changed since the last run, because the step will overwrite them."""
        try:
            recorded = dict(json.loads(self.path.read_text(encoding="utf-8"))["files"])
        except (OSError, ValueError, KeyError, TypeError):
            recorded = {}
        for path in files:
            if not os.path.lexists(path):
                continue
            if path.is_file() and recorded.get(str(path)) == [path.stat().st_size, file_sha256(path)]:
                continue
            keep_aside(path)

    def write(self, key: str, files: Iterable[Path] = ()) -> None:
        recorded = {str(path): (path.stat().st_size, file_sha256(path)) for path in files}
        write_atomically(self.path, json.dumps({"key": key, "files": recorded}, indent=1) + "\n")

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)


class Console:
    """Prints one line per step: updated in place on a terminal, plain text in a log."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.number = 0
        self.live = sys.stdout.isatty()

    def step(self, title: str, work: Callable[[Progress], bool]) -> None:
        """Runs `work`, which returns True if it did something and False if there was nothing to do."""
        self.number += 1
        progress = Progress(f"[{self.number}/{self.total}] {title}", self.live)
        with progress:
            did = work(progress)
        progress.finish("done" if did else "already done")


class Progress:
    """The line of one step. On a terminal it shows a bar, the seconds and the last output of the child process."""

    WIDTH = 12

    def __init__(self, title: str, live: bool) -> None:
        self.title = title
        self.live = live
        self.began = time.monotonic()
        self.note = ""
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Progress:
        if self.live:
            self._thread = threading.Thread(target=self._draw, daemon=True)
            self._thread.start()
        else:
            print(f"{self.title} ...", flush=True)
        return self

    def __exit__(self, kind: object, value: object, traceback: object) -> None:
        self.pause()
        if kind is not None:
            print(f"{self.title}: stopped after {self.seconds:.0f} s", flush=True)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began

    def pause(self) -> None:
        """Stops drawing, so that a child process can draw its own progress bar."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
            print("\r\033[K", end="", flush=True)

    def finish(self, outcome: str) -> None:
        print(f"{self.title}: {outcome} ({self.seconds:.0f} s)", flush=True)

    def _draw(self) -> None:
        tick = 0
        while not self._stop.wait(0.2):
            tick += 1
            place = tick % (2 * self.WIDTH)
            place = place if place < self.WIDTH else 2 * self.WIDTH - place - 1
            bar = "·" * place + "█" + "·" * (self.WIDTH - place - 1)
            columns = os.get_terminal_size().columns if sys.stdout.isatty() else 100
            line = f"{self.title} |{bar}| {self.seconds:4.0f} s  {self.note}"
            print("\r\033[K" + line[: columns - 1], end="", flush=True)


def run(
    command: Sequence[str | Path],
    log: Path,
    progress: Progress | None = None,
    environment: Mapping[str, str] | None = None,
    show: bool = False,
) -> str:
    """Runs a child process. Its output is written to `log`, with `show` also to the terminal, and returned.

    Raises:
        ChildError: the exit code is not 0.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    words = [str(word) for word in command]
    if show:
        return _run_shown(words, environment)
    lines: list[str] = []
    with open(log, "w", encoding="utf-8") as file:
        file.write("$ " + " ".join(words) + "\n")
        with subprocess.Popen(
            words,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env=environment,
            cwd=ROOT,
            text=True,
            errors="replace",
        ) as child:
            try:
                for line in child.stdout or ():
                    lines.append(line)
                    file.write(line)
                    file.flush()
                    if progress is not None and line.strip():
                        progress.note = line.strip()
                code = child.wait()
            except BaseException:
                end(child)
                raise
    output = "".join(lines)
    if code != 0:
        raise ChildError(words, code, output, log)
    return output


def _run_shown(words: list[str], environment: Mapping[str, str] | None) -> str:
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, env=environment, cwd=ROOT) as child:
        try:
            code = child.wait()
        except BaseException:
            end(child)
            raise
    if code != 0:
        raise ChildError(words, code, "", None)
    return ""


def end(child: subprocess.Popen, patience: float = 10.0) -> None:
    """Terminates a child that may have received Ctrl-C already: waits, then sends SIGTERM, then SIGKILL."""
    for ask in (lambda: None, child.terminate):
        ask()
        try:
            child.wait(patience)
            return
        except subprocess.TimeoutExpired:
            patience = 5.0
    child.kill()
    child.wait()


class ChildError(Exception):
    """A child process failed. A step converts this into a ConvertError with its own message."""

    def __init__(self, words: list[str], code: int, output: str, log: Path | None) -> None:
        super().__init__(f"{' '.join(words)}: exit code {code}")
        self.code = code
        self.output = output
        self.log = log

    def tail(self, lines: int = 12) -> str:
        """The last lines of the output, indented, and the path of the complete log."""
        last = [line for line in self.output.strip().splitlines() if line.strip()][-lines:]
        shown = "\n".join("    " + line for line in last)
        return shown + (f"\n  The whole output: {self.log}" if self.log else "")
