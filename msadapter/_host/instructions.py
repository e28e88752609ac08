"""The instruction sets for which the CPU kernels can be compiled, and which of them this processor can run.

A kernel is compiled for one set. On the machine where it runs that is the processor's own set, unless
``MSADAPTER_CPU`` names another one. A wheel with kernels has one library for each set of ``SETS`` (prebuild.py).
Standard library only; see doctor.py.
"""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from .cache import BuildError

VARIABLE = "MSADAPTER_CPU"
NATIVE = "native"  # GCC's word for the processor of the machine that compiles


@dataclass(frozen=True)
class InstructionSet:
    """An instruction set. `name` is GCC's word for ``-march``, `needs` are words of /proc/cpuinfo, `about` is for people."""

    name: str
    needs: frozenset[str]
    about: str


_V3 = frozenset({"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"})
_V4 = _V3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
# What GCC may use by itself. AMX is not among it: MindSpore's oneDNN uses it where the processor has it, with any set.
_RAPIDS = _V4 | {"avx512_fp16", "avx512_bf16", "avx512_vnni", "avx512vbmi", "avx512_vbmi2", "avx512ifma"}
_RAPIDS |= {"avx512_bitalg", "avx512_vpopcntdq", "avx_vnni", "vaes", "vpclmulqdq", "gfni", "sha_ni", "adx"}
_ARM_8_2 = frozenset({"atomics", "fphp", "asimdhp", "asimdrdm", "asimddp"})

#: By machine, each from the one that every processor has to the one that the fewest have.
SETS: dict[str, tuple[InstructionSet, ...]] = {
    "x86_64": (
        InstructionSet("x86-64", frozenset(), "every processor of x86-64"),
        InstructionSet("x86-64-v3", _V3, "AVX2"),
        InstructionSet("x86-64-v4", _V4, "AVX-512"),
        InstructionSet("sapphirerapids", _RAPIDS, "AVX-512 with float16"),
    ),
    "aarch64": (
        InstructionSet("armv8-a", frozenset(), "every processor of aarch64, NEON included"),
        InstructionSet("armv8.2-a+fp16+dotprod", _ARM_8_2, "NEON with float16"),
        InstructionSet("armv8.2-a+fp16+dotprod+sve", _ARM_8_2 | {"sve"}, "SVE"),
    ),
}


def machine() -> str:
    """Return the name of this kind of machine, a key of `SETS` if it is a known one."""
    name = platform.machine()
    return {"AMD64": "x86_64", "arm64": "aarch64"}.get(name, name)


def known() -> dict[str, InstructionSet]:
    """Return the sets of this kind of machine by name."""
    return {one.name: one for one in SETS.get(machine(), ())}


def processor() -> str:
    """Return the features of this processor as /proc/cpuinfo lists them, sorted, or "unknown"."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return "unknown"
    flags = re.search(r"^(?:flags|Features)\s*:(.*)$", text, re.M)  # the name on x86-64, and on aarch64
    return " ".join(sorted(flags.group(1).split())) if flags else "unknown"


def lacking(name: str) -> list[str]:
    """Return what this processor lacks for a set of `SETS`. It is empty for a word that `SETS` does not have."""
    one = known().get(name)
    return sorted(one.needs - set(processor().split())) if one else []


def requested() -> str:
    """Return the set that ``MSADAPTER_CPU`` names, or "" if it names none.

    Raises:
        BuildError: this processor cannot run it.
    """
    chosen = os.environ.get(VARIABLE) or ""
    if missing := lacking(chosen):
        raise BuildError(
            f"{VARIABLE}={chosen}: this processor lacks {', '.join(missing)}. Leave the variable out to use what this "
            "processor has"
        )
    return chosen


def best(names: Iterable[str]) -> str | None:
    """Return the name among `names` of the set with the most features that this processor can run, or None."""
    offered = set(names)
    able = [name for name in known() if name in offered and not lacking(name)]
    return able[-1] if able else None


def flags(name: str) -> list[str]:
    """Return the compiler's options for a set of `SETS`, another word for ``-march``, or "native"."""
    # GCC uses half of an AVX-512 register unless it is told otherwise. Processors without AVX-512 ignore the option.
    width = ["-mprefer-vector-width=512"] if machine() == "x86_64" else []
    return [f"-march={name}", *width]
