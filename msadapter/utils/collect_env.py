"""Collects the facts that a bug report needs."""

import platform
import sys
from importlib import metadata

from ..alias import TORCH_VERSION


def get_pretty_env_info() -> str:
    """Return the versions of all software that takes part, as text."""
    rows = [
        ("PyTorch interface", TORCH_VERSION),
        ("Python", sys.version.split()[0]),
        ("OS", platform.platform()),
    ]
    for package in ("mindspore", "numpy"):
        rows.append((package, metadata.version(package)))
    return "\n".join(f"{name}: {value}" for name, value in rows)


def main() -> None:
    """Print the facts."""
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
