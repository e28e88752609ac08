"""Megatron Core, from the wheel `megatron-core` or a Megatron-LM checkout."""

import re

from ..manager import PatchError, Upstream


def _version(package_info: str) -> str:
    found = [
        re.search(rf"^{part} = (\d+)$", package_info, re.MULTILINE) for part in ("MAJOR", "MINOR", "PATCH")
    ]
    if not all(found):
        raise PatchError("megatron/core/package_info.py has no MAJOR, MINOR and PATCH")
    return ".".join(match.group(1) for match in found if match)


UPSTREAM = Upstream(
    name="megatron_core",
    version_file="megatron/core/package_info.py",
    read_version=_version,
    since="0.12.0",
    before="0.20.0",
    newer=True,
)
