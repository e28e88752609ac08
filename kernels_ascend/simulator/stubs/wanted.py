"""Lists the aclnn operators that this project reaches, and which of them are simulated.

    python -m msadapter._host.simulator wanted [-v]

The names of MindSpore's operators are read from the declarations of msadapter and kernels_ascend. No file of the wheel says
which aclnn functions an operator calls, so they are searched in the machine code of the Ascend plugin: the search begins at
the virtual table of the operator's class and follows calls and addresses of functions to the names of aclnn functions. A
function that an operator calls only in some cases is listed too. -v also prints which operators ask for each name.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import re
import struct
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[3]
_PLUGIN = "lib/plugin/libmindspore_ops_ascend.so"
_RELATIVE, _SYMBOL = 8, 1  # R_X86_64_RELATIVE, R_X86_64_64


class Plugin:
    """The machine code of the plugin: its functions, what they call, and the names that they mention."""

    def __init__(self, path: Path):
        self.bytes = path.read_bytes()
        self.sections = {}
        listing = subprocess.run(["readelf", "-SW", path], capture_output=True, text=True, check=True).stdout
        for line in listing.splitlines():
            found = re.match(r"\s*\[\s*\d+\]\s+(\S+)\s+\S+\s+([0-9a-f]+)\s+([0-9a-f]+)\s+([0-9a-f]+)", line)
            if found:
                address, offset, size = (int(word, 16) for word in found.groups()[1:])
                self.sections[found[1]] = (address, offset, size)
        self.functions = self._function_starts()
        self.names = self._strings(rb"aclnn[A-Z]\w*")
        self.calls, self.mentions = self._references()
        self.pointers, self.holders = self._relocations()

    def _function_starts(self) -> np.ndarray:
        """The addresses of all functions, from the table of frames (.eh_frame_hdr)."""
        address, offset, _ = self.sections[".eh_frame_hdr"]
        (count,) = struct.unpack_from("<I", self.bytes, offset + 8)
        table = np.frombuffer(self.bytes, "<i4", 2 * count, offset + 12).reshape(-1, 2)
        return table[:, 0].astype(np.int64) + address

    def _strings(self, pattern: bytes) -> dict[int, str]:
        address, offset, size = self.sections[".rodata"]
        part = self.bytes[offset : offset + size]
        return {
            address + m.start(): m[0].decode()
            for m in re.finditer(rb"(?:\A|(?<=\0))" + pattern + rb"(?=\0)", part)
        }

    def _references(self) -> tuple[dict[int, set[int]], dict[int, set[str]]]:
        """For each function: the functions that it calls or takes the address of, and the names that it mentions."""
        address, offset, size = self.sections[".text"]
        text = np.frombuffer(self.bytes, np.uint8, size, offset)
        strings = np.array(sorted(self.names))
        calls: dict[int, set[int]] = defaultdict(set)
        mentions: dict[int, set[str]] = defaultdict(set)
        for shift in range(4):  # four bytes that may be the distance to a target, at every place
            count = (size - shift) // 4
            distance = np.frombuffer(self.bytes, "<i4", count, offset + shift).astype(np.int64)
            place = shift + 4 * np.arange(count)
            target = address + place + 4 + distance
            for known, is_code in ((self.functions, True), (strings, False)):
                at = np.searchsorted(known, target)
                at[at == len(known)] = 0
                hits = np.nonzero(known[at] == target)[0]
                if is_code:  # call, jmp, or lea relative to the instruction
                    before, earlier = text[place[hits] - 1], text[place[hits] - 2]
                    hits = hits[
                        (before == 0xE8) | (before == 0xE9) | ((earlier == 0x8D) & ((before & 0xC7) == 5))
                    ]
                inside = self.functions[np.searchsorted(self.functions, address + place[hits], "right") - 1]
                for function, found in zip(inside.tolist(), target[hits].tolist(), strict=True):
                    if is_code:
                        calls[function].add(found)
                    else:
                        mentions[function].add(self.names[found])
        return calls, mentions

    def _relocations(self) -> tuple[dict[int, int], dict[int, list[int]]]:
        """What pointers in the data lead to, and by which places each address is held."""
        _, offset, size = self.sections[".rela.dyn"]
        entries = np.frombuffer(self.bytes, "<u8", size // 8, offset).reshape(-1, 3)
        _, symbols, symbol_bytes = self.sections[".dynsym"]
        values = np.frombuffer(self.bytes, "<u8", symbol_bytes // 8, symbols).reshape(-1, 3)[:, 1]
        pointers: dict[int, int] = {}
        holders: dict[int, list[int]] = defaultdict(list)
        for place, info, addend in entries.tolist():
            kind = info & 0xFFFFFFFF
            base = int(values[info >> 32]) if kind == _SYMBOL else 0
            if kind == _RELATIVE or (kind == _SYMBOL and base):
                pointers[place] = base + addend
                holders[base + addend].append(place)
        return pointers, holders

    def operators(self) -> dict[str, set[str]]:
        """MindSpore's operators with an Ascend class -> the aclnn names that they lead to."""
        known = set(self.functions.tolist())
        found = {}
        for address, name in self._strings(rb"N9mindspore6kernel7pyboost\d+\w+AscendE").items():
            short = re.sub(r"^N9mindspore6kernel7pyboost\d+", "", name)[: -len("AscendE")]
            methods = set()
            for holder in self.holders[address]:  # the type information holds its name behind a pointer
                for place in self.holders[holder - 8]:  # the virtual table holds the type information
                    entry = place + 8
                    while self.pointers.get(entry) in known:
                        methods.add(self.pointers[entry])
                        entry += 8
            found[short] = {name for function in self._reached(methods) for name in self.mentions[function]}
        return found

    def _reached(self, begin: set[int]) -> set[int]:
        seen, left = set(begin), list(begin)
        while left:
            for function in self.calls.get(left.pop(), ()):
                if function not in seen:
                    seen.add(function)
                    left.append(function)
        return seen


