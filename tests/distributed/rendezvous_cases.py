"""How nodes find each other (torch.distributed.elastic.rendezvous). Nothing here waits for a clock."""

import contextlib
import datetime
import itertools
import os
import pickle
import socket
import tempfile
from unittest import mock

from tests.distributed.elastic_modules import elastic, outcome
from tests.golden.answers import refusal

NOW = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc)


# -- rendezvous: parameters ------------------------------------------------------------------------------------
def _parameters(**options):
    given = {"backend": "b", "endpoint": "e", "run_id": "r", "min_nodes": 1, "max_nodes": 2} | options
    return elastic("rendezvous").RendezvousParameters(**given)


def parameters(torch):
    made = _parameters(local_addr="here", x="1")
    return [dict(sorted(vars(made).items())), made.get("x"), made.get("y"), made.get("y", 3)]


def wrong_parameters(torch):
    wrong = ({"backend": ""}, {"min_nodes": 0}, {"min_nodes": 3}, {"backend": None})
    return [refusal(_parameters, **options) for options in wrong]


def parameters_that_are_true_or_false(torch):
    values = [
        "1",
        "True",
        "tRuE",
        "T",
        "t",
        "yes",
        "Y",
        1,
        True,
        "0",
        "False",
        "f",
        "NO",
        "n",
        0,
        False,
        None,
    ]
    wrong = ["01", "Yess", "dummy", "", 2, -1, 1.0, [1]]
    made = [_parameters(x=value).get_as_bool("x", False) for value in values]
    return [
        made,
        [refusal(_parameters(x=value).get_as_bool, "x") for value in wrong],
        _parameters().get_as_bool("x", True),
    ]


def parameters_that_are_integers(torch):
    values = ["0", "-10", "5", 5, 2.5, True, None]
    wrong = ["a", "1.5", ""]
    made = [_parameters(x=value).get_as_int("x", 4) for value in values]
    return [
        made,
        [refusal(_parameters(x=value).get_as_int, "x") for value in wrong],
        _parameters().get_as_int("x", 4),
    ]


def a_registry(torch):
    rendezvous = elastic("rendezvous")
    registry, handler = rendezvous.RendezvousHandlerRegistry(), mock.Mock()
    handler.get_backend.return_value = "b"
    registry.register("b", make := mock.Mock(return_value=handler, __str__=lambda self: "make"))
    registry.register("b", make)
    registry.register("c", make)
    seen = [registry.create_handler(_parameters()) is handler, make.call_count]
    other = mock.Mock(__str__=lambda self: "other")
    seen += [refusal(registry.register, "b", other), refusal(registry.register, "", make)]
    return [*seen, *(refusal(registry.create_handler, _parameters(backend=name)) for name in ("c", "d"))]


def errors_of_rendezvous(torch):
    rendezvous = elastic("rendezvous")
    names = [name for name in rendezvous.__all__ if name.endswith("Error")]
    return {name: [base.__name__ for base in getattr(rendezvous, name).__mro__] for name in sorted(names)}


def where_the_store_of_the_training_is(torch):
    rendezvous, store = elastic("rendezvous"), torch.distributed.HashStore()
    build = rendezvous.RendezvousStoreInfo.build
    first, other = build(0, store, "host", 1234), build(1, store, "elsewhere")
    free = build(0, torch.distributed.HashStore(), None)
    keys = [store.get("MASTER_ADDR"), store.get("MASTER_PORT")]
    return [
        repr(first),
        other == first,
        keys,
        free.master_addr == socket.getfqdn(),
        0 < free.master_port < 2**16,
    ]


def a_result(torch):
    rendezvous = elastic("rendezvous")
    info = rendezvous.RendezvousInfo("store", 1, 2, rendezvous.RendezvousStoreInfo("host", 3))
    return [info.store, info.rank, info.world_size, repr(info.bootstrap_store_info)]


