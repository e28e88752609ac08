"""MSADAPTER_CPU chooses the instruction set of the CPU kernels."""

from __future__ import annotations

import pytest

from msadapter._host import native

OLD = "avx avx2 bmi2 f16c fma movbe sse4_2"
NEW = OLD + " avx512bw avx512cd avx512dq avx512f avx512vl"


@pytest.fixture(autouse=True)
def plain(monkeypatch):
    monkeypatch.delenv("MSADAPTER_CPU", raising=False)


def march() -> list[str]:
    return [flag for flag in native._kernel_flags() if flag.startswith("-march")]


def test_the_processor_of_the_machine_by_default(monkeypatch):
    assert march() == ["-march=native"]
    monkeypatch.setenv("MSADAPTER_CPU", "")
    assert march() == ["-march=native"]


def test_libraries_of_different_instructions_are_kept_apart(monkeypatch):
    monkeypatch.setattr(native, "_processor", lambda: NEW)
    paths = {native.library_path()}
    for chosen in ("x86-64-v3", "x86-64-v4"):
        monkeypatch.setenv("MSADAPTER_CPU", chosen)
        assert march() == [f"-march={chosen}"]
        paths.add(native.library_path())
    assert len(paths) == 3


def test_what_the_processor_cannot_run_is_refused(monkeypatch):
    monkeypatch.setattr(native, "_processor", lambda: OLD)
    monkeypatch.setenv("MSADAPTER_CPU", "x86-64-v3")
    assert march() == ["-march=x86-64-v3"]
    monkeypatch.setenv("MSADAPTER_CPU", "x86-64-v4")
    with pytest.raises(
        native.BuildError, match="MSADAPTER_CPU=x86-64-v4: this processor lacks avx512bw, avx512cd"
    ):
        native.library_path()


def test_the_capability_is_that_of_the_chosen_instructions(monkeypatch):
    from msadapter.backends import cpu  # here: the other tests need no kernels

    monkeypatch.setenv("MSADAPTER_CPU", "x86-64-v3")
    assert cpu.get_cpu_capability() == "AVX2"
    monkeypatch.setenv("MSADAPTER_CPU", "x86-64-v4")
    assert cpu.get_cpu_capability() == "AVX512"
    monkeypatch.delenv("MSADAPTER_CPU")
    assert cpu.get_cpu_capability() in ("DEFAULT", "AVX2", "AVX512")
