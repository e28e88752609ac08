"""MSADAPTER_SANITIZE reaches the compilation of every C++ source, and the link."""

from __future__ import annotations

import re
from pathlib import Path

from msadapter._host import native


def test_every_source_is_compiled_with_the_sanitizers(monkeypatch, tmp_path):
    monkeypatch.setenv("MSADAPTER_SANITIZE", "address,undefined")
    monkeypatch.setenv("MSADAPTER_CACHE", str(tmp_path))
    commands, compiled = {}, set()

    def record(command, source, verbose):
        commands[Path(source)] = command
        if source.suffix == ".cpp":  # a source, or a unit that includes some
            included = re.findall(r'^#include "(.+\.cpp)"$', source.read_text(), re.M)
            compiled.update(native.SOURCES / name for name in included)
        Path(command[command.index("-o") + 1]).write_bytes(b"")

    monkeypatch.setattr(native, "_compile", record)
    target = tmp_path / "_C.so"
    (tmp_path / "objects").mkdir()
    native._link(
        target,
        lambda compilation, work: (native._extension_objects(compilation, work), []),
        native._mindspore_root(),
        False,
    )
    sources = set(native.SOURCES.rglob("*.cpp"))
    assert len(sources) > 80
    assert sources | {target} <= compiled | set(commands)
    assert all("-fsanitize=address,undefined" in command for command in commands.values())
