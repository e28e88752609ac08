"""msrun: runs our launcher with the options of MindSpore's launcher (python -m torch.distributed.msrun).

Ranks get torchrun's variables and MindSpore's RANK_ID, RANK_SIZE and DEVICE_ID. Their output is written to worker_N.log.
No scheduler process is started, because the launchers' store replaces it. The launcher always waits for its ranks, so that
none keeps running.
"""

import argparse
import os
import sys

from .._errors import unsupported
from .agent import Agent, Job

_TRUTH = {"true": True, "false": False}


def _truth(text: str) -> bool:
    if text.lower() not in _TRUTH:
        raise argparse.ArgumentTypeError(f"must be True or False, but got {text!r}")
    return _TRUTH[text.lower()]


def get_args_parser() -> argparse.ArgumentParser:
    """msrun's options."""
    parser = argparse.ArgumentParser(
        prog="msrun", description="Run a script as a distributed job", allow_abbrev=False
    )
    for name, kind, default, text in (
        ("worker_num", int, 8, "ranks of the whole job"),
        ("local_worker_num", int, 8, "ranks on this machine"),
        ("master_addr", str, "127.0.0.1", "host at which the launchers meet"),
        ("master_port", int, 8118, "port at which they meet"),
        ("node_rank", int, -1, "this machine's place (-1: by arrival)"),
        ("log_dir", str, "", "folder of worker_N.log (the current one)"),
        ("worker_log_name", str, "worker_{rank}", "name of a rank's log, without .log; {rank} is its number"),
        (
            "join",
            _truth,
            False,
            "True: the ranks' output is shown too; the launcher waits for them in any case",
        ),
        ("tail_worker_log", str, "-1", "with --join=True: whose output is shown, ranks as 0,3 (-1: all)"),
        ("cluster_time_out", int, 600, "seconds for all machines to come (negative: no end)"),
        ("bind_core", _truth, False, "True: each rank runs on its share of the cores"),
        ("rank_table_file", str, "", "path that ranks get as RANK_TABLE_FILE"),
        ("bind_numa", _truth, False, "not supported"),
        ("sim_level", int, -1, "not supported"),
        ("sim_rank_id", int, -1, "not supported"),
    ):
        parser.add_argument(f"--{name}", type=kind, default=default, help=text)
    parser.add_argument("task_script")
    parser.add_argument("task_script_args", nargs=argparse.REMAINDER)
    return parser


def job_of(args) -> Job:
    """Converts the options to a Job. Raises NotImplementedError for options that only MindSpore's own launcher supports."""
    for name, off in (("bind_numa", False), ("sim_level", -1), ("sim_rank_id", -1)):
        if getattr(args, name) != off:
            raise unsupported("msrun", f"--{name} is not supported")
    nodes, rest = divmod(args.worker_num, max(args.local_worker_num, 1))
    if rest or not nodes:
        raise ValueError(
            f"--worker_num {args.worker_num} must be a multiple of --local_worker_num {args.local_worker_num}: "
            "every machine starts as many ranks"
        )
    local = range(args.local_worker_num)
    python = [sys.executable, "-u"] if args.task_script.endswith(".py") else []
    name = args.worker_log_name if "{rank}" in args.worker_log_name else args.worker_log_name + "_{rank}"
    environment = {"RANK_SIZE": args.worker_num} | (
        {"RANK_TABLE_FILE": args.rank_table_file} if args.rank_table_file else {}
    )
    return Job(
        command=[*python, args.task_script, *args.task_script_args],
        local_size=args.local_worker_num,
        nodes=nodes,
        least_nodes=nodes,
        node_rank=args.node_rank if args.node_rank >= 0 else (0 if nodes == 1 else None),
        host=args.master_addr,
        port=args.master_port,
        run_id="msrun",
        environment=environment,
        copied_names={"RANK_ID": "RANK", "DEVICE_ID": "LOCAL_RANK"},
        bind_cores=args.bind_core,
        log_dir=args.log_dir or ".",
        log_name=name + ".log",
        redirects=dict.fromkeys(local, 3),
        tee=dict.fromkeys(local, 3 if args.join else 0),
        tee_prefix=False,
        shown_ranks=None
        if args.tail_worker_log == "-1"
        else {int(rank) for rank in args.tail_worker_log.split(",")},
        join_timeout=float(args.cluster_time_out) if args.cluster_time_out >= 0 else 10 * 365 * 86400.0,
    )


def main(args=None) -> None:
    """The entry point `msrun`; SystemExit with a rank's exit code when the job fails."""
    parser = get_args_parser()
    parsed = parser.parse_args(args)
    if not os.path.exists(parsed.task_script):
        raise SystemExit(f"msrun: can't open file {parsed.task_script!r}")
    try:
        agent = Agent(job_of(parsed))
    except ValueError as err:
        parser.error(str(err))
    code = agent.run()
    if code:
        raise SystemExit(code)


if __name__ == "__main__":
    main()
