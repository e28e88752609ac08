"""Where docs/troubleshooting.md explains an error: the address with which the message ends.

The toolkit has the same for its own errors (`megatron_ms/errors.py`), because its conversion runs before this
package can be imported.
"""

from __future__ import annotations

PAGE = "docs/troubleshooting.md"
ENTRIES = frozenset(
    {
        "another-build",
        "another-secret",
        "another-torch",
        "compiler",
        "damaged-kernels",
        "device-ordinal",
        "full-disk",
        "mindspore-version",
        "missing-ranks",
        "no-accelerator",
        "out-of-bounds",
        "simulator-too-late",
        "unsafe-cache",
    }
)


def see(entry: str) -> str:
    """Return the address of an entry of the page in parentheses, for the end of a message. KeyError if there is no such entry."""
    if entry not in ENTRIES:
        raise KeyError(entry)
    return f"({PAGE}#{entry})"
