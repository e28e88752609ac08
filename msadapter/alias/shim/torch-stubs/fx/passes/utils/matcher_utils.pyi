# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from dataclasses import dataclass as _dataclass

@_dataclass
class InternalMatch:
    anchors: _Any
    name_node_map: _Any
    nodes_map: _Any
    placeholder_nodes: _Any
    returning_nodes: _Any
    def __eq__(self, other) -> _Any: ...
    def __init__(self, anchors, nodes_map=..., placeholder_nodes=..., returning_nodes=..., name_node_map=...) -> None: ...
    def __repr__(self) -> _Any: ...
class SubgraphMatcher:
    ignore_literals: _Any
    match_output: _Any
    match_placeholder: _Any
    pattern: _Any
    pattern_anchors: _Any
    pattern_placeholder_nodes: _Any
    pattern_returning_nodes: _Any
    remove_overlapping_matches: _Any
    def __init__(self, pattern, match_output=..., match_placeholder=..., remove_overlapping_matches=..., ignore_literals=...) -> None: ...
    def match(self, graph, node_name_match: _str = ...) -> _Any: ...
def validate_partition(partition) -> _bool: ...
