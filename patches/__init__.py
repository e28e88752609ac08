"""Manages changes to upstream sources. Each change has a reason, and all are applied to a copy, or none.

    python -m patches list
    python -m patches plan | apply | verify | revert | diff | new | bisect | report ...

There is one folder per upstream and one file per rule. docs/patches.md explains how to write a rule.
"""

from .manager import (
    MANIFEST,
    Patch,
    PatchError,
    Upstream,
    added,
    apply,
    discover,
    plan,
    revert,
    runtime_rules,
    upstreams,
    verify,
)

__all__ = [
    "MANIFEST",
    "Patch",
    "PatchError",
    "Upstream",
    "added",
    "apply",
    "discover",
    "plan",
    "revert",
    "runtime_rules",
    "upstreams",
    "verify",
]
