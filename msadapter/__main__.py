"""python -m msadapter: run a script whose torch is msadapter, or check the installation.

    python -m msadapter script.py args...     run it (also: -m module args..., -c code args...)
    python -m msadapter run script.py ...     the same, for a script that is called doctor or build
    python -m msadapter --simulated-npu ...   any of these on a SIMULATED NPU (docs/simulated_npu.md)
    python -m msadapter doctor                print versions, device, compiler, kernels, and how to repair
    problems
    python -m msadapter build                 build the CPU kernels now (otherwise this happens at first use)
    python -m msadapter prebuild FOLDER       compile the libraries of a wheel with kernels (docs/howto_platform.md)
    python -m msadapter enable                in this virtual environment, import torch always gives msadapter
    python -m msadapter disable               undo that

The accelerator is called cuda, unless MSADAPTER_DEVICE is npu or cpu. With cpu, torch.cuda.is_available() is
False.
"""

import sys

from ._host.commands import SIMULATED_NPU


def main(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help"):
        print(__doc__.strip())
        return 0 if arguments else 2
    if arguments[0] == SIMULATED_NPU:  # the import of the package has put it in place
        arguments = arguments[1:]
        if not arguments:
            print(f"python -m msadapter {SIMULATED_NPU}: which script?", file=sys.stderr)
            return 2
    word, rest = arguments[0], arguments[1:]
    if word == "doctor":
        from ._host.doctor import main as doctor  # one command's needs alone

        return doctor(rest)
    if word == "build":
        from ._host.doctor import build  # one command's needs alone

        return build()
    if word == "prebuild":
        from ._host.prebuild import main as prebuild  # one command's needs alone

        return prebuild(rest)
    if word in ("enable", "disable"):
        from ._host.enable import main as enable  # one command's needs alone

        return enable(word, rest)
    if word == "run":
        if not rest:
            print("python -m msadapter run: which script?", file=sys.stderr)
            return 2
        arguments = rest
    from ._host.launcher import run  # one command's needs alone

    return run(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
