"""Starts a function or a command on several ranks, and returns what each rank has returned."""

from __future__ import annotations

import functools
import os
import sys
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..._errors import unsupported
from ..agent import Job, RankFailed, Stopped, timeouts_of
from ..elastic import metrics
from ..elastic.multiprocessing import DefaultLogsSpecs, LogsSpecs, SignalException
from ..elastic.multiprocessing.errors import ChildFailedError, ProcessFailure
from ..elastic.rendezvous import RendezvousParameters
from ..elastic.rendezvous.utils import parse_rendezvous_endpoint
from ..meeting import DEFAULT_PORT
from .workers import WorkersAgent

__all__ = ["LaunchConfig", "elastic_launch", "launch_agent"]

_refused = functools.partial(unsupported, "torch.distributed.launcher.LaunchConfig")


@dataclass
class LaunchConfig:
    """The settings of a job, for the launcher of one machine.

    Attributes:
        min_nodes, max_nodes: how many machines the job needs, and how many it takes.
        nproc_per_node: ranks on this machine.
        logs_specs: which output goes to files; by default none.
        run_id: name of the job, the same on all machines; by default a random one.
        role: name of the ranks in front of lines of their output.
        rdzv_backend: ``"static"`` or ``"c10d"``. The default of PyTorch, ``"etcd"``, is refused.
        rdzv_endpoint: ``"host:port"`` at which the launchers meet. Port 0 is a free port, for one machine.
        rdzv_configs: ``rank``, the number of this machine with the static backend; ``timeout``, ``join_timeout``,
            ``last_call_timeout`` and ``keep_alive_timeout`` in seconds.
        rdzv_timeout: old form of the timeout in `rdzv_configs`.
        max_restarts: how often all ranks start again after a failure.
        monitor_interval: seconds between two looks at the ranks.
        start_method: how the processes of a function start: ``"spawn"``, ``"fork"`` or ``"forkserver"``.
        log_line_prefix_template: text in front of shown lines of files, with ``${role_name}``, ``${rank}`` and ``${local_rank}``.
        metrics_cfg: for `torch.distributed.elastic.metrics`.
        local_addr: accepted without effect, because a rank has the address of its host.
        signals_to_handle: put into TORCHELASTIC_SIGNALS_TO_HANDLE. SIGTERM, SIGINT and SIGHUP end the job.
        duplicate_stdout_filters, duplicate_stderr_filters: lines of files that contain one of these texts are also written to
            one file for all ranks.
        shutdown_timeout: seconds between SIGTERM and SIGKILL for ranks when the launcher is told to end; by default
            TORCH_ELASTIC_SHUTDOWN_TIMEOUT or 30.
        event_log_handler, numa_options, virtual_local_rank: only their default values are supported.

    Raises:
        ValueError: `shutdown_timeout` is negative.
    """

    min_nodes: int
    max_nodes: int
    nproc_per_node: int
    logs_specs: LogsSpecs | None = None
    run_id: str = ""
    role: str = "default_role"
    rdzv_endpoint: str = ""
    rdzv_backend: str = "etcd"
    rdzv_configs: dict[str, Any] = field(default_factory=dict)
    rdzv_timeout: int = -1
    max_restarts: int = 3
    monitor_interval: float = 0.1
    start_method: str = "spawn"
    log_line_prefix_template: str | None = None
    metrics_cfg: dict[str, str] = field(default_factory=dict)
    local_addr: str | None = None
    event_log_handler: str = "null"
    numa_options: Any = None
    signals_to_handle: str = "SIGTERM,SIGINT,SIGHUP,SIGQUIT"
    duplicate_stdout_filters: list[str] | None = None
    duplicate_stderr_filters: list[str] | None = None
    virtual_local_rank: bool = False
    shutdown_timeout: int | None = None

    def __post_init__(self):
        if self.rdzv_timeout != -1:
            self.rdzv_configs["timeout"] = self.rdzv_timeout
        self.rdzv_configs.setdefault("timeout", 900)
        if self.logs_specs is None:
            self.logs_specs = DefaultLogsSpecs()
        if self.shutdown_timeout is None:
            self.shutdown_timeout = int(os.environ.get("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "30"))
        if self.shutdown_timeout < 0:
            raise ValueError(f"shutdown_timeout must be non-negative, got {self.shutdown_timeout}")


class elastic_launch:
    """Calls a function, or runs a command, on all ranks: ``elastic_launch(config, function)(*args)``.

    Its arguments have no names. It returns {rank: result} of the ranks of this machine; a command's results are None.
    """

    def __init__(self, config: LaunchConfig, entrypoint: Callable | str | None, health_check_server=None):
        self._config, self._entrypoint, self._server = config, entrypoint, health_check_server

    def __call__(self, *args):
        return launch_agent(self._config, self._entrypoint, list(args), self._server)


def launch_agent(
    config: LaunchConfig, entrypoint: Callable | str | None, args: list[Any], health_check_server=None
) -> dict[int, Any]:
    """Start `entrypoint`, a function or a command, on the ranks of this machine, and wait until all ranks have ended.

    ``${local_rank}`` in an argument that is a text stands for the local rank. The results of a function must be picklable, and
    with the start methods other than ``fork`` so must the function and its arguments.

    Returns:
        {rank: result} of the ranks of this machine. The result of a command is None.

    Raises:
        ChildFailedError: a rank failed, and no restarts were left. It has the traceback of a function, and of a program
            whose entry point `torch.distributed.elastic.multiprocessing.errors.record` wraps.
        SignalException: a signal told the launcher to end.
        RuntimeError: the job could not start, or a launcher on another machine has ended it.
        ValueError: settings of the rendezvous are missing or contradict each other.
        NotImplementedError: a setting that is not supported.
    """
    if health_check_server is not None:
        raise unsupported("torch.distributed.launcher.launch_agent", "health_check_server is not supported")
    if not callable(entrypoint) and not isinstance(entrypoint, str):
        raise TypeError(f"the entrypoint must be a function or a command, not {type(entrypoint).__name__}")
    config.run_id = config.run_id or str(uuid.uuid4().int)
    name = _name(entrypoint, args)
    job = _job(config, name)
    os.environ["TORCHELASTIC_SIGNALS_TO_HANDLE"] = config.signals_to_handle
    metrics.initialize_metrics(metrics.MetricsConfig(config.metrics_cfg))
    with WorkersAgent(job, config, entrypoint, args) as agent:
        if agent.run() == 0:
            return agent.results()
        if isinstance(agent.reason, RankFailed):
            raise ChildFailedError(name, _failures(agent))
    if isinstance(agent.reason, Stopped):
        number = agent.reason.signal
        raise SignalException(f"Process {os.getpid()} got signal: {number}", sigval=number)
    raise agent.reason


def _failures(agent: WorkersAgent) -> dict[int, ProcessFailure]:
    files = agent.dest.error_files
    return {
        rank.number: ProcessFailure(rank.local, rank.process.pid, rank.process.returncode, files[rank.local])
        for rank in agent.reason.ranks
    }


def _name(entrypoint: Callable | str, args: list[Any]) -> str:
    """The name of a job in its report: the function, the script that Python runs, or the command."""
    if callable(entrypoint):
        return getattr(entrypoint, "__name__", type(entrypoint).__name__)
    if entrypoint == sys.executable:
        return next((arg for arg in args if not arg.startswith("-")), "")
    return entrypoint


def _job(config: LaunchConfig, name: str) -> Job:
    """The settings of the agent. `name` stands for the command in its messages."""
    for setting, default in (
        ("event_log_handler", "null"),
        ("numa_options", None),
        ("virtual_local_rank", False),
    ):
        if getattr(config, setting) != default:
            raise _refused(f"{setting}={getattr(config, setting)!r} is not supported")
    parameters = RendezvousParameters(
        config.rdzv_backend,
        config.rdzv_endpoint,
        config.run_id,
        config.min_nodes,
        config.max_nodes,
        config.local_addr,
        **config.rdzv_configs,
    )
    if parameters.backend not in ("static", "c10d"):
        raise _refused(
            f"rdzv_backend={parameters.backend!r} is not supported; static and c10d need no server"
        )
    static = parameters.backend == "static"
    host, port = _address(parameters, static)
    settings = parameters.config
    return Job(
        command=[name],
        local_size=config.nproc_per_node,
        nodes=config.max_nodes,
        least_nodes=config.min_nodes,
        node_rank=_node_rank(parameters) if static else 0 if config.max_nodes == 1 else None,
        host=host,
        port=port,
        run_id=config.run_id,
        role=config.role,
        max_restarts=config.max_restarts,
        interval=config.monitor_interval,
        **timeouts_of(settings, settings["timeout"] if static else Job.join_timeout),
        goodbye=float(config.shutdown_timeout),
    )


def _address(parameters: RendezvousParameters, static: bool) -> tuple[str, int]:
    """The host and port of the endpoint. The static backend needs both."""
    endpoint = parameters.endpoint.strip()
    if static and not endpoint:
        raise ValueError("Endpoint is missing in endpoint. Try to add --master-addr and --master-port")
    free = 0 if parameters.max_nodes == 1 else DEFAULT_PORT
    host, port = parse_rendezvous_endpoint(endpoint, default_port=-1 if static else free)
    if port == -1:
        raise ValueError(f"port is missing in endpoint: {endpoint}. Try to specify --master-port")
    return host, port


def _node_rank(parameters: RendezvousParameters) -> int:
    rank = parameters.get_as_int("rank")
    if rank is None:
        raise ValueError("rank is absent in RendezvousParameters.Try add --node-rank to the cmd request")
    return rank
