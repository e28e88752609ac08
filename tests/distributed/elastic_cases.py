"""torch.distributed.elastic: events, metrics, timers and helpers. Nothing here waits for a clock."""

import contextlib
import io
import itertools
import logging
import os
import queue
import signal
import socket
import tempfile
from unittest import mock

from tests.distributed.elastic_modules import elastic, outcome
from tests.golden.answers import refusal


# -- events --------------------------------------------------------------------------------------------------
def an_event_and_its_text(torch):
    events = elastic("events")
    event = events.Event(
        "made", events.EventSource.AGENT, 3, {"a": 1, "b": None, "c": "x", "d": 0.5, "e": True}
    )
    read = events.Event.deserialize(str(event))
    return [
        event.serialize(),
        read == event,
        read.source,
        events.Event.deserialize(event) is event,
        repr(read),
    ]


def an_event_by_default(torch):
    events = elastic("events")
    event = events.Event("made", events.EventSource["WORKER"])
    return [str(event), event.metadata, event.timestamp]


def an_event_of_an_unknown_source(torch):
    return elastic("events").Event.deserialize('{"name": "a", "source": "NOBODY"}')


def an_event_with_an_unknown_field(torch):
    return refusal(elastic("events").Event.deserialize, '{"name": "a", "source": "AGENT", "x": 1}')[0]


def an_event_of_a_rendezvous(torch):
    events = elastic("events")
    event = events.RdzvEvent(
        "made", "run", "said", "host", 3, events.NodeState.FAILED, rank=1, error_trace="trace"
    )
    read = events.RdzvEvent.deserialize(event.serialize())
    return [str(event), read == event, read.node_state, events.RdzvEvent.deserialize(event) is event]


def handlers_of_events(torch):
    find = elastic("events").get_logging_handler
    kinds = [type(find(name)).__name__ for name in ("console", "null", "dynamic_rendezvous")]
    return [*kinds, find() is find("null"), refusal(find, "nowhere")]


def a_logger_of_events(torch):
    events = elastic("events")
    with mock.patch.dict(os.environ, {"LOGLEVEL": "ERROR"}):
        logger = events._get_or_create_logger("console")
    again = events._get_or_create_logger("console") is logger
    return [logger.name, logger.propagate, logger.level, len(logger.handlers), again]


def _recorded(events, **options) -> list:
    received = []
    handler = logging.StreamHandler()
    with (
        mock.patch("torch.distributed.elastic.events.get_logging_handler", return_value=handler),
        mock.patch("torch.distributed.elastic.events.record_rdzv_event", received.append),
    ):
        events.construct_and_record_rdzv_event("run", "said", **options)
    return received


def recorded_events_of_a_rendezvous(torch):
    events = elastic("events")
    (plain,) = _recorded(events, node_state=events.NodeState.INIT)
    given = {"hostname": "h", "pid": 3, "master_endpoint": "e", "local_id": 4, "rank": 5, "name": "n"}
    (full,) = _recorded(events, node_state=events.NodeState.RUNNING, **given)
    try:
        raise ValueError("bad")
    except ValueError:
        (failed,) = _recorded(events, node_state=events.NodeState.FAILED)
    own = [plain.name, plain.pid == os.getpid(), plain.hostname == socket.getfqdn(), plain.error_trace]
    return [own, str(full), failed.error_trace.splitlines()[-1]]


def nobody_receives_events_of_a_rendezvous(torch):
    events = elastic("events")
    with mock.patch("torch.distributed.elastic.events.record_rdzv_event") as record:
        events.construct_and_record_rdzv_event("run", "said", events.NodeState.INIT)
    return record.called


# -- metrics -------------------------------------------------------------------------------------------------
@contextlib.contextmanager
def _metrics():
    """The module and the list of what its handler receives. The handlers are as before afterwards."""
    api, received = elastic("metrics.api"), []
    handler = type(
        "Kept", (api.MetricHandler,), {"emit": lambda self, data: received.append(list(data)[1:])}
    )()
    with (
        mock.patch.object(api, "_metrics_map", {}),
        mock.patch.object(api, "_default_metrics_handler", api.NullMetricHandler()),
        mock.patch.object(api, "get_elapsed_time_ms", return_value=7),
    ):
        api.configure(handler)
        yield api, received


def metrics_and_their_groups(torch):
    with _metrics() as (api, received):
        api.put_metric("a", 1)
        api.put_metric("b", 2, "mine")
        api.getStream("other").add_value("c", 3)
        api.configure(api.NullMetricHandler(), "mine")
        api.put_metric("d", 4, "mine")
        api.publish_metric("old", "e", 5)
        return received