# -- rendezvous: helpers ---------------------------------------------------------------------------------------
ENDPOINTS = (
    None, "", "  ", "host", "host:0", "host:123", "host:65535", "a-1.com:7", "1.2.3.4:5", "[2001:db8::1]:5", "[2001:db8::1]",
    " host:5 ", "::1", "~", "a.com :123", "a.com:65536", "a.com:70000", "a.com:-1", "a.com:", "a.com:a", "a.com:01", "[]", "[]:1",
    "a..com", ":5", "[", "[:5", "a b", "a.com:000012", "a/b", "[::1]:", "[::1]x:5",
)  # fmt: skip


def endpoints(torch):
    parse = elastic("rendezvous.utils").parse_rendezvous_endpoint
    return [outcome(parse, text, 99999) for text in ENDPOINTS]


CONFIGS = (
    "", "  ", "a=1", " b= 2  ,c=3=4,  a =5", "a=1,", "a=1,,c=2", "=", "a", "a=", "a= ,b=1", "=1", " ,", "a=1,a=2", "a==", "a==1",
)  # fmt: skip


def configurations(torch):
    parse = elastic("rendezvous.utils")._parse_rendezvous_config
    return [outcome(parse, text) for text in CONFIGS]


def ports(torch):
    parse = elastic("rendezvous.utils")._try_parse_port
    return [
        parse(text) for text in ("", "1", "00001", "99999", "123456", " 1", "1 ", "a", "-1", "1.5", "1\n")
    ]


def _this_machine_is(own: str, known: dict, host: str):
    def getaddrinfo(name, *_, **__):
        if name not in known:
            raise socket.gaierror(-2, "unknown")
        return [
            (socket.AF_INET, socket.SOCK_STREAM, 6, canonical, (address, 0))
            for address, canonical in known[name]
        ]

    with mock.patch("socket.getaddrinfo", getaddrinfo), mock.patch("socket.gethostname", lambda: own):
        return outcome(elastic("rendezvous.utils")._matches_machine_hostname, host)


def hosts_of_this_machine(torch):
    known = {
        "me": [("10.0.0.1", "me.org"), ("10.0.0.2", "")],
        "alias": [("10.0.0.2", "")],
        "far": [("10.9.9.9", "far.org")],
    }
    hosts = (
        "localhost",
        "127.0.0.1",
        "127.9.9.9",
        "::1",
        "me",
        "me.org",
        "10.0.0.1",
        "10.0.0.2",
        "10.0.0.3",
        "alias",
        "far",
        "far.org",
    )
    return {host: _this_machine_is("me", known, host) for host in (*hosts, "unknown", "fe80::1", "0.0.0.0")}


def delays(torch):
    utils = elastic("rendezvous.utils")
    with mock.patch("time.sleep") as sleep:
        for seconds in (0, 0.009, 0.01, 3, (2, 2), (0, 0)):
            utils._delay(seconds)
    return [call.args[0] for call in sleep.call_args_list]


def a_periodic_timer(torch):
    timer = elastic("rendezvous.utils")._PeriodicTimer(datetime.timedelta(hours=1), print)
    timer.cancel()
    seen = [timer.name]
    timer.set_name("mine")
    timer.start()
    seen += [timer.name, refusal(timer.start), refusal(timer.set_name, "other")]
    timer.cancel()
    timer.cancel()
    return [*seen, refusal(timer.start)]


# -- the dynamic rendezvous ----------------------------------------------------------------------------------
def _dynamic():
    return elastic("rendezvous.dynamic_rendezvous")


@contextlib.contextmanager
def _at(monotonic: float = 10):
    """The clocks of the dynamic rendezvous."""
    module = "torch.distributed.elastic.rendezvous.dynamic_rendezvous"
    with mock.patch(f"{module}.datetime") as date, mock.patch(f"{module}.time") as clock:
        date.now.return_value = NOW
        clock.monotonic.return_value = monotonic
        yield clock


def _settings(least: int, most: int):
    module = _dynamic()
    interval = datetime.timedelta(seconds=5)
    return module.RendezvousSettings("run", least, most, module.RendezvousTimeout(), interval, 3)


def _node(k: int):
    return _dynamic()._NodeDesc(f"node{k}", 1, k)


