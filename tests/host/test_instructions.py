"""MSADAPTER_CPU chooses the instruction set of the CPU kernels, and the processor decides which ones are possible."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from msadapter._host import instructions, native

OLD = "abm avx avx2 bmi1 bmi2 f16c fma movbe sse4_2"
NEW = OLD + " avx512bw avx512cd avx512dq avx512f avx512vl"


@pytest.fixture(autouse=True)
def plain(monkeypatch):
    monkeypatch.delenv("MSADAPTER_CPU", raising=False)
    monkeypatch.setattr(instructions, "machine", lambda: "x86_64")


def march() -> list[str]:
    return [flag for flag in native.kernel_flags() if flag.startswith("-march")]


def test_the_processor_of_the_machine_by_default(monkeypatch):
    assert march() == ["-march=native"]
    monkeypatch.setenv("MSADAPTER_CPU", "")
    assert march() == ["-march=native"]


def test_libraries_of_different_instructions_are_kept_apart(monkeypatch):
    monkeypatch.setattr(instructions, "processor", lambda: NEW)
    paths = {native.library_path()}
    for chosen in ("x86-64-v3", "x86-64-v4"):
        monkeypatch.setenv("MSADAPTER_CPU", chosen)
        assert march() == [f"-march={chosen}"]
        paths.add(native.library_path())
    assert len(paths) == 3


def test_what_the_processor_cannot_run_is_refused(monkeypatch):
    monkeypatch.setattr(instructions, "processor", lambda: OLD)
    monkeypatch.setenv("MSADAPTER_CPU", "x86-64-v3")
    assert march() == ["-march=x86-64-v3"]
    monkeypatch.setenv("MSADAPTER_CPU", "x86-64-v4")
    with pytest.raises(
        native.BuildError, match="MSADAPTER_CPU=x86-64-v4: this processor lacks avx512bw, avx512cd"
    ):
        native.library_path()


def test_the_capability_is_that_of_the_chosen_instructions(monkeypatch):
    from msadapter.backends import cpu  # here: the other tests need no kernels

    monkeypatch.setenv("MSADAPTER_CPU", "x86-64")
    assert cpu.get_cpu_capability() == "DEFAULT"
    monkeypatch.setenv("MSADAPTER_CPU", "x86-64-v3")
    assert cpu.get_cpu_capability() == "AVX2"
    monkeypatch.setenv("MSADAPTER_CPU", "x86-64-v4")
    assert cpu.get_cpu_capability() == "AVX512"
    monkeypatch.delenv("MSADAPTER_CPU")
    assert cpu.get_cpu_capability() in ("DEFAULT", "AVX2", "AVX512")


@pytest.mark.parametrize(
    ("features", "best"),
    [
        ("sse2", "x86-64"),
        (OLD, "x86-64-v3"),
        (OLD.replace("abm ", ""), "x86-64"),  # without it, lzcnt runs as another instruction
        (NEW, "x86-64-v4"),
        (NEW + " avx512_fp16", "x86-64-v4"),
    ],
)
def test_the_best_set_is_one_that_the_processor_has_completely(monkeypatch, features, best):
    monkeypatch.setattr(instructions, "processor", lambda: features)
    assert instructions.best(instructions.known()) == best
    assert instructions.best(["x86-64", "no such"]) == "x86-64"
    assert instructions.best([]) is None


def test_every_processor_has_the_first_set_and_later_sets_need_more():
    for sets in instructions.SETS.values():
        assert sets[0].needs == frozenset()
        assert all(a.needs < b.needs for a, b in zip(sets, sets[1:], strict=False))


COMPILERS = {"x86_64": "x86_64-linux-gnu-g++", "aarch64": "aarch64-linux-gnu-g++"}


@pytest.mark.parametrize("machine", COMPILERS)
def test_the_compiler_knows_every_set(monkeypatch, machine):
    compiler = shutil.which(COMPILERS[machine])
    if compiler is None:
        pytest.skip(f"{COMPILERS[machine]} is not here")
    monkeypatch.setattr(instructions, "machine", lambda: machine)
    for name in instructions.known():
        command = [compiler, *instructions.flags(name), "-x", "c++", "-fsyntax-only", "-"]
        done = subprocess.run(command, input="int main() {}", capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
