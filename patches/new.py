"""Writes the template of a rule, with the fingerprint and the source of the code that it will change."""

from __future__ import annotations

import hashlib
import json
import keyword
import re
from pathlib import Path

from .manager import upstreams
from .rules import PatchError, Upstream, fingerprint, source_of
from .tree import read_target

_TEMPLATE = '''"""Say in one line what this rule changes."""

from ..edits import replace
from ..manager import Patch

EXPECTED = """\\
{expected}"""

PATCH = Patch(
    id="{id}",
    target={target},
    symbol={symbol},
    reason="TODO: what fails, and why it cannot be answered from below",
    reason_class="not yet",
    until="TODO: what in the adapter would remove this rule",
    since={version},
    before="{before}",
    fingerprints=("{sha}",),
    expected=EXPECTED,
    edit=replace("TODO: the old fragment", "TODO: the new one"),
    example=("TODO: source before", "TODO: source after"),
    untouched="TODO: source in which the edit finds nothing",
)
'''


def new_rule(upstream: Upstream, source: Path, target: str, symbol: str, name: str) -> Path:
    """Writes patches/<upstream>/<name>.py, which the author must complete, and returns its path.

    Raises:
        PatchError: the name is not a module name or exists already, or the target or symbol does not exist.
    """
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        raise PatchError(f"the rule's name {name!r} must be a module name in lower case")
    if upstream.name not in upstreams():
        raise PatchError(f"there is no upstream {upstream.name!r}; known: {', '.join(upstreams())}")
    path = Path(__file__).parent / upstream.name / f"{name}.py"
    if path.exists():
        raise PatchError(f"{path} exists already; choose another name for the rule")
    version = upstream.version_of(source)
    text, raw = read_target(target, source, name)
    expected = source_of(symbol, text, target) if symbol else ""
    sha = fingerprint(expected) if symbol else hashlib.sha256(raw).hexdigest()
    escaped = expected.replace("\r\n", "\n").replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    content = _TEMPLATE.format(
        expected=escaped,
        id=name.replace("_", "-"),
        target=json.dumps(target),
        symbol=json.dumps(symbol),
        version=json.dumps(version),
        before=upstream.before,
        sha=sha,
    )
    path.write_text(content, encoding="utf-8")
    return path