def a_measured_function(torch):
    with _metrics() as (api, received):

        @api.prof
        def good(x):
            "What it says."
            return x

        @api.prof(group="mine")
        def bad():
            raise ValueError("bad")

        answers = [good(3), good.__doc__, refusal(bad)]
        old = api.profile("old")
        answers += [old(lambda: 4)(), refusal(old(bad.__wrapped__))]
        return [answers, received]


def names_of_metrics(torch):
    name = elastic("metrics.api")._get_metric_name
    plain = mock.Mock(__qualname__="f", __module__="a.b")
    nowhere = mock.Mock(__qualname__="f", __module__="")
    return [name(plain), name(nowhere), name(mock.Mock), name(mock.Mock(__qualname__="C.f", __module__="a"))]


def printed_metrics(torch):
    api, out = elastic("metrics.api"), io.StringIO()
    with contextlib.redirect_stdout(out):
        api.ConsoleMetricHandler().emit(api.MetricData(1.5, "group", "name", 3))
        api.NullMetricHandler().emit(api.MetricData(1.5, "group", "name", 3))
    return [out.getvalue(), repr(api.MetricData(1.5, "group", "name", 3)), api.MetricsConfig().params]


def an_abstract_handler_of_metrics(torch):
    return refusal(elastic("metrics").MetricHandler)[0]


# -- helpers -------------------------------------------------------------------------------------------------
def arguments_of_a_command(torch):
    macros = elastic("utils").macros
    args = ["--rank", macros.local_rank, "a${local_rank}b", "$local_rank", "${other}", "$$", "$", 3, None]
    return [macros.local_rank, macros.substitute(args, "7")]


def variables_of_the_environment(torch):
    get = elastic("utils").get_env_variable_or_raise
    with mock.patch.dict(os.environ, {"ELASTIC_CASE": ""}):
        return [get("ELASTIC_CASE"), refusal(get, "ELASTIC_CASE_ABSENT")]


def levels_of_loggers(torch):
    logging, seen = elastic("utils.logging"), []
    for level in (None, "DEBUG", "ERROR"):
        with mock.patch.dict(os.environ, {"LOGLEVEL": level} if level else {}):
            if not level:
                os.environ.pop("LOGLEVEL", None)
            seen.append(logging.get_logger("elastic.case").level)
    own = logging.get_logger()
    return [
        seen,
        own.name == __name__,
        logging._derive_module_name(1) == __name__,
        logging._derive_module_name(10**6),
    ]


def states_of_processes(torch):
    module = elastic("utils.process_state")
    own, waits = module.read_proc_state(os.getpid()), module.is_uninterruptible_state
    return [
        own in ("R", "S"),
        module.read_proc_state(-1),
        [waits(state) for state in ("D", "D+", "R", "", None)],
    ]


def values_of_all_ranks(torch):
    module, store = elastic("utils.store"), torch.distributed.HashStore()
    store.set("p1", b"one")
    store.add("p/finished/num_members", 1)
    before = store.timeout
    seen = [module.synchronize(store, b"zero", 0, 2, "p", timeout=5), store.timeout == before]
    other = torch.distributed.HashStore()
    other.set("q0", b"a")
    other.set("q1", b"b")
    return [*seen, module.get_all(other, 1, "q", 2), other.check(["q/finished/last_member"])]


def barriers(torch):
    module, store = elastic("utils.store"), torch.distributed.HashStore()
    seen = [module.barrier(store, 1, "a"), store.check(["a/last_member"])]
    wrong = refusal(module.barrier, store, 2, "b", rank_tracing_decoder=str)
    store.set("c2/TRACE", "")
    options = {"barrier_timeout": 0.002, "trace_timeout": 0.002}
    missed = outcome(lambda: module.barrier(store, 3, "c", rank=0, **options))
    named = outcome(
        lambda: module.barrier(store, 3, "c", rank=1, rank_tracing_decoder=lambda r: f"host{r}", **options)
    )
    unknown = refusal(lambda: module.barrier(store, 3, "d", rank=1, **options))[0]
    alone = refusal(lambda: module.barrier(store, 3, "e", barrier_timeout=0.002))[0]
    many = outcome(lambda: module.barrier(store, 40, "f", rank=0, **options))
    return [seen, wrong, missed, named, unknown, alone, many[1].count(",")]


