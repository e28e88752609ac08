"""Changes to upstream sources: few, each with its reason, applied to a copy, all or none.

    python -m patches list
    python -m patches plan | apply | verify | revert | diff | new | bisect | report ...

docs/patches.md tells how to write a rule. One folder per upstream, one rule per file.
"""

from .manager import (
    MANIFEST,
    Patch,
    PatchError,
    Upstream,
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
    "apply",
    "discover",
    "plan",
    "revert",
    "runtime_rules",
    "upstreams",
    "verify",
]
