"""Writes the entries of CANN's libraries that the simulated NPU does not have, as an assembler file.

    python generate.py MINDSPORE_FOLDER OUTPUT_FOLDER LIBRARY...

MindSpore's Ascend plugin is linked against some twenty libraries of CANN. Most of their functions are only needed to
compile graphs, which does not happen here; yet the plugin is not loaded if one is missing. This script reads what the
plugin's libraries ask for, leaves out what MindSpore, the system and the simulator's LIBRARY define, and writes

    stubs.S     an entry for each other symbol. Most print their name and abort. Those that run while a library is loaded
                return at once. Those that MindSpore looks up by name return an error code
    needed      the names of CANN's libraries that the plugin asks for

The names of aclnn operators are left out: MindSpore looks them up when it calls them, and an operator that is not
simulated must be missing, so that MindSpore says its name. Only the standard library and binutils are used.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

# Constructors of static objects that register operators for graph mode: called while a library is loaded.
_RUNS_AT_LOAD = re.compile(
    r"^ge::(OperatorCreatorRegister|InferShapeFuncRegister|TensorType)::"
    r"|^gert::|^optiling::|^ops::.*Register|^mki::.*Regist|::~"
    r"|^ge::.*Regist|^ge::AscendString::AscendString"
)
# Symbols of the compiler's and Python's runtime, which are not part of CANN.
_NOT_CANN = ("Py", "_Py", "_ITM", "__gmon", "__cxa", "aclnn")
_OBJECT_BYTES = 512  # room for a vtable or a static object of CANN; nothing reads it
# What functions that MindSpore looks up by name return: "not supported", by the type of their result.
_UNSUPPORTED = {"aclError": 207000, "drvError_t": 207000, "HcclResult": 5}
_X86_64 = 62


def _run(*command: str | Path, text: str | None = None) -> str:
    return subprocess.run(
        [str(word) for word in command], input=text, capture_output=True, text=True, check=True
    ).stdout


def _symbols(library: Path) -> tuple[set[str], set[str]]:
    """The names that a library defines, and those that it asks for."""
    defined, asked = set(), set()
    for line in _run("nm", "-D", library).splitlines():
        words = line.split()
        name, kind = words[-1], words[-2]
        if kind == "U":
            if "@" not in name:
                asked.add(name)
        elif kind not in "wv" or len(words) == 3:
            defined.add(name.split("@")[0])
    return defined, asked


def _libraries(folder: Path) -> Iterator[Path]:
    """The libraries for this processor below a folder."""
    for path in sorted(folder.rglob("*.so*")):
        if path.is_file():
            with path.open("rb") as file:
                head = file.read(20)
            if head[:4] == b"\x7fELF" and head[18] == _X86_64:
                yield path


def _is_plugin(path: Path) -> bool:
    """Whether a library belongs to the Ascend plugin. Image decoding and on-device kernels are not used."""
    name = str(path)
    inside = "/plugin/ascend" in name or "libmindspore_ascend" in name or "libmindspore_ops_ascend" in name
    return inside and "libdvpp_utils" not in name and "/op_kernels/" not in name


def _looked_up(mindspore: Path) -> dict[str, str]:
    """The functions that MindSpore looks up by name, and the types of their results."""
    folder = mindspore / "include/mindspore/ccsrc/plugin/ascend/res_manager"
    headers = [
        *sorted((folder / "symbol_interface").glob("*.h")),
        folder / "hccl_adapter/plugin/hccl_plugin.h",
    ]
    found = {}
    for header in headers:
        for name, kind in re.findall(r"^ORIGIN_METHOD\w*\((\w+),\s*([^,)]+)", header.read_text(), re.M):
            found[name] = kind.strip()
    return found


def _survey(mindspore: Path, own: Iterable[Path]) -> tuple[set[str], set[str], set[str]]:
    """The symbols that are defined, the symbols that the plugin asks for, and the libraries that it asks for."""
    everything = [path for path in _libraries(mindspore) if "gpu" not in str(path.relative_to(mindspore))]
    cache = _run("/sbin/ldconfig", "-p")
    system = dict(re.findall(r"^\s*(\S+) \(libc6,(?:x86-64|AArch64)[^)]*\) => (\S+)", cache, re.M))
    present = {path.name for path in everything}
    defined: set[str] = set()
    asked: set[str] = set()
    needed: set[str] = set()
    for path in [*everything, *own]:
        has, wants = _symbols(path)
        defined |= has
        if not _is_plugin(path):
            continue
        asked |= wants
        for name in re.findall(r"NEEDED.*\[(.*)\]", _run("readelf", "-d", path)):
            if name in system:
                defined |= _symbols(Path(system[name]))[0]
            elif name not in present:
                needed.add(name)
    return defined, asked, needed


def _entry(name: str, index: int, readable: str) -> str:
    """The assembler text of one symbol."""
    is_object = name.startswith(("_ZTV", "_ZTI", "_ZTS")) or (
        re.match(r"^_ZN.*E$", name) and "(" not in readable
    )
    if is_object:
        return (
            f".data\n.balign 16\n.globl {name}\n.type {name},@object\n.size {name},{_OBJECT_BYTES}\n"
            f"{name}: .zero {_OBJECT_BYTES}\n.text\n"
        )
    head = f".globl {name}\n.type {name},@function\n{name}:\n"
    if _RUNS_AT_LOAD.search(readable):
        return head + "  mov %rdi,%rax\n  ret\n"
    text = readable.replace("\\", "\\\\").replace('"', '\\"')
    label = f".Lname{index}"
    return (
        f'{head}  lea {label}(%rip),%rdi\n  jmp .Labort\n.section .rodata\n{label}: .asciz "{text}"\n.text\n'
    )


def _refusing_entry(name: str, kind: str) -> str:
    value = _UNSUPPORTED.get(kind, 0)
    return (
        f".globl {name}\n.type {name},@function\n{name}:\n  lea .Lrefused_{name}(%rip),%rdi\n  push %rbx\n"
        f"  call SimulatedNpuUnsupported@PLT\n  pop %rbx\n  mov ${value},%eax\n  ret\n"
        f'.section .rodata\n.Lrefused_{name}: .asciz "{name}"\n.text\n'
    )


def generate(mindspore: Path, output: Path, own: Iterable[Path]) -> list[str]:
    """Write stubs.S into the folder `output`. Returns the names of CANN's libraries that the plugin asks for.

    mindspore: the folder of the installed package. own: the simulator's libraries, whose symbols need no entry.
    """
    defined, asked, needed = _survey(mindspore, own)
    names = sorted(name for name in asked - defined if not name.startswith(_NOT_CANN))
    readable = _run("c++filt", text="\n".join(names)).splitlines()
    parts = ['.section .note.GNU-stack,"",@progbits\n.text\n']
    parts += [
        _entry(name, index, text) for index, (name, text) in enumerate(zip(names, readable, strict=True))
    ]
    for name, kind in sorted(_looked_up(mindspore).items()):
        if name not in defined and name not in names:
            parts.append(_refusing_entry(name, kind))
    parts.append(".Labort:\n  and $-16,%rsp\n  call SimulatedNpuMissing@PLT\n  hlt\n")
    (output / "stubs.S").write_text("".join(parts), encoding="utf-8")
    (output / "needed").write_text("\n".join(sorted(needed)) + "\n", encoding="utf-8")
    return sorted(needed)


if __name__ == "__main__":
    generate(Path(sys.argv[1]), Path(sys.argv[2]), [Path(word) for word in sys.argv[3:]])