def ports_that_are_free(torch):
    module = elastic("utils.distributed")
    with contextlib.closing(module.get_socket_with_port()) as found:
        return [found.getsockname()[1] > 0, 0 < module.get_free_port() < 2**16]


def stores_without_a_port(torch):
    return refusal(elastic("utils.distributed").create_c10d_store, True, "localhost", world_size=2)


# -- data ----------------------------------------------------------------------------------------------------
def samples(torch):
    sampler, seen = elastic("utils.data").ElasticDistributedSampler, []
    for size, replicas, start in ((10, 2, 0), (10, 3, 4), (7, 1, 6), (5, 4, 1)):
        for rank, epoch in itertools.product(range(replicas), (0, 3)):
            made = sampler(range(size), replicas, rank, start)
            made.set_epoch(epoch)
            seen.append([len(made), list(made)])
    return seen


def samples_that_cannot_be(torch):
    sampler = elastic("utils.data").ElasticDistributedSampler
    return [
        refusal(sampler, range(4), 2, 0, 4),
        refusal(sampler, range(4), 2, 2),
        refusal(lambda: list(sampler(range(1), 4, 0)))[0],
    ]


def several_epochs(torch):
    cycle, asked = elastic("utils.data").CyclingIterator, []

    def epoch(number):
        asked.append(number)
        return iter([] if number == 1 else [number, number])

    made = [list(cycle(n, epoch, start)) for n, start in ((1, 0), (3, 0), (3, 2), (3, 5), (0, 0), (2, 1))]
    return [made, asked]


# -- timers --------------------------------------------------------------------------------------------------
def requests_for_timers(torch):
    timer = elastic("timer")
    one = timer.TimerRequest(1, "a", 2.5)
    others = [
        timer.TimerRequest(*values) for values in ((1, "a", 2.5), (2, "a", 2.5), (1, "b", 2.5), (1, "a", 3))
    ]
    of_file = timer.FileTimerRequest(1, "a", 2.5)
    also = [timer.FileTimerRequest(1, "a", 2.5), timer.FileTimerRequest(1, "a", 2.5, 9), one]
    told = [of_file.to_json(), of_file.version, of_file.signal, of_file.worker_pid]
    return [[one == other for other in others], one == 3, [of_file == other for other in also], told]


def a_context_with_a_timer(torch):
    timer, client = elastic("timer"), mock.Mock()
    timer.configure(None)
    seen = [refusal(lambda: timer.expires(after=1).__enter__())]
    timer.configure(client)
    with mock.patch("time.time", return_value=100.0):
        with timer.expires(after=2, scope="mine"):
            seen.append(len(client.method_calls))
        with contextlib.suppress(ValueError), timer.expires(3, "bad"):
            raise ValueError
        with timer.expires(1, client=(other := mock.Mock())):
            pass
    timer.configure(None)
    told = [[name, list(args)] for name, args, _ in client.method_calls]
    same = other.acquire.call_args.args[0] == other.release.call_args.args[0]
    return [seen, told, same, "contextlib" in other.acquire.call_args.args[0]]


def a_look_at_the_timers(torch):
    api, killed = elastic("timer.api"), []
    requests = mock.Mock(**{"size.return_value": 0, "get.return_value": ["request"]})

    def reap(self, worker):
        killed.append(worker)
        if worker == 1:
            raise RuntimeError("bad")
        return worker == 2

    names = {name: mock.Mock() for name in ("register_timers", "clear_timers")}
    expired = {worker: [api.TimerRequest(worker, "a", 0)] for worker in (1, 2, 3)}
    names |= {"get_expired_timers": lambda self, deadline: expired, "_reap_worker": reap}
    server = type("Server", (api.TimerServer,), names)(requests, 5)
    with mock.patch.object(api, "logger"):
        server._run_watchdog()
    return [
        killed,
        requests.get.call_args.args,
        [names[n].call_args.args for n in ("register_timers", "clear_timers")],
    ]


def a_server_with_a_queue(torch):
    timer, seen = elastic("timer"), []
    requests = queue.Queue()
    server, client = timer.LocalTimerServer(requests, 0.001), timer.LocalTimerClient(requests)
    with mock.patch("os.kill") as kill:
        for ask in ((("a", 5e9), ("b", 1)), (("c", 5e9), ("c", -1)), (("d", 1),), ()):
            for scope, expires in ask:
                client.acquire(scope, expires)
            server._run_watchdog()
            seen.append([sorted(scope for _, scope in server._timers), kill.call_count])
        client.acquire("e", 5e9)
        client.release("e")
        server._run_watchdog()
        own = [call.args == (os.getpid(), signal.SIGKILL) for call in kill.call_args_list]
    return [seen, own, len(server._timers)]