PLACES = ("nowhere", "participants", "wait_list", "redundancy_list")
SITUATIONS = {  # name -> values
    "closed": (False, True),
    "complete": (False, True),
    "place": PLACES,
    "others": (0, 1, 2, 3),
    "last_call": (None, -1, 0, 1),  # seconds from now to its end
    "beat": (None, 4, 5),  # seconds since the last sign of life
    "late": (0, 1, 5, 6),  # seconds after the deadline
}


def _state_of(situation: dict):
    state, node = _dynamic()._RendezvousState(), _node(0)
    state.closed, state.complete = situation["closed"], situation["complete"]
    for k in range(situation["others"]):
        state.participants[_node(k + 1)] = 0
        state.last_heartbeats[_node(k + 1)] = NOW
    if situation["place"] == "participants":
        state.participants[node] = 0
    elif situation["place"] != "nowhere":
        getattr(state, situation["place"]).add(node)
    if situation["last_call"] is not None:
        state.deadline = NOW + datetime.timedelta(seconds=situation["last_call"])
    if situation["beat"] is not None:
        state.last_heartbeats[node] = NOW - datetime.timedelta(seconds=situation["beat"])
    return state


def _decisions(operation: str, settings) -> str:
    """The actions in all situations, a letter each: the number of the action, X for a graceful exit."""
    module, letters = _dynamic(), []
    with _at() as clock:
        for values in itertools.product(*SITUATIONS.values()):
            situation = dict(zip(SITUATIONS, values, strict=True))
            clock.monotonic.return_value = 10 + situation["late"]
            context = module._RendezvousContext(_node(0), _state_of(situation), settings)
            try:
                letters.append("0123456789abcdef"[getattr(module, operation)()(context, 10).value])
            except elastic("rendezvous").RendezvousGracefulExitError:
                letters.append("X")
    return "".join(letters)


def decisions_of_joining(torch):
    nodes = ((1, 1), (2, 3), (3, 3))
    return {
        f"{least}:{most}": _decisions("_RendezvousJoinOp", _settings(least, most)) for least, most in nodes
    }


def decisions_of_the_other_operations(torch):
    names = ("Exit", "Close", "KeepAlive")
    return {name: _decisions(f"_Rendezvous{name}Op", _settings(2, 3)) for name in names}


class _Holder:
    """A copy of a state that nobody shares."""

    def __init__(self, state):
        self.state, self.calls = state, []

    def sync(self):
        self.calls.append("sync")

    def mark_dirty(self):
        self.calls.append("dirty")


def _told_of(state) -> list:
    """The parts of a state, without what is empty."""
    sets = [sorted(map(str, nodes)) for nodes in (state.wait_list, state.redundancy_list)]
    beats = {str(node): (NOW - beat).total_seconds() for node, beat in state.last_heartbeats.items()}
    ranks = {str(node): rank for node, rank in state.participants.items()}
    return [state.round, state.complete, state.closed, str(state.deadline), ranks, *sets, beats]


def _after(action, situation: dict, least: int, most: int):
    module = _dynamic()
    holder = _Holder(_state_of(situation))
    executor = module._DistributedRendezvousOpExecutor(_node(0), holder, _settings(least, most))
    operation = mock.Mock(side_effect=[action, module._Action.FINISH])
    try:
        executor.run(operation, 3)
    except Exception as error:
        return [type(error).__name__, holder.calls]
    return [_told_of(holder.state), holder.calls, [call.args[1] for call in operation.call_args_list]]


def what_the_actions_do(torch):
    found, module = {}, _dynamic()
    removals = {
        "REMOVE_FROM_PARTICIPANTS": "participants",
        "REMOVE_FROM_WAIT_LIST": "wait_list",
        "REMOVE_FROM_REDUNDANCY_LIST": "redundancy_list",
    }
    delay = mock.patch("torch.distributed.elastic.rendezvous.dynamic_rendezvous._delay")
    with _at(), delay:
        for action, others, complete in itertools.product(module._Action, (0, 1, 2), (False, True)):
            name = action.name
            place = removals.get(name) or ("redundancy_list" if name == "ADD_TO_WAIT_LIST" else "nowhere")
            if name == "FINISH":
                continue
            situation = {
                "closed": False,
                "complete": complete,
                "place": place,
                "others": others,
                "last_call": 1,
            }
            situation["beat"] = 4
            found[f"{name} {others} {complete}"] = _after(action, situation, 2, 3)
    return found


