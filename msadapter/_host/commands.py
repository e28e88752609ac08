"""`python -m msadapter doctor` and `build`: they run without the C++ layer, which may be absent or damaged."""

from __future__ import annotations

import sys


def run_without_kernels() -> None:
    """End the process with the command's exit code if the command line asks for one of the two; otherwise do nothing.

    `python -m msadapter` imports the package before its `__main__`, and that import loads the C++ layer. While it runs,
    sys.argv is ["-m", words...].
    """
    if sys.argv[:1] != ["-m"] or sys.argv[1:2] not in (["doctor"], ["build"]):
        return
    before = sys.orig_argv[: len(sys.orig_argv) - len(sys.argv) + 1]
    if before[-2:] != ["-m", "msadapter"] and before[-1:] != ["-mmsadapter"]:
        return
    from . import doctor

    sys.exit(doctor.main(sys.argv[2:]) if sys.argv[1] == "doctor" else doctor.build())
