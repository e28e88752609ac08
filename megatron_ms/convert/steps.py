"""What every step is made of: hashes, stamps, atomic files, child processes, progress."""

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

from patches.tree import keep_aside

ROOT = Path(__file__).resolve().parents[2]


class ConvertError(Exception):
    """A step cannot go on. The message tells the user what is wrong and what to do."""


def digest(*parts: str | bytes | Path) -> str:
    """sha256 over texts, bytes and the contents of files or whole folders (names included)."""
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
    """sha256 of one file's content."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_atomically(path: Path, content: str) -> None:
    """The file appears whole or not at all; it is not touched if it already says so."""
    raw = content.encode("utf-8", "surrogateescape")
    if path.is_file() and not path.is_symlink() and path.read_bytes() == raw:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    # A new name each time: whatever waits under a known name, such as a link to elsewhere, is not written to.
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
    """The process's mask of permissions, which can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


class Stamp:
    """Says that a step was done with inputs of this key and left these files, by size and hash."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def holds(self, key: str) -> bool:
        """True only if the key is the same and every recorded file still has the recorded content."""
        try:
            recorded = json.loads(self.path.read_text(encoding="utf-8"))
            if recorded["key"] != key:
                return False
            for name, (size, sha256) in recorded["files"].items():
                path = Path(name)
                if path.stat().st_size != size or file_sha256(path) != sha256:
                    return False
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return False  # a stamp that cannot be read counts for nothing: the step is done again
        return True

    def keep_strangers(self, files: Iterable[Path]) -> None:
        """Renames those of the files, which a step is about to write, that are not as the last run left them."""
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
    """The lines that the user sees: one for each step, alive on a terminal, plain in a log."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.number = 0
        self.live = sys.stdout.isatty()

    def step(self, title: str, work: Callable[[Progress], bool]) -> None:
        """Runs work; it returns True if it did something, False if all was already there."""
        self.number += 1
        progress = Progress(f"[{self.number}/{self.total}] {title}", self.live)
        with progress:
            did = work(progress)
        progress.finish("done" if did else "already done")


class Progress:
    """One step's line: on a terminal a moving bar, the seconds and the latest words of the child process."""

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
        """Leaves the terminal to a child process that draws its own bar."""
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
    """Runs a child process with its output in log (and on the terminal with show). Returns the output.

    Raises:
        ChildError: it ended with another exit code than 0.
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
    """Ends a child that may have had Ctrl-C already: waits for it, then asks, then insists."""
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
    """A child process failed. Steps turn it into a ConvertError with their own words."""

    def __init__(self, words: list[str], code: int, output: str, log: Path | None) -> None:
        super().__init__(f"{' '.join(words)}: exit code {code}")
        self.code = code
        self.output = output
        self.log = log

    def tail(self, lines: int = 12) -> str:
        """The last lines of the output, indented, and where the rest is."""
        last = [line for line in self.output.strip().splitlines() if line.strip()][-lines:]
        shown = "\n".join("    " + line for line in last)
        return shown + (f"\n  The whole output: {self.log}" if self.log else "")
