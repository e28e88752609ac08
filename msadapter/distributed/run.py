"""torchrun: starts the ranks of a job (python -m torch.distributed.run)."""

import argparse
import os
import subprocess
import sys
import tempfile
import uuid

from .agent import Agent, Job, timeouts_of
from .argparse_util import check_env, env
from .meeting import DEFAULT_PORT
from .wire import checked_secret, secret_of_environment, secret_of_file


def get_args_parser() -> argparse.ArgumentParser:
    """torchrun's options."""
    parser = argparse.ArgumentParser(
        prog="torchrun", description="Run a script as a distributed job", allow_abbrev=False
    )
    for name, default, text in (
        ("nnodes", "1", "number of machines; with MIN:MAX machines may join and leave while the job runs"),
        ("nproc-per-node", "1", "number of ranks on this machine, or cpu, gpu or auto"),
        ("node-rank", None, "number of this machine, from 0; not needed with --rdzv-backend c10d"),
        (
            "rdzv-backend",
            "static",
            "static or c10d; in both cases the launchers of all machines meet through a TCPStore",
        ),
        ("rdzv-endpoint", "", "host:port at which the launchers of all machines meet"),
        ("rdzv-id", "none", "name of the job"),
        (
            "rdzv-conf",
            "",
            "key=value,... with the keys join_timeout, last_call_timeout (how long to wait for more machines than MIN) "
            "and keep_alive_timeout (after which a silent launcher counts as lost), all in seconds, and secret_file=PATH: "
            "a file with the job's secret, which must be the same for all launchers. secret=TEXT gives the secret "
            "itself, but other users of this machine can see it (docs/distributed.md)",
        ),
        ("max-restarts", "0", "how many times all ranks are started again after a failure"),
        ("monitor-interval", "0.1", "seconds between two checks of the ranks"),
        ("start-method", "spawn", "accepted without effect: every rank is a new process"),
        ("role", "default", "name that --tee writes before each line"),
        ("log-dir", None, "folder for the files with the output of the ranks"),
        (
            "redirects",
            "0",
            "which output goes to files: 0 none, 1 stdout, 2 stderr, 3 both; or local_rank:n,... for some ranks",
        ),
        ("tee", "0", "like --redirects, but the output is also shown, with the rank before each line"),
        ("local-ranks-filter", "", "the local ranks whose output is shown, separated by commas"),
        ("master-addr", "127.0.0.1", "host at which the launchers meet with --rdzv-backend static"),
        ("master-port", None, "port at which the launchers meet (default for one machine: a free port)"),
        ("local-addr", None, "accepted without effect: a rank has the address of its host"),
        ("logs-specs", None, "accepted: only the default value is supported"),
    ):
        parser.add_argument(
            f"--{name}", f"--{name.replace('-', '_')}", action=env, default=default, help=text
        )
    parser.add_argument("--standalone", action=check_env, help="run on this machine only, with a free port")
    parser.add_argument(
        "-m", "--module", action=check_env, help="the script is the name of a module, as in python -m"
    )
    parser.add_argument(
        "--no-python",
        "--no_python",
        action=check_env,
        help="the script is a program that runs without Python",
    )
    parser.add_argument(
        "--run-path", "--run_path", action=check_env, help="run the script with runpy.run_path"
    )
    parser.add_argument("training_script")
    parser.add_argument("training_script_args", nargs=argparse.REMAINDER)
    return parser


def parse_args(args=None) -> argparse.Namespace:
    """Parses the options. Environment variables such as PET_NNODES give defaults."""
    try:
        parser = get_args_parser()
    except ValueError as err:
        raise SystemExit(
            f"torchrun: a variable PET_... of an option without a value must be 0 or 1: {err}"
        ) from err
    return parser.parse_args(args)


def _local_size(text: str) -> int:
    if text.isdigit() and int(text) > 0:
        return int(text)
    if text in ("gpu", "auto"):
        # asked in a child process, because the agent does not import the framework
        code = "import msadapter.cuda as cuda; print(cuda.device_count() if cuda.is_available() else 0)"
        devices = int(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True).stdout)
        if text == "gpu" and not devices:
            raise ValueError("Cuda is not available.")
        return devices or os.cpu_count() or 1
    if text == "cpu":
        return os.cpu_count() or 1
    raise ValueError(f"Unsupported nproc_per_node value: {text}")


