"""The doctor's lines about the toolkit: what must not mix, and the fix that each line names."""

from __future__ import annotations

import sys

import pytest

from msadapter._host import doctor, doctor_toolkit


@pytest.fixture
def versions(monkeypatch) -> dict[str, str]:
    """The installed packages, by a dictionary that the test fills."""
    found: dict[str, str] = {}
    monkeypatch.setattr(doctor_toolkit, "_version_of", found.get)
    return found


def test_packages_of_two_conversions_do_not_mix(monkeypatch, versions) -> None:
    monkeypatch.setattr(sys, "path", ["/b/packages-llm-2.3.0", "/b/packages-llm-26.1.0", "/usr/lib"])
    ((name, value, wrong, fix),) = doctor_toolkit._folders_of_packages()
    assert (
        wrong
        and "source one env.sh" in fix
        and value == "packages-llm-2.3.0, packages-llm-26.1.0 on PYTHONPATH"
    )
    monkeypatch.setattr(sys, "path", ["/b/packages-llm-2.3.0", "/usr/lib"])
    ((_, _, wrong, fix),) = doctor_toolkit._folders_of_packages()
    assert not wrong and not fix


def test_a_conversion_hides_the_packages_of_hugging_face(monkeypatch, versions) -> None:
    versions["trl"] = "1"
    monkeypatch.setattr(sys, "path", ["/b/packages-llm-2.3.0"])
    _, (_, value, wrong, fix) = doctor_toolkit._folders_of_packages()
    assert wrong and "trl" in value and "unset PYTHONPATH" in fix


def test_other_versions_are_named(versions, monkeypatch) -> None:
    monkeypatch.setattr(
        doctor_toolkit.importlib.metadata,
        "requires",
        lambda name: ["numpy==1", "transformers==5.23.0; extra == 'hf'"],
    )
    versions |= {"transformers": "4.0", "peft": doctor_toolkit._pins(doctor_toolkit.BESIDE_TORCH)["peft"]}
    lines = {line[0]: line for line in doctor_toolkit._packages()}
    assert lines["optional packages"][1] == "2 of 4 are installed"
    assert (
        "transformers 4.0 (tested: 5.23.0)" in lines["other versions"][1]
        and "peft" not in lines["other versions"][1]
    )
    assert "absent: accelerate, trl" in lines["for backend hf"][1]
    assert "--no-deps" in lines["for backend hf"][3]


def test_packages_that_need_pytorch_are_named(tmp_path, monkeypatch) -> None:
    for name in ("vllm", "flash_attn", "harmless"):
        (tmp_path / f"{name}-1.dist-info").mkdir()
        (tmp_path / f"{name}-1.dist-info/METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n"
        )
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.setattr(
        sys, "meta_path", [one for one in sys.meta_path if "msadapter" not in type(one).__module__]
    )
    ((_, value, _, fix),) = doctor_toolkit._packages_of_pytorch()
    assert value.startswith("flash-attn, vllm in") and "pip uninstall" in fix


def test_rays_processes_are_counted(versions, monkeypatch) -> None:
    monkeypatch.setattr(doctor_toolkit, "_processes_of_ray", lambda: iter([7, 5]))
    versions["ray"] = "2.42"
    assert list(doctor_toolkit._ray()) == [
        ("Ray", "2.42", False, ""),
        ("Ray's processes", "2 are running (5, 7)", False, "if no job uses them: ray stop"),
    ]


def test_a_damaged_conversion_is_told(versions, monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(doctor_toolkit, "ROOT", tmp_path)
    ((_, value, wrong, _),) = doctor_toolkit._conversions()
    assert "none here" in value and not wrong
    (tmp_path / "megatron_ms/convert").mkdir(parents=True)
    (tmp_path / "auto_convert.sh").touch()
    (tmp_path / "megatron_ms/convert/start.py").write_text("raise SystemExit('auto_convert: is broken')\n")
    ((_, value, wrong, fix),) = doctor_toolkit._conversions()
    assert wrong and value == "auto_convert: is broken" and "--list" in fix


def test_the_doctor_prints_these_lines(monkeypatch, capsys) -> None:
    monkeypatch.setattr(doctor, "_all_checks", doctor._toolkit)
    doctor.main([])
    shown = capsys.readouterr().out
    assert "their packages" in shown and "Ray" in shown


@pytest.mark.parametrize("place", ["shim", "older/2.7"])
def test_metadata_of_msadapter_are_not_taken_for_pytorch(place, monkeypatch) -> None:
    monkeypatch.syspath_prepend(str(doctor_toolkit.ALIAS / place))
    assert not [
        line for line in doctor_toolkit._packages_of_pytorch() if "torch," in line[1] or "torch in" in line[1]
    ]


def test_pytorch_in_a_folder_called_msadapter_is_found(tmp_path, monkeypatch) -> None:
    metadata = tmp_path / "msadapter" / "site-packages" / "torchvision-0.1.dist-info" / "METADATA"
    metadata.parent.mkdir(parents=True)
    metadata.write_text("Metadata-Version: 2.1\nName: torchvision\nVersion: 0.1\n")
    monkeypatch.syspath_prepend(str(metadata.parents[1]))
    (line,) = doctor_toolkit._packages_of_pytorch()
    assert "torchvision" in line[1]
