"""Runs on small file systems, which become full: memory file systems in a mount namespace of the run's own."""

from __future__ import annotations

import functools
import shutil
import subprocess
from pathlib import Path

_NAMESPACE = ("unshare", "--map-root-user", "--mount")
# What is on the file system is gone with the namespace, so it is copied first.
_SCRIPT = """
set -eu
size="$1" disk="$2" kept="$3"; shift 3
mount -t tmpfs -o size="$size" none "$disk"
code=0
"$@" || code=$?
cp -a "$disk" "$kept"
exit $code
"""


@functools.cache
def forbidden() -> str:
    """Why a file system cannot be mounted here; "" if it can."""
    if shutil.which(_NAMESPACE[0]) is None:
        return "there is no unshare here"
    done = subprocess.run(
        [*_NAMESPACE, "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True, text=True, check=False
    )
    return done.stderr.strip() if done.returncode else ""


def on_disk_of(size: str, disk: Path, kept: Path) -> list[str]:
    """The words of a command before which a program finds a small file system of its own at `disk`, an existing folder.

    When the program has ended, what is on it is at `kept`, which must not exist. size: as mount knows it, such as "4m".
    """
    return [*_NAMESPACE, "sh", "-c", _SCRIPT, "sh", size, str(disk), str(kept)]