def _nodes(text: str) -> tuple[int, int]:
    """The (minimum, maximum) number of machines from '2' or '1:4'."""
    least, _, most = text.partition(":")
    bounds = int(least), int(most or least)
    if not 0 < bounds[0] <= bounds[1]:
        raise ValueError(
            f"--nnodes {text}: the minimum must be at least 1, and the maximum must not be less than the minimum"
        )
    return bounds


def _streams(text: str, local_size: int) -> dict:
    """Parses '3' or '0:1,1:2' to {local rank: streams}, where 1 is stdout, 2 is stderr and 3 is both."""
    if ":" not in text:
        return dict.fromkeys(range(local_size), int(text))
    return {int(rank): int(kind) for rank, kind in (part.split(":") for part in text.split(","))}


def _command(args) -> list:
    if args.no_python:
        return [args.training_script, *args.training_script_args]
    python = [os.environ.get("PYTHON_EXEC", sys.executable), "-u"]
    if args.run_path:
        code = "import runpy, sys; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
        python += ["-c", code]
    elif args.module:
        python.append("-m")
    return [*python, args.training_script, *args.training_script_args]


def _settings(text: str) -> dict:
    """Parses 'key=value,...'. A value may contain '='."""
    settings = {}
    for part in filter(None, text.split(",")):
        key, equals, value = part.partition("=")
        if not equals:
            # the part is not shown, because it may belong to a secret
            raise ValueError("--rdzv-conf: each part must be key=value; a value cannot contain a comma")
        settings[key.strip()] = value
    return settings


def _secret(settings: dict) -> bytes | None:
    """The job's secret from --rdzv-conf, otherwise from the environment. None if there is none."""
    if "secret" in settings and "secret_file" in settings:
        raise ValueError("--rdzv-conf: give either secret or secret_file")
    if "secret_file" in settings:
        return secret_of_file(settings["secret_file"])
    if "secret" in settings:
        return checked_secret(os.fsencode(settings["secret"]), "--rdzv-conf secret")
    return secret_of_environment()


def job_of(args) -> Job:
    """Converts the options to a Job. Raises ValueError for contradictory options."""
    least, nodes = (1, 1) if args.standalone else _nodes(args.nnodes)
    local_size = _local_size(args.nproc_per_node)
    host, port = args.master_addr, args.master_port
    if args.rdzv_endpoint and not args.standalone:
        host, _, port = args.rdzv_endpoint.partition(":")
    if nodes > 1 and not port:
        port = 29500 if args.rdzv_backend == "static" else DEFAULT_PORT
    node_rank = args.node_rank
    if least < nodes:
        node_rank = None  # the first launcher that arrives gets rank 0
    elif node_rank is None:
        node_rank = None if nodes > 1 and args.rdzv_backend != "static" else 0
    conf = _settings(args.rdzv_conf)
    redirects, tee = _streams(args.redirects, local_size), _streams(args.tee, local_size)
    log_dir = args.log_dir
    if log_dir is None and (any(redirects.values()) or any(tee.values())):
        log_dir = tempfile.mkdtemp(prefix="torchelastic_")
    return Job(
        command=_command(args),
        local_size=local_size,
        nodes=nodes,
        least_nodes=least,
        node_rank=None if node_rank is None else int(node_rank),
        host="127.0.0.1" if args.standalone else host,
        port=0 if args.standalone else int(port or 0),
        run_id=args.rdzv_id if args.rdzv_id != "none" or nodes > 1 else uuid.uuid4().hex[:12],
        role=args.role,
        max_restarts=int(args.max_restarts),
        interval=float(args.monitor_interval),
        log_dir=log_dir,
        redirects=redirects,
        tee=tee,
        **timeouts_of(conf),
        secret=_secret(conf),
        shown={int(r) for r in args.local_ranks_filter.split(",")} if args.local_ranks_filter else None,
    )


def run(args) -> None:
    """Runs the job of parsed options. Raises SystemExit with a rank's exit code if it fails."""
    if not args.no_python and not args.module and not os.path.exists(args.training_script):
        raise SystemExit(f"torchrun: can't open file {args.training_script!r}")
    try:
        job = job_of(args)
    except ValueError as err:
        raise SystemExit(f"torchrun: {err}") from err
    code = Agent(job).run()
    if code:
        raise SystemExit(code)


def main(args=None) -> None:
    """The entry point `torchrun`."""
    run(parse_args(args))


if __name__ == "__main__":
    main()
