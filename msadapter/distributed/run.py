"""torchrun for one process: the environment of a job of one, then the script."""

import argparse
import os
import runpy
import sys
import uuid


def get_args_parser() -> argparse.ArgumentParser:
    """torchrun's options; those that concern several processes must say one."""
    parser = argparse.ArgumentParser(prog="torchrun", description="Run a script as a distributed job")
    for name, default in (
        ("nnodes", "1"),
        ("nproc-per-node", "1"),
        ("node-rank", "0"),
        ("rdzv-backend", "static"),
        ("rdzv-endpoint", ""),
        ("rdzv-id", "none"),
        ("rdzv-conf", ""),
        ("max-restarts", "0"),
        ("monitor-interval", "0.1"),
        ("start-method", "spawn"),
        ("role", "default"),
        ("log-dir", None),
        ("redirects", "0"),
        ("tee", "0"),
        ("local-ranks-filter", ""),
        ("master-addr", "127.0.0.1"),
        ("master-port", "29500"),
        ("local-addr", None),
    ):
        parser.add_argument(f"--{name}", f"--{name.replace('-', '_')}", default=default)
    parser.add_argument("--standalone", action="store_true")
    parser.add_argument("-m", "--module", action="store_true", help="the script is a module")
    parser.add_argument("--no-python", "--no_python", action="store_true")
    parser.add_argument("--run-path", "--run_path", action="store_true")
    parser.add_argument("training_script")
    parser.add_argument("training_script_args", nargs=argparse.REMAINDER)
    return parser


def _count(text: str, name: str) -> int:
    first = text.partition(":")[0]
    if first in ("cpu", "gpu", "auto"):
        return 1
    if not first.isdigit():
        raise ValueError(f"Unsupported {name} value: {text}")
    return int(first)


def parse_args(args=None) -> argparse.Namespace:
    """The parsed options."""
    return get_args_parser().parse_args(args)


def run(args) -> None:
    """Set the environment and run the script in this process."""
    if _count(args.nproc_per_node, "nproc_per_node") != 1 or _count(args.nnodes, "nnodes") != 1:
        raise NotImplementedError(
            "torch.distributed.run: more than one process is not supported (docs/coverage.md)"
        )
    if args.no_python:
        raise NotImplementedError("torch.distributed.run: --no-python is not supported (docs/coverage.md)")
    os.environ.update(
        {
            "RANK": "0",
            "LOCAL_RANK": "0",
            "GROUP_RANK": "0",
            "ROLE_RANK": "0",
            "WORLD_SIZE": "1",
            "LOCAL_WORLD_SIZE": "1",
            "GROUP_WORLD_SIZE": "1",
            "ROLE_WORLD_SIZE": "1",
            "ROLE_NAME": args.role,
            "MASTER_ADDR": args.master_addr,
            "MASTER_PORT": str(args.master_port),
            "TORCHELASTIC_RESTART_COUNT": "0",
            "TORCHELASTIC_MAX_RESTARTS": str(args.max_restarts),
            "TORCHELASTIC_RUN_ID": args.rdzv_id if args.rdzv_id != "none" else str(uuid.uuid4()),
        }
    )
    sys.argv = [args.training_script, *args.training_script_args]
    if args.module:
        sys.path.insert(0, os.getcwd())
        runpy.run_module(args.training_script, run_name="__main__", alter_sys=True)
        return
    if not os.path.isfile(args.training_script):
        raise SystemExit(f"torchrun: can't open file {args.training_script!r}")
    sys.path.insert(0, os.path.dirname(os.path.abspath(args.training_script)))
    runpy.run_path(args.training_script, run_name="__main__")


def main(args=None) -> None:
    """The entry point `torchrun`."""
    run(parse_args(args))


if __name__ == "__main__":
    main()