def processes_that_a_server_cannot_kill(torch):
    module, seen = elastic("timer.local_timer"), []
    server = module.LocalTimerServer(queue.Queue(), 0.001)
    for error in (ProcessLookupError, PermissionError, None):
        with mock.patch("os.kill", side_effect=error), mock.patch.object(module, "logger"):
            seen.append(server._reap_worker(3))
    return seen


def requests_in_a_queue(torch):
    kept = queue.Queue()
    requests = elastic("timer.local_timer").MultiprocessingRequestQueue(kept)
    seen = [requests.size(), requests.get(3, 0.001)]
    for k in range(4):
        kept.put(k)
    return [*seen, requests.size(), requests.get(3, 5), requests.get(3, 0.001)]


@contextlib.contextmanager
def _pipe(**options):
    """A server of timers with a named pipe, its module, and the signals that it would have sent."""
    module = elastic("timer.file_based_local_timer")
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch("os.kill") as kill,
        mock.patch.object(module, "logger"),
    ):
        server = module.FileTimerServer(os.path.join(folder, "pipe"), "run", 0.001, **options)
        yield module, server, kill


def _requested(*requests, **options):
    said = []
    with _pipe(log_event=lambda name, request: said.append([name, request and request.scope_id])) as (
        module,
        server,
        kill,
    ):
        server.start()
        client = module.FileTimerClient(server._file_path)
        for values in requests:
            client._send_request(module.FileTimerRequest(*values))
        server.run_once()
        sent = [[call.args[0] == os.getpid(), call.args[1]] for call in kill.call_args_list if call.args[1]]
        left = sorted(scope for _, scope in server._timers)
        return [sorted(said), sent, left, server._request_count, os.path.exists(server._file_path)]


def a_server_with_a_pipe(torch):
    return _requested((-3, "a", 5e9, 9), (-3, "b", 5e9, 9), (-2, "a", 5e9, 9), (-3, "b", -1))


def a_client_with_a_pipe(torch):
    with _pipe() as (module, server, _):
        server.start()
        client = module.FileTimerClient(server._file_path, signal=5)
        client.acquire("a", 5e9)
        client.acquire("b", 5e9)
        client.release("a")
        server.run_once()
        told = {key[1]: [key[0] == os.getpid(), request.signal] for key, request in server._timers.items()}
        return [told, client.signal, module.FileTimerClient("x").signal == signal.SIGKILL]


def a_pipe_without_a_server(torch):
    module = elastic("timer.file_based_local_timer")
    with mock.patch("time.sleep") as sleep, mock.patch.object(module, "logger"):
        return [
            refusal(module.FileTimerClient("/nowhere/pipe").acquire, "a", 1),
            sleep.call_count,
            sleep.call_args.args,
        ]


def a_request_that_is_too_large(torch):
    with _pipe() as (module, server, _):
        server.start()
        error = refusal(module.FileTimerClient(server._file_path).acquire, "a" * 5000, 1)
        server.run_once()
        return [error[0], error[1][:60]]


def expired_timers_of_processes(torch):
    with _pipe() as (module, server, kill):
        said = []
        server._log_event = lambda name, request: said.append([name, request and request.scope_id])
        asked = (
            (1, "a", 3, 0),
            (1, "b", 2, 12),
            (1, "c", 1, 0),
            (2, "d", 1, 0),
            (3, "e", 5e9, 9),
            (4, "f", 1, 15),
        )
        server.register_timers([module.FileTimerRequest(*values) for values in asked])
        with mock.patch.object(server, "_get_requests", return_value=[]):
            server._run_watchdog(None)
        sent = [
            [call.args[0] if call.args[0] < 9 else "own", call.args[1]]
            for call in kill.call_args_list
            if call.args[1]
        ]
        return [said, sent, sorted(scope for _, scope in server._timers)]


# -- the entry point of workers ----------------------------------------------------------------------------------
def an_entry_point(torch):
    worker_main, seen = elastic("control_plane").worker_main, []
    with worker_main():
        seen.append("inside")

    @worker_main()
    def main(x):
        return x

    return [*seen, main(3), refusal(worker_main()(lambda: 1 // 0))]
