"""Runs a program of MindSpeed-RL on a Ray cluster of its own, which ends with it.

    python -m megatron_ms.rollout.job [--ranks 2] [--log FILE] PROGRAM.py [arguments]

As MindSpeed-RL's example scripts do, the cluster is started with `ray start --head --resources '{"NPU": RANKS}'`; its scripts end
every Python and every Ray process of the machine beforehand, and this command ends those alone that it has started. If a worker
dies, the exit code is 1 and the last line names it. Nothing is left: no process, no actor, no shared memory, no folder in /tmp.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

# A program's remote task, its workers, and the transfer dock (10) each count Ray's CPUs. They are numbers, not cores.
CPUS = 32
_DIED = re.compile(r"class_name: (\w+)[\s\S]{0,600}?pid: (\d+)")
_FAILED = re.compile(r"^(?:ray\.exceptions\.)?(\w*(?:Error|Exception)\w*)(?:\(\w+\))?: (.*)$", re.MULTILINE)
_STORE = 200 * 2**20  # bytes that workers share

# The ports that `ray start` takes by default: agent of the dashboard, client server, dashboard, metrics.
_PORTS_OF_RAY = {52365, 10001, 8265, 44217, 44227}


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m megatron_ms.rollout.job", description="Runs a program on Ray."
    )
    parser.add_argument("--ranks", type=int, default=2, help="simulated NPUs (default: 2)")
    parser.add_argument("--log", type=Path, help="also write what the program prints here")
    parser.add_argument("program", type=Path)
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    given = parser.parse_args(words)
    if given.ranks < 1:
        parser.error(f"--ranks is {given.ranks}, and must be at least 1")
    if not given.program.is_file():
        parser.error(f"there is no program {given.program}")
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        with cluster(given.ranks) as address:
            code, text = _run([sys.executable, str(given.program), *given.arguments], address, given)
    except KeyboardInterrupt:
        print("\nstopped", file=sys.stderr)
        return 130
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return 1
    if code:
        print(f"\n{given.program.name} failed: {why(text) or f'exit code {code}'}", file=sys.stderr)
        return 1
    return 0


def why(text: str) -> str:
    """Which worker died, or the last error, in what a program on Ray has printed; "" if it says neither."""
    if "ActorDiedError" in text or "WorkerCrashedError" in text:
        found = _DIED.findall(text)
        if found:
            name, pid = found[-1]
            return f"the worker {name} with process id {pid} has died"
    errors = _FAILED.findall(text)
    return ": ".join(errors[-1]) if errors else ""


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _run(command: list[str], address: str, given: argparse.Namespace) -> tuple[int, str]:
    """Runs the program, shows and keeps what it prints."""
    environment = {
        **os.environ,
        "RAY_ADDRESS": address,
        "MSADAPTER_DEVICE_COUNT": str(given.ranks),
        "HYDRA_FULL_ERROR": "1",
    }
    lines: list[str] = []
    with contextlib.ExitStack() as stack:
        log = stack.enter_context(open(given.log, "w", encoding="utf-8")) if given.log else None
        child = stack.enter_context(
            subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                env=environment,
            )
        )
        try:
            assert child.stdout is not None  # it is a pipe
            for line in child.stdout:
                lines.append(line)
                print(line, end="", flush=True)
                if log is not None:
                    log.write(line)
                    log.flush()
        except BaseException:
            child.kill()
            raise
    return child.returncode, "".join(lines)


@contextlib.contextmanager
def cluster(ranks: int) -> Iterator[str]:
    """The address of a new Ray cluster of this machine alone. All its processes have ended when the context has.

    Raises:
        RuntimeError: ray is not installed, or the cluster did not start. The message has Ray's words.
    """
    ray = shutil.which("ray") or _beside_the_package()
    folder = Path(tempfile.mkdtemp(prefix="ray-"))
    port = _free_port()
    command = [
        sys.executable, ray, "start", "--head", "--block", "--disable-usage-stats", "--include-dashboard=false",
        "--node-ip-address=127.0.0.1", f"--port={port}", f"--num-cpus={CPUS}", f"--temp-dir={folder}",
        f"--object-store-memory={_STORE}", "--resources", json.dumps({"NPU": ranks}),
    ]  # fmt: skip
    environment = {
        **os.environ,
        "MSADAPTER_DEVICE_COUNT": str(ranks),
        "RAY_EXPERIMENTAL_NOSET_ASCEND_RT_VISIBLE_DEVICES": "1",  # the processors are not shared out
        "RAY_DEDUP_LOGS": "0",
        "RAY_ENABLE_RECORD_ACTOR_TASK_LOGGING": "0",
    }
    with open(folder / "start.log", "w", encoding="utf-8") as said:
        child = subprocess.Popen(
            command, stdout=said, stderr=subprocess.STDOUT, env=environment, start_new_session=True
        )
    try:
        _wait_for(child, port, folder / "start.log")
        yield f"127.0.0.1:{port}"
    finally:
        _end(child, folder)
        shutil.rmtree(folder, ignore_errors=True)


def _beside_the_package() -> str:
    """The command `ray` of a folder of packages on PYTHONPATH (pip install --target)."""
    for place in sys.path:
        if (Path(place) / "bin" / "ray").is_file() and (Path(place) / "ray").is_dir():
            return str(Path(place) / "bin" / "ray")
    raise RuntimeError("ray is not installed: bash auto_convert.sh rl, then source build/rl/env.sh")


def _free_port() -> int:
    """A port that is free, and is none of those that Ray takes for other parts of itself."""
    while True:
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            port = int(one.getsockname()[1])
        if port not in _PORTS_OF_RAY:
            return port


def _wait_for(child: subprocess.Popen[bytes], port: int, said: Path, seconds: float = 120) -> None:
    """Returns when the cluster says that it has started."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        text = said.read_text(encoding="utf-8", errors="replace")
        if "Ray runtime started" in text:
            return
        if child.poll() is not None:
            break
        time.sleep(0.2)
    raise RuntimeError(
        f"Ray did not start on port {port}:\n{said.read_text(encoding='utf-8', errors='replace')[-2000:]}"
    )


def members(folder: Path) -> list[int]:
    """The processes whose command line or environment names the cluster's folder."""
    found = []
    for place in Path("/proc").iterdir():
        if not place.name.isdigit() or int(place.name) == os.getpid():
            continue
        try:
            text = (place / "cmdline").read_bytes() + b"\0" + (place / "environ").read_bytes()
        except OSError:
            continue  # it has ended, or is another user's
        if os.fsencode(folder) in text:
            found.append(int(place.name))
    return found


def _end(child: subprocess.Popen[bytes], folder: Path) -> None:
    """Ends Ray's processes: it is asked first, and killed if it does not end."""
    if child.poll() is None:
        child.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(20)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    until = time.monotonic() + 10
    while (left := members(folder)) and time.monotonic() < until:
        for one in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(one, signal.SIGKILL)
        time.sleep(0.1)


if __name__ == "__main__":
    sys.exit(main())
