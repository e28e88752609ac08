"""Reads TOML: `loads` and `TOMLDecodeError`, as in tomllib, which Python has from 3.11 on.

For Python 3.10 they are those of tomli. The converter runs before any package is installed. It takes the copy of tomli in
pip then, which Python brings along to fill new environments.
"""

from __future__ import annotations

import sys

if sys.version_info >= (3, 11):
    from tomllib import TOMLDecodeError, loads
else:
    try:
        from tomli import TOMLDecodeError, loads
    except ImportError:
        import ensurepip
        import sysconfig
        from pathlib import Path

        # Debian keeps these wheels in a folder of its own.
        bundled = sysconfig.get_config_var("WHEEL_PKG_DIR") or Path(ensurepip.__file__).parent / "_bundled"
        sys.path += map(str, Path(bundled).glob("pip-*.whl"))
        from pip._vendor.tomli import TOMLDecodeError, loads

__all__ = ["TOMLDecodeError", "loads"]