def a_spare_gets_a_new_deadline(torch):
    module = _dynamic()
    situation = {
        "closed": False,
        "complete": True,
        "place": "redundancy_list",
        "others": 1,
        "last_call": None,
        "beat": 4,
    }
    executor = module._DistributedRendezvousOpExecutor(
        _node(0), _Holder(_state_of(situation)), _settings(1, 2)
    )
    operation = mock.Mock(side_effect=[module._Action.REMOVE_FROM_REDUNDANCY_LIST, module._Action.FINISH])
    with _at():
        executor.run(operation, 3, lambda timeout: timeout.total_seconds())
    return [call.args[1] for call in operation.call_args_list]


class _Backend:
    """A backend in memory."""

    name = "memory"

    def __init__(self):
        self.data, self.token, self.calls = None, 0, []

    def get_state(self):
        self.calls.append("get")
        return None if self.token == 0 else (self.data, self.token)

    def set_state(self, state, token=None):
        self.calls.append("set")
        fits = (token or 0) == self.token
        if fits:
            self.data, self.token = state, self.token + 1
        return self.data, self.token, fits


def _holder(backend, cache: int = 0):
    return _dynamic()._BackendRendezvousStateHolder(backend, _settings(1, 4), cache)


def a_copy_is_read_and_written(torch):
    backend, seen = _Backend(), []
    mine, yours = _holder(backend), _holder(backend)
    with _at():
        for who, number in (
            (mine, None),
            (mine, 3),
            (yours, None),
            (mine, 4),
            (yours, 5),
            (yours, 6),
            (mine, None),
        ):
            if number is not None:
                who.state.round = number
                who.mark_dirty()
            seen.append([who.sync(), who.state.round])
    return [seen, backend.calls]


def a_copy_is_kept_for_a_second(torch):
    backend, seen = _Backend(), []
    holder = _holder(backend, 1)
    with _at() as clock:
        for now in (0.5, 5, 5.5, 6, 6.01):
            clock.monotonic.return_value = now
            holder.sync()
            seen.append(len(backend.calls))
    return seen


def a_backend_without_an_answer(torch):
    backend = mock.Mock(**{"get_state.return_value": None, "set_state.return_value": None})
    holder = _holder(backend)
    with _at():
        holder.state.round = 3
        holder.mark_dirty()
        return [holder.sync(), holder.state.round, holder.sync(), holder.state.round]


def the_dead_are_dropped(torch):
    found = {}
    for alive, complete, closed in itertools.product((0, 1, 2), (False, True), (False, True)):
        state = _dynamic()._RendezvousState()
        state.round, state.complete, state.closed, state.deadline = 3, complete, closed, NOW
        for k, seconds in enumerate((15, 15.5, 16, 20)):
            state.last_heartbeats[_node(k)] = NOW - datetime.timedelta(seconds=seconds if k >= alive else 1)
        for k in (0, 1):
            state.participants[_node(k)] = k
        state.wait_list.add(_node(2))
        state.redundancy_list.add(_node(3))
        backend = _Backend()
        backend.data, backend.token = pickle.dumps(state), 1
        holder = _holder(backend)
        with _at():
            holder.sync()
        found[f"{alive} {complete} {closed}"] = _told_of(holder.state)
    return found


def a_state_that_cannot_be_read(torch):
    backend = _Backend()
    backend.data, backend.token = b"corrupt", 1
    with _at():
        return refusal(_holder(backend).sync)


def timeouts_of_a_rendezvous(torch):
    make, second = _dynamic().RendezvousTimeout, datetime.timedelta(seconds=1)
    made = [
        [str(getattr(t, name)) for name in ("join", "last_call", "close", "heartbeat")]
        for t in (make(), make(second, close=second))
    ]
    names = ("join", "last_call", "close", "heartbeat")
    return [made, [refusal(make, **{name: second * k}) for name in names for k in (0, -1)]]


