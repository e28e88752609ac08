"""How nodes agree on the workers of a round (dynamic_rendezvous). Nothing here waits for a clock."""

import contextlib
import datetime
import itertools
import os
import pickle
import socket
from unittest import mock

from tests.distributed.elastic_modules import elastic, parameters_of
from tests.golden.answers import refusal

NOW = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc)


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
    given = parameters_of(
        join_timeout="5",
        last_call_timeout=6,
        close_timeout="7",
        heartbeat_timeout="8",
        keep_alive_interval="9",
    )
    seen = []
    for one in (given, parameters_of(), parameters_of(keep_alive_max_attempt=1)):
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
        [refusal(module.create_handler, None, mock.Mock(), parameters_of(**options)) for options in wrong],
    ]
