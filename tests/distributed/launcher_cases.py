"""torch.distributed.launcher, the streams of its workers, and arguments with defaults from the environment."""

import argparse
import contextlib
import dataclasses
import io
import os
import pathlib
import sys
import tempfile
from unittest import mock

from tests.distributed.elastic_modules import elastic, outcome
from tests.golden.answers import refusal


# -- streams and their files -------------------------------------------------------------------------------------
def streams_from_texts(torch):
    streams = elastic("multiprocessing").Std
    texts = ("0", "1", "2", "3", "0:3", "0:1,1:2,3:0", "4", "", "3 ", "0:4", "0:1,", "10:1", "a", "0:1;1:2")
    return [outcome(_plain, streams.from_str, text) for text in texts]


def _plain(read, text):
    found = read(text)
    return {rank: int(one) for rank, one in found.items()} if isinstance(found, dict) else int(found)


def streams_of_all_ranks(torch):
    module = elastic("multiprocessing")
    streams = module.Std
    given = (streams.NONE, streams.ALL, {0: streams.OUT}, {1: streams.ERR, 5: streams.ALL}, {})
    return [{rank: int(one) for rank, one in module.to_map(one, 3).items()} for one in given]


def _files(specs, size=3, **variables):
    """The paths of three ranks below the folder of the logs, without the random name of the job."""
    environments = {rank: dict(variables) for rank in range(size)}
    found = dataclasses.asdict(specs.reify(environments))

    def short(path):
        if not path.startswith(specs.root_log_dir + os.sep):
            return path
        job, *rest = pathlib.Path(path).relative_to(specs.root_log_dir).parts
        return "/".join([job[: -len("_12345678")], *rest])

    paths = {
        name: {rank: short(path) for rank, path in of.items()} if isinstance(of, dict) else short(of)
        for name, of in found.items()
    }
    folders = [all(os.path.isdir(os.path.dirname(path)) for path in found["error_files"].values())]
    variables = [short(one["TORCHELASTIC_ERROR_FILE"]) for one in environments.values()]
    return [paths, folders, variables]


def files_of_streams(torch):
    module = elastic("multiprocessing")
    streams = module.Std
    options = (
        {},
        {"redirects": streams.OUT},
        {"tee": streams.ALL},
        {"redirects": {0: streams.ERR, 2: streams.ALL}, "tee": {1: streams.OUT}},
        {"redirects": streams.ERR, "tee": {0: streams.OUT, 2: streams.ALL}, "local_ranks_filter": {0, 1}},
        {"local_ranks_filter": {1}},
        {"local_ranks_filter": set()},
    )
    with tempfile.TemporaryDirectory() as folder:
        made = [module.DefaultLogsSpecs(os.path.join(folder, "new"), **option) for option in options]
        answers = [_files(specs, TORCHELASTIC_RUN_ID="job", TORCHELASTIC_RESTART_COUNT="2") for specs in made]
        return [answers, _files(made[0], 1), _files(made[0], 1, TORCHELASTIC_RESTART_COUNT="1")]


def files_of_streams_nowhere(torch):
    module = elastic("multiprocessing")
    specs = module.DefaultLogsSpecs(os.devnull, redirects=module.Std.ALL, tee=module.Std.OUT)
    return [_files(specs, 2), specs.root_log_dir]


def logs_in_a_file(torch):
    with tempfile.NamedTemporaryFile() as file:
        error = refusal(elastic("multiprocessing").DefaultLogsSpecs, file.name)
        return [error[0], error[1].replace(file.name, "FILE")]


def equal_settings_of_logs(torch):
    module = elastic("multiprocessing")
    make, out = module.DefaultLogsSpecs, module.Std.OUT
    one = make(os.devnull, out, local_ranks_filter={1})
    return [
        one == make(os.devnull, out, local_ranks_filter={1}),
        one == make(os.devnull, out),
        one == 3,
        repr(one),
        refusal(hash, one)[0],
    ]


def the_exception_of_a_signal(torch):
    error = elastic("multiprocessing").SignalException("text", 15)
    return [str(error), error.sigval]


# -- settings ------------------------------------------------------------------------------------------------------
def _launcher():
    import torch.distributed.launcher as launcher

    return launcher


def settings_by_default(torch):
    with mock.patch.dict(os.environ):
        os.environ.pop("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", None)
        found = dataclasses.asdict(_launcher().LaunchConfig(1, 2, 3))
    return {name: value for name, value in found.items() if name != "logs_specs"}


def timeouts(torch):
    make = _launcher().LaunchConfig
    with mock.patch.dict(os.environ, {"TORCH_ELASTIC_SHUTDOWN_TIMEOUT": "7"}):
        return [
            make(1, 1, 1, rdzv_timeout=5).rdzv_configs,
            make(1, 1, 1, rdzv_configs={"timeout": 6, "a": 1}).rdzv_configs,
            make(1, 1, 1, rdzv_configs={"timeout": 6}, rdzv_timeout=8).rdzv_configs,
            make(1, 1, 1).shutdown_timeout,
            make(1, 1, 1, shutdown_timeout=0).shutdown_timeout,
            refusal(make, 1, 1, 1, shutdown_timeout=-1),
        ]


