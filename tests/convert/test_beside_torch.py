"""The packages that name PyTorch as theirs are installed without it, and only if one is absent."""

from __future__ import annotations

from megatron_ms.convert import environment


def test_absent_packages_are_installed_without_dependencies(tmp_path, monkeypatch):
    asked, commands = [], []

    def inspect(extras, further):
        asked.append(further)
        return {"absent": ["trl"]}

    monkeypatch.setattr(environment, "_inspect", inspect)
    monkeypatch.setattr(environment, "run", lambda command, *_: commands.append(command))
    assert environment.add_packages_beside_torch(tmp_path, None)
    assert sorted(asked[0]) == ["accelerate", "peft", "trl"] and all(asked[0].values())
    (command,) = commands
    assert "--no-deps" in command and command[-1] == environment.BESIDE_TORCH


def test_nothing_is_installed_if_all_are_there(tmp_path, monkeypatch):
    monkeypatch.setattr(environment, "_inspect", lambda *_: {"absent": []})
    monkeypatch.setattr(environment, "run", None)  # a call would fail
    assert not environment.add_packages_beside_torch(tmp_path, None)
