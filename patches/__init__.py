"""Changes to upstream sources: few, each with its reason, applied to a copy, all or none.

    python -m patches list
    python -m patches apply megatron_core SOURCE DESTINATION
    python -m patches verify DESTINATION

docs/patches.md tells how to write one. One folder per upstream, one rule per file.
"""

from .manager import MANIFEST, Patch, PatchError, Upstream, apply, discover, upstreams, verify

__all__ = ["MANIFEST", "Patch", "PatchError", "Upstream", "apply", "discover", "upstreams", "verify"]