def endpoints_that_cannot_be(torch):
    launcher = _launcher()
    cases = (
        {"rdzv_endpoint": ""},
        {"rdzv_endpoint": "host"},
        {"rdzv_endpoint": "host:a"},
        {"rdzv_endpoint": "localhost:29511", "rdzv_configs": {}},
        {"rdzv_backend": "", "rdzv_endpoint": "localhost:1"},
        {"min_nodes": 0},
        {"min_nodes": 2},
    )
    common = {"rdzv_backend": "static", "rdzv_configs": {"rank": 0}, "nproc_per_node": 1}
    nodes = {"min_nodes": 1, "max_nodes": 1}
    return [
        refusal(launcher.launch_agent, launcher.LaunchConfig(**{**nodes, **common, **case}), print, [])
        for case in cases
    ]


# -- jobs ----------------------------------------------------------------------------------------------------------
def _launch(entrypoint, *args, **options):
    launcher = _launcher()
    config = {
        "min_nodes": 1,
        "max_nodes": 1,
        "nproc_per_node": 2,
        "rdzv_backend": "c10d",
        "rdzv_endpoint": "localhost:0",
        "max_restarts": 0,
        "start_method": "fork",
        "logs_specs": elastic("multiprocessing").DefaultLogsSpecs(os.devnull),
    }
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        return launcher.elastic_launch(launcher.LaunchConfig(**{**config, **options}), entrypoint)(*args)


def _variables(*names):
    return [os.environ[name] for name in names]


def _rank():
    return int(os.environ["RANK"])


def results_of_ranks(torch):
    names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "ROLE_NAME", "ROLE_RANK")
    more = (
        "ROLE_WORLD_SIZE",
        "TORCHELASTIC_RESTART_COUNT",
        "TORCHELASTIC_MAX_RESTARTS",
        "TORCHELASTIC_RUN_ID",
    )
    return _launch(_variables, *names, *more, run_id="job", role="r", max_restarts=4)


def the_local_rank_in_arguments(torch):
    return _launch(lambda *args: args, "a", "${local_rank}", "x${local_rank}y $other", 3, None)


def ranks_start_again(torch):
    def program():
        if os.environ["TORCHELASTIC_RESTART_COUNT"] != "2":
            sys.exit(3)
        return "done"

    return _launch(program, max_restarts=2)


def _failures(function, **options):
    error = elastic("multiprocessing.errors").ChildFailedError
    with tempfile.TemporaryDirectory() as folder:
        try:
            return _launch(
                function, logs_specs=elastic("multiprocessing").DefaultLogsSpecs(folder), **options
            )
        except error as failed:
            name, found = failed.name, failed.failures
    message = {rank: one.message for rank, one in found.items()}
    return [
        name,
        {rank: [one.local_rank, one.exitcode, one.signal_name()] for rank, one in found.items()},
        {rank: one["message"] if isinstance(one, dict) else one[:9] for rank, one in message.items()},
    ]


def _raises():
    if _rank():
        raise KeyError("wrong")


def _exits():
    if not _rank():
        sys.exit(7)


def _is_killed():
    if _rank():
        os.kill(os.getpid(), 9)


def failures_of_functions(torch):
    return [_failures(function) for function in (_raises, _exits, _is_killed)]


def commands(torch):
    with tempfile.TemporaryDirectory() as folder:
        program = f"import os, sys; open('{folder}/' + os.environ['RANK'] + sys.argv[1], 'w')"
        answer = _launch(sys.executable, "-c", program, "_${local_rank}")
        return [answer, sorted(os.listdir(folder))]


def a_command_that_fails(torch):
    error = elastic("multiprocessing.errors").ChildFailedError
    try:
        _launch(sys.executable, "-u", "-c", "import sys; sys.exit(5)", nproc_per_node=1)
    except error as failed:
        return [failed.name, {rank: one.exitcode for rank, one in failed.failures.items()}]


# -- arguments with defaults from the environment ------------------------------------------------------------------
def _parsed(words, variables, **options):
    from torch.distributed.argparse_util import check_env, env

    action = {"env": env, "check_env": check_env}[options.pop("action")]
    with mock.patch.dict(os.environ, variables), contextlib.redirect_stderr(io.StringIO()):
        try:
            parser = argparse.ArgumentParser()
            parser.add_argument("-f", "--foo-bar", action=action, **options)
            return parser.parse_args(words).foo_bar
        except (SystemExit, ValueError) as error:
            return [type(error).__name__, str(error)]


def arguments_from_the_environment(torch):
    variables = ({}, {"PET_FOO_BAR": "env"}, {"PET_FOO_BAR": ""})
    options = (
        {},
        {"default": "d"},
        {"required": True},
        {"default": 3, "type": int},
        {"choices": ["env", "x"]},
    )
    words = ([], ["-f", "x"], ["--foo-bar", "y"])
    return [
        [_parsed(list(word), given, action="env", **option) for word in words]
        for given in variables
        for option in options
    ]


def flags_from_the_environment(torch):
    variables = ({}, {"PET_FOO_BAR": "1"}, {"PET_FOO_BAR": "0"}, {"PET_FOO_BAR": "3"}, {"PET_FOO_BAR": "no"})
    return [
        [_parsed(list(word), given, action="check_env", **option) for word in ([], ["-f"])]
        for given in variables
        for option in ({}, {"default": True})
    ]