def descriptions_of_nodes(torch):
    module = _dynamic()
    maker = module._NodeDescGenerator()
    first, second = maker.generate("here"), maker.generate()
    own = [second.addr == socket.getfqdn(), second.pid == os.getpid(), second.local_id]
    return [
        first.addr,
        first.local_id,
        own,
        repr(module._NodeDesc("a", 1, 2)),
        _node(1) < _node(2),
        len({_node(1), _node(1)}),
    ]


@contextlib.contextmanager
def _one_node(torch, **options):
    """A handler of a job of one node, with the state in a store in memory."""
    module, c10d = _dynamic(), elastic("rendezvous.c10d_rendezvous_backend")
    store = torch.distributed.HashStore()
    backend = c10d.C10dRendezvousBackend(store, "run")
    handler = module.DynamicRendezvousHandler.from_backend("run", store, backend, 1, 1, "here", **options)
    handler._state_holder._cache_duration = 0
    server = mock.patch.object(
        module.DynamicRendezvousHandler, "_create_tcp_store_server", return_value=mock.Mock(port=77)
    )
    with server as made, mock.patch.object(module, "_delay"):
        yield handler, made
        handler._stop_heartbeats()


def a_job_of_one_node(torch):
    with _one_node(torch) as (handler, made):
        seen = [handler.get_backend(), handler.get_run_id(), handler.use_agent_store, handler.is_closed()]
        for _ in range(2):
            info = handler.next_rendezvous()
            info.store.set("key", b"value")
            seen.append(
                [info.rank, info.world_size, repr(info.bootstrap_store_info), handler.num_nodes_waiting()]
            )
        keys = [f"torch.rendezvous.run.{k}/key" for k in (0, 1, 2)]
        seen.append([handler._store.check([key]) for key in keys])
        seen += [
            made.call_count,
            handler.set_closed(),
            handler.is_closed(),
            refusal(handler.next_rendezvous),
            handler.shutdown(),
        ]
        return seen


def a_job_that_makes_its_own_store(torch):
    with (
        mock.patch.dict(os.environ, {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}),
        _one_node(torch) as (handler, made),
    ):
        info = handler.next_rendezvous().bootstrap_store_info
        return [handler.use_agent_store, made.called, info.master_addr, info.master_port > 0]


def handlers_that_cannot_be(torch):
    make = _dynamic().DynamicRendezvousHandler.from_backend
    wrong = (("", 1, 1), ("run", 0, 1), ("run", -1, 1), ("run", 3, 2))
    return [refusal(make, run, None, mock.Mock(), least, most) for run, least, most in wrong]


def handlers_of_parameters(torch):
    module = _dynamic()
    given = _parameters(
        join_timeout="5",
        last_call_timeout=6,
        close_timeout="7",
        heartbeat_timeout="8",
        keep_alive_interval="9",
    )
    seen = []
    for one in (given, _parameters(), _parameters(keep_alive_max_attempt=1)):
        settings = module.create_handler(None, mock.Mock(), one).settings
        waits = [str(getattr(settings.timeout, name)) for name in ("join", "last_call", "close", "heartbeat")]
        seen.append(
            [
                settings.min_nodes,
                settings.max_nodes,
                *waits,
                str(settings.keep_alive_interval),
                settings.keep_alive_max_attempt,
            ]
        )
    wrong = (
        {"join_timeout": "0"},
        {"join_timeout": "a"},
        {"keep_alive_interval": None},
        {"keep_alive_max_attempt": None},
    )
    return [
        seen,
        [refusal(module.create_handler, None, mock.Mock(), _parameters(**options)) for options in wrong],
    ]


# -- the backends c10d and static ------------------------------------------------------------------------------
def a_state_in_a_store(torch):
    module, store = elastic("rendezvous.c10d_rendezvous_backend"), torch.distributed.HashStore()
    backend = module.C10dRendezvousBackend(store, "run")
    seen = [backend.name, backend.get_state(), backend.set_state(b"x", b"none")]
    seen.append(first := backend.set_state(b"x"))
    seen += [
        backend.set_state(b"y", first[1]),
        backend.set_state(b"z", first[1]),
        backend.set_state(b"z"),
        backend.get_state(),
    ]
    seen += [backend.set_state(b"w", token="text"), store.get("torch.rendezvous.run")]
    store.set("torch.rendezvous.run", "non_base64")
    return [*seen, refusal(backend.get_state), refusal(module.C10dRendezvousBackend, store, "")]


