"""The libraries of a wheel with kernels: which one is taken, what does not fit, and what is refused."""

from __future__ import annotations

import json
import os
import sysconfig
from pathlib import Path

import pytest

from msadapter._host import cache, doctor, instructions, native, packaged, prebuild

SETS = ["x86-64", "x86-64-v3"]
OLD = "abm avx avx2 bmi1 bmi2 f16c fma movbe sse4_2"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of libraries for two instruction sets, which are texts. No compiler is there, and an empty cache."""
    folder = tmp_path / "_prebuilt"
    for name in (*(f"{one}/_C.so" for one in SETS), "_operators.so"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"library {name}")
    values = {
        "machine": "x86_64",
        "python": sysconfig.get_config_var("SOABI"),
        "mindspore": native.MINDSPORE_VERSION,
        "glibc": "2.0",
        "sources": native.source_hash(),
        "compiler": "g++ 12",
        "sets": SETS,
        "files": {str(p.relative_to(folder)): cache.file_sha256(p) for p in sorted(folder.rglob("*.so"))},
    }
    (folder / "manifest.json").write_text(json.dumps(values))
    monkeypatch.setattr(packaged, "FOLDER", folder)
    monkeypatch.setattr(instructions, "machine", lambda: "x86_64")
    monkeypatch.setattr(instructions, "processor", lambda: OLD)
    monkeypatch.setenv("MSADAPTER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("CXX", "no-such-compiler")
    for variable in ("MSADAPTER_CPU", "MSADAPTER_SANITIZE"):
        monkeypatch.delenv(variable, raising=False)
    return folder


def change(folder: Path, **values) -> None:
    path = folder / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def test_the_best_set_of_the_package_is_taken_without_a_compiler(folder, capsys, monkeypatch) -> None:
    assert native.build() == folder / "x86-64-v3/_C.so"
    assert native.build_operators() == folder / "_operators.so"
    assert native._built_and_held() == folder / "x86-64-v3/_C.so"
    assert not cache_exists() and capsys.readouterr().err == ""
    monkeypatch.setattr(instructions, "processor", lambda: "sse2")
    assert native.build() == folder / "x86-64/_C.so"
    assert packaged.owns(native.build()) and packaged.instruction_set(native.build()) == "x86-64"


def test_the_doctor_finds_nothing_wrong_without_a_compiler(folder, monkeypatch) -> None:
    """The simulated NPU alone needs a compiler, and is wrong only for who asks for it."""
    monkeypatch.delenv("MSADAPTER_SIMULATED_NPU", raising=False)
    assert not any(line.wrong for line in (*doctor._compiler(), *doctor._kernels(), *doctor._simulated_npu()))
    monkeypatch.setenv("MSADAPTER_SIMULATED_NPU", "1")
    (line,) = doctor._simulated_npu()
    assert line.wrong and "no C++ compiler" in line.value


def cache_exists() -> bool:
    return native.cache_root().exists()


def test_the_variable_chooses_a_set_of_the_package_or_a_build(folder, monkeypatch) -> None:
    monkeypatch.setenv("MSADAPTER_CPU", "x86-64")
    assert native.build() == folder / "x86-64/_C.so"
    for chosen in ("native", "znver3"):
        monkeypatch.setenv("MSADAPTER_CPU", chosen)
        with pytest.raises(native.BuildError, match="no C\\+\\+ compiler"):
            native.build()
    monkeypatch.setenv("MSADAPTER_CPU", "x86-64-v4")
    with pytest.raises(native.BuildError, match="this processor lacks avx512bw"):
        native.build()


def test_sanitizers_are_never_those_of_the_package(folder, monkeypatch) -> None:
    monkeypatch.setenv("MSADAPTER_SANITIZE", "address")
    assert native.packaged_library() is None


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"machine": "aarch64"}, "they are for aarch64, and this is x86_64"),
        ({"python": "cpython-39-x86_64-linux-gnu"}, "they are for cpython-39"),
        ({"mindspore": "2.9.0"}, "they are for mindspore 2.9.0, and 2.10.0 is installed"),
        ({"glibc": "2.999"}, "they need glibc 2.999"),
        ({"sources": "0" * 64}, "are not those that they were compiled from"),
    ],
)
def test_what_does_not_fit_is_said_and_compiled_here(folder, capsys, values, reason) -> None:
    change(folder, **values)
    with pytest.raises(native.BuildError, match="no C\\+\\+ compiler"):
        native.build()
    assert reason in capsys.readouterr().err


def _truncate(folder: Path) -> None:
    os.truncate(folder / "x86-64-v3/_C.so", 3)


def _link(folder: Path) -> None:
    path = folder / "x86-64-v3/_C.so"
    path.rename(folder / "moved.so")
    path.symlink_to(folder / "moved.so")


DAMAGE = {
    "truncated": _truncate,
    "of the same size": lambda folder: (folder / "x86-64-v3/_C.so").write_text("librarY x86-64-v3/_C.so"),
    "of another set": lambda folder: (folder / "x86-64/_C.so").rename(folder / "x86-64-v3/_C.so"),
    "missing": lambda folder: (folder / "x86-64-v3/_C.so").unlink(),
    "a link": _link,
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_library_is_refused_by_name(folder, damage) -> None:
    DAMAGE[damage](folder)
    with pytest.raises(native.BuildError, match="a library of the package is damaged: .*x86-64-v3/_C.so"):
        native.build()
    assert not doctor._is_built()
    (line,) = doctor._kernels()
    assert line.wrong and "x86-64-v3/_C.so" in line.fix


def test_a_damaged_library_of_operators_is_refused_by_name(folder) -> None:
    (folder / "_operators.so").write_text("another")
    with pytest.raises(native.BuildError, match="a library of the package is damaged: .*_operators.so"):
        native.build_operators()
    assert [line.wrong for line in doctor._kernels()] == [False, True]


MANIFESTS = {
    "missing": lambda path: path.unlink(),
    "no json": lambda path: path.write_text("{"),
    "a list": lambda path: path.write_text("[]"),
    "without a value": lambda path: path.write_text('{"machine": "x86_64"}'),
    "with a number": lambda path: change(path.parent, glibc=2),
    "with a foreign file": lambda path: change(path.parent, files={"x86-64/_C.so": "0", "../_C.so": "0"}),
    "with a set outside": lambda path: change(
        path.parent, sets=["../x"], files={"../x/_C.so": "0", "_operators.so": "0"}
    ),
    "with sets that are no list": lambda path: change(path.parent, sets=7),
}


@pytest.mark.parametrize("damage", MANIFESTS)
def test_a_manifest_that_cannot_be_read_is_refused_by_name(folder, damage) -> None:
    MANIFESTS[damage](folder / "manifest.json")
    with pytest.raises(native.BuildError, match="_prebuilt/manifest.json cannot be read"):
        native.build()


def test_a_library_that_this_machine_cannot_load_says_what_to_do(folder, monkeypatch) -> None:
    monkeypatch.delitem(native.sys.modules, "msadapter._C")
    monkeypatch.delenv("MSADAPTER_LIBRARY", raising=False)
    with pytest.raises(native.BuildError, match="cannot be loaded on this machine.*MSADAPTER_CPU=native"):
        native.load()


def test_a_package_without_kernels_is_as_before(folder, monkeypatch) -> None:
    monkeypatch.setattr(packaged, "FOLDER", folder / "no such folder")
    assert native.packaged_library() is None


@pytest.mark.parametrize(
    ("names", "files", "words"),
    [
        (["x86-64-v9"], [], "x86-64-v9: not an instruction set of x86_64, which has x86-64, x86-64-v3"),
        (["native"], [], "native: not an instruction set"),
        (["x86-64"], ["old"], "is not empty: name a new folder"),
    ],
)
def test_what_prebuild_refuses(tmp_path, monkeypatch, capsys, names, files, words) -> None:
    monkeypatch.setattr(instructions, "machine", lambda: "x86_64")
    for name in files:
        (tmp_path / name).write_text("kept")
    assert prebuild.main([str(tmp_path), *names]) == 1
    assert words in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == files


def test_prebuild_compiles_no_kernel_for_the_machine_that_builds(tmp_path, monkeypatch) -> None:
    """Every kernel has the flags of its set. The manifest describes the files, and they are loadable as they are."""
    monkeypatch.setattr(instructions, "machine", lambda: "x86_64")
    monkeypatch.setenv("MSADAPTER_CACHE", str(tmp_path / "cache"))
    marches = []

    def record(command, source, verbose) -> None:
        if Path(source).suffix == ".cpp" and Path(source).parent.name in native._WITHOUT_MINDSPORE:
            marches.extend(flag for flag in command if flag.startswith("-march"))
        assert "-march=native" not in command and not any("rpath" in flag for flag in command)
        Path(command[command.index("-o") + 1]).write_bytes(
            b"\0GLIBC_2.34\0GLIBC_2.4\0" + " ".join(command).encode()
        )

    monkeypatch.setattr(native, "_compile", record)
    folder = tmp_path / "out"
    prebuild.prebuild(folder, SETS)
    assert set(marches) == {f"-march={name}" for name in SETS}
    assert marches.count("-march=x86-64") == marches.count("-march=x86-64-v3") > 30
    manifest = packaged.read(folder)
    assert manifest is not None and manifest.glibc == "2.34" and manifest.sets == tuple(SETS)
    monkeypatch.setattr(packaged, "FOLDER", folder)
    monkeypatch.setattr(instructions, "processor", lambda: OLD)
    assert native.build() == folder / "x86-64-v3/_C.so"
