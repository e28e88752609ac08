"""The toy upstream's engine, its rule, and what tests of dangers ask of a folder."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import zlib
from pathlib import Path

from patches import MANIFEST, Patch, Upstream
from patches.edits import replace

ENGINE = "speed = 1  # fast\n"
UPSTREAM = Upstream("toy", "toy/version.txt", lambda text: text.strip(), since="1.2", before="2.0")


def sha(content: str | bytes) -> str:
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()


def rule(target: str = "toy/engine.py") -> Patch:
    return Patch(
        id="speed", target=target, reason="for the test", reason_class="device", since="1.0", before="2.0",
        fingerprints=(sha(ENGINE),), edit=replace("# fast", "# exact"),
    )  # fmt: skip


def contents(folder: Path) -> dict[str, bytes | str]:
    return {
        path.relative_to(folder).as_posix(): os.readlink(path) if path.is_symlink() else path.read_bytes()
        for path in folder.rglob("*")
        if path.is_symlink() or path.is_file()
    }


def users_folder(out: Path) -> None:
    out.mkdir()
    (out / "thesis.txt").write_text("years of work")


def forged(out: Path, name: str, text: bytes = b"pwned") -> None:
    """Write a manifest with the original of another file. Everything else in it is correct."""
    manifest = json.loads((out / MANIFEST).read_text())
    manifest["originals"][name] = base64.b85encode(zlib.compress(text)).decode()
    manifest["files"].setdefault(name, sha("x"))
    manifest["patches"].append(
        {**manifest["patches"][0], "id": "forged", "target": name, "sha256_before": sha(text)}
    )
    (out / MANIFEST).write_text(json.dumps(manifest))
