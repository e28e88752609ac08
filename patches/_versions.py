"""Reads the version from an upstream's files."""

from __future__ import annotations

import re
from collections.abc import Callable

from . import toml
from .rules import PatchError


def of_setup_py(package: str) -> Callable[[str], str]:
    """A function that reads `__version__ = '...'` from the text of the package's setup.py."""

    def read(text: str) -> str:
        named = re.search(
            rf"^__package_name(?:__)? = '{package}'|name=['\"]{package}['\"]", text, re.MULTILINE
        )
        version = re.search(r"^__version(?:__)? = ['\"]([^'\"]+)['\"]", text, re.MULTILINE)
        if not named or not version:
            raise PatchError(
                f"the version cannot be read: setup.py is not that of {package}, or states no version"
            )
        return version.group(1)

    return read


def of_pyproject(package: str) -> Callable[[str], str]:
    """A function that reads the version from the text of the package's pyproject.toml."""

    def read(text: str) -> str:
        try:
            project = toml.loads(text).get("project", {})
        except toml.TOMLDecodeError as error:
            raise PatchError(f"the version cannot be read: pyproject.toml is no TOML ({error})") from None
        if not isinstance(project, dict) or project.get("name") != package or not project.get("version"):
            raise PatchError(
                f"the version cannot be read: pyproject.toml is not that of {package}, or states no version"
            )
        return str(project["version"])

    return read
