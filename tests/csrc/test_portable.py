"""The C++ sources compile for aarch64 too: what only x86-64 has stands under a condition that names it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

from msadapter._host import instructions

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = (ROOT / "msadapter" / "csrc", ROOT / "kernels_ascend" / "simulator")
FILES = sorted(path for folder in FOLDERS for path in folder.rglob("*") if path.suffix in (".cpp", ".h"))
X86_ONLY = re.compile(
    r"\b(_mm\d*_\w+|__m(?:128|256|512)\w*|__builtin_ia32_\w+|__builtin_cpu_\w+|__cpuid\w*)|\w*intrin\.h>"
)
X86_CONDITION = re.compile(r"__(x86_64__|AVX\w*__|F16C__|FMA__|SSE\w*__|AMX\w*__)")
# GCC has _Float16 in C++ for aarch64 since version 13 only. These files define Float16, which the others use.
FLOAT16 = {"machine.h", "values.cpp"}


def x86_lines(text: str) -> list[int]:
    """The numbers of the lines with a name that only x86-64 has, outside a condition that asks for it."""
    conditions: list[bool] = []  # whether each open #if demands x86-64
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        code = line.split("//")[0]
        directive = re.match(r"\s*#\s*(ifdef|ifndef|if|elif|else|endif)\b(.*)", code)
        if directive:
            word, rest = directive.groups()
            if word in ("ifdef", "if", "ifndef"):
                conditions.append(word != "ifndef" and bool(X86_CONDITION.search(rest)))
            elif word == "endif":
                conditions.pop()
            else:
                conditions[-1] = word == "elif" and bool(X86_CONDITION.search(rest))
        elif X86_ONLY.search(code) and not any(conditions):
            found.append(number)
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_names_of_one_processor_are_guarded(path):
    text = path.read_text(encoding="utf-8")
    assert x86_lines(text) == []
    assert path.name in FLOAT16 or not re.search(r"\b_Float16\b", text), "use Float16"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("__builtin_ia32_pause();", [1]),
        ("#include <immintrin.h>", [1]),
        ("#ifdef __AVX2__\n__m256 a;\n#endif\n_mm256_setzero_ps();", [4]),
        ("#ifdef __AVX2__\n#else\n__m128 a;\n#endif", [3]),
        ("#ifndef __AVX2__\n__m128 a;\n#endif", [2]),
        ("#ifdef __aarch64__\n#elif defined(__x86_64__)\n__m128 a;\n#endif", []),
        ("#if defined(__AVX512F__) || defined(__F16C__)\n#ifdef OTHER\n__m512 a;\n#endif\n#endif", []),
        ("// _mm256_setzero_ps in a comment", []),
    ],
)
def test_the_check_sees_unguarded_names(text, lines):
    assert x86_lines(text) == lines


def test_the_features_of_an_aarch64_processor_are_part_of_the_key(monkeypatch):
    """Linux lists them under another word than on x86-64. Without them, processors would share kernels."""
    monkeypatch.setattr(instructions.Path, "read_text", lambda self: "processor\t: 0\nFeatures\t: fp asimd\n")
    assert instructions.processor() == "asimd fp"


@pytest.mark.slow
@pytest.mark.skipif(
    shutil.which("aarch64-linux-gnu-g++") is None,
    reason="aarch64-linux-gnu-g++ (Debian: g++-aarch64-linux-gnu) is not here",
)
@pytest.mark.parametrize(
    "name", ["runtime", "sort_keys", "reduce_core", "gemm_blocked", "conv", "doorbell", "combine"]
)
def test_a_cross_compiler_accepts_the_sources(name):
    """Those with code for single processors. All 65 files of both folders were compiled so on 2026-11-25."""
    pybind11 = pytest.importorskip("pybind11")
    (source,) = [p for p in FILES if p.name == f"{name}.cpp" and p.parent.name in ("kernels", "distributed")]
    command = [
        "aarch64-linux-gnu-g++",
        "-std=c++17",
        "-O3",
        "-march=armv8-a",
        "-fno-math-errno",
        "-fno-trapping-math",
    ]
    command += ["-D_GLIBCXX_USE_CXX11_ABI=0", "-Wno-psabi", "-fsyntax-only", f"-I{pybind11.get_include()}"]
    command += [f"-I{sysconfig.get_paths()['include']}", str(source)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