def declared(known: set[str]) -> set[str]:
    """The operators of MindSpore that the declarations name."""
    names = set(json.loads((ROOT / "kernels_ascend/operators.json").read_text(encoding="utf-8")))
    for folder in ("msadapter", "kernels_ascend"):
        for path in (ROOT / folder).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            names |= set(re.findall(r"\braw\.([A-Z]\w*)", text)) | set(re.findall(r'"([A-Z]\w+)"', text))
    for path in (ROOT / "msadapter/csrc/dispatch").rglob("*.cpp"):
        names |= set(re.findall(r'"([A-Z]\w+)"', path.read_text(encoding="utf-8")))
    return names & known


def simulated(library: Path) -> set[str]:
    """The aclnn names that a built simulator has."""
    handle = ctypes.CDLL(str(library))
    handle.SimulatedNpuOperators.restype = ctypes.c_char_p
    return {line.split("\t")[0] for line in handle.SimulatedNpuOperators().decode().splitlines()}


def main(arguments: list[str]) -> int:
    """Print the list. The first argument is the library of the simulator."""
    spec = importlib.util.find_spec("mindspore")
    if spec is None or spec.origin is None:
        print("mindspore is not installed", file=sys.stderr)
        return 1
    operators = Plugin(Path(spec.origin).parent / _PLUGIN).operators()
    askers: dict[str, set[str]] = defaultdict(set)
    for operator in declared(set(operators)):
        for name in operators[operator]:
            askers[name].add(operator)
    there = simulated(Path(arguments[0]))
    for name in sorted(askers):
        asked = f"  {' '.join(sorted(askers[name]))}" if "-v" in arguments else ""
        print(f"{'simulated' if name in there else 'MISSING  '}  {name}{asked}")
    present = len(set(askers) & there)
    print(
        f"{len(askers)} names are reached, {present} of them are simulated; {len(there)} are simulated altogether"
    )
    return 0
