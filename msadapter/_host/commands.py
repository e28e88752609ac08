"""What the command line decides before the C++ layer is loaded.

`python -m msadapter doctor`, `build`, `prebuild`, `enable` and `disable` run without that layer, which may not be built. MindSpore
may be absent or damaged for them, apart from the two builds. The simulated NPU has to be in place before MindSpore is loaded.
"""

from __future__ import annotations

import os
import sys

SIMULATED_NPU = "--simulated-npu"


def run_without_kernels() -> None:
    """Run one of these five commands and end the process with its exit code; do nothing for other command lines.

    `python -m msadapter` imports the package before its `__main__`, and that import loads the C++ layer. During the import,
    sys.argv is ["-m", words...].
    """
    word = sys.argv[1] if len(sys.argv) > 1 else ""
    if word not in ("doctor", "build", "prebuild", "enable", "disable") or not _is_our_command():
        return
    if word in ("enable", "disable"):
        from . import enable  # for this command line only

        sys.exit(enable.main(word, sys.argv[2:]))
    if word == "prebuild":
        from . import prebuild  # for this command line only

        sys.exit(prebuild.main(sys.argv[2:]))
    from . import doctor  # for this command line only

    sys.exit(doctor.main(sys.argv[2:]) if word == "doctor" else doctor.build())


def _is_our_command() -> bool:
    """Whether this process was started as `python -m msadapter`, whose `__main__` has not run yet."""
    before = sys.orig_argv[: len(sys.orig_argv) - len(sys.argv) + 1]
    return sys.argv[:1] == ["-m"] and (before[-2:] == ["-m", "msadapter"] or before[-1:] == ["-mmsadapter"])


def enable_simulated_npu() -> None:
    """Put the simulated NPU in place if MSADAPTER_SIMULATED_NPU=1 or `python -m msadapter --simulated-npu` asks for it.

    Raises:
        BuildError: it cannot be built.
        RuntimeError: MindSpore is loaded already, or this machine has an Ascend card.
        ValueError: the variable has another value than 0 or 1.
    """
    if sys.argv[1:2] == [SIMULATED_NPU] and _is_our_command():
        os.environ["MSADAPTER_SIMULATED_NPU"] = "1"
    if os.environ.get("MSADAPTER_SIMULATED_NPU"):
        from . import simulator  # for this choice only

        if simulator.is_asked_for():
            os.environ.setdefault("MSADAPTER_DEVICE", "npu")
            simulator.enable()
