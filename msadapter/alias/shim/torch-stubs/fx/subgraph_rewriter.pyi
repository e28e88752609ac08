# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from dataclasses import dataclass as _dataclass
from typing import NamedTuple as _NamedTuple

class Match(_NamedTuple):
    anchor: _Any
    nodes_map: _Any
@_dataclass
class ReplacedPatterns:
    anchor: _Any
    nodes_map: _Any
    replacements: _Any
    def __eq__(self, other) -> _Any: ...
    def __init__(self, anchor, nodes_map, replacements) -> None: ...
    def __repr__(self) -> _Any: ...
def replace_pattern(gm, pattern, replacement) -> _Any: ...
def replace_pattern_with_filters(gm, pattern, replacement=..., match_filters=..., ignore_literals=..., replacement_callback=..., node_name_match=...) -> _Any: ...