def a_token_of_no_state(torch):
    module = elastic("rendezvous.c10d_rendezvous_backend")
    return module.C10dRendezvousBackend(torch.distributed.HashStore(), "run").set_state(b"x", token="text")


def a_store_that_fails(torch):
    module, seen = elastic("rendezvous.c10d_rendezvous_backend"), []
    for error in (ValueError, RuntimeError, TimeoutError, KeyError):
        store = mock.Mock(**{"compare_set.side_effect": error("why")})
        seen.append(refusal(module.C10dRendezvousBackend, store, "run"))
    return seen


def backends_in_files(torch):
    module = elastic("rendezvous.c10d_rendezvous_backend")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "store")
        backend, store = module.create_backend(_parameters(endpoint=path, store_type=" FiLe "))
        seen = [backend.name, type(store).__name__, store.path == path, backend.set_state(b"x")[0]]
        with mock.patch("tempfile.mkstemp", side_effect=OSError("full")):
            seen.append(refusal(module.create_backend, _parameters(endpoint="", store_type="file")))
        del backend, store
    return seen


def backends_that_cannot_be(torch):
    module = elastic("rendezvous.c10d_rendezvous_backend")
    wrong = (
        {"store_type": "dummy"},
        {"read_timeout": "0"},
        {"read_timeout": "-1"},
        {"is_host": "x"},
        {"endpoint": "a:x"},
    )
    return [refusal(module.create_backend, _parameters(**options)) for options in wrong]


def who_makes_the_store(torch):
    module, seen = elastic("rendezvous.c10d_rendezvous_backend"), []
    local = mock.patch.object(module, "_matches_machine_hostname", lambda host: host == "localhost")
    for host, given, fails in itertools.product(("localhost", "127.0.0.1"), (None, "0", "1"), (0, 1, 2)):
        made = [RuntimeError("no")] * fails + [torch.distributed.HashStore()]
        options = {"is_host": given} if given else {}
        with mock.patch.object(module, "TCPStore", side_effect=made) as store, local:
            answer = outcome(lambda: module.create_backend(_parameters(endpoint=host, **options))[0].name)  # noqa: B023
        calls = [
            [call.args, call.kwargs["is_master"], call.kwargs["multi_tenant"], str(call.kwargs["timeout"])]
            for call in store.call_args_list
        ]
        seen.append([host, given, fails, answer, calls])
    return seen


def static_rendezvous(torch):
    module = elastic("rendezvous.static_tcp_rendezvous")
    handler = module.create_rdzv_handler(
        _parameters(backend="static", endpoint=" host:5 ", rank=0, timeout="7")
    )
    store = torch.distributed.HashStore()
    with mock.patch.object(module, "TCPStore", return_value=store) as made:
        infos = [handler.next_rendezvous() for _ in range(2)]
    infos[0].store.set("key", b"value")
    told = [[info.rank, info.world_size, repr(info.bootstrap_store_info)] for info in infos]
    asked = [made.call_count, *map(str, made.call_args.args), made.call_args.kwargs]
    plain = [
        handler.get_backend(),
        handler.get_run_id(),
        handler.use_agent_store,
        handler.is_closed(),
        handler.set_closed(),
    ]
    return [
        told,
        asked,
        store.get("r/key"),
        *plain,
        handler.num_nodes_waiting(),
        handler.shutdown(),
        str(handler.timeout),
    ]


def static_rendezvous_that_cannot_be(torch):
    make = elastic("rendezvous.static_tcp_rendezvous").create_rdzv_handler
    wrong = ({}, {"rank": 0, "endpoint": " "}, {"rank": 0, "endpoint": "host"})
    return [outcome(make, _parameters(**options)) for options in wrong]


def registered_backends(torch):
    registry = elastic("rendezvous").rendezvous_handler_registry
    find = elastic("rendezvous.registry").get_rendezvous_handler
    handler = find(_parameters(backend="static", endpoint="host:5", rank=0))
    return [sorted(registry._registry), type(handler).__name__, refusal(find, _parameters(backend="none"))]
