"""How nodes find each other (torch.distributed.elastic.rendezvous). Nothing here waits for a clock."""

import datetime
import itertools
import os
import socket
import tempfile
from unittest import mock

from tests.distributed.elastic_modules import elastic, outcome, parameters_of
from tests.golden.answers import refusal


# -- rendezvous: parameters ------------------------------------------------------------------------------------
def parameters(torch):
    made = parameters_of(local_addr="here", x="1")
    return [dict(sorted(vars(made).items())), made.get("x"), made.get("y"), made.get("y", 3)]


def wrong_parameters(torch):
    wrong = ({"backend": ""}, {"min_nodes": 0}, {"min_nodes": 3}, {"backend": None})
    return [refusal(parameters_of, **options) for options in wrong]


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
    made = [parameters_of(x=value).get_as_bool("x", False) for value in values]
    return [
        made,
        [refusal(parameters_of(x=value).get_as_bool, "x") for value in wrong],
        parameters_of().get_as_bool("x", True),
    ]


def parameters_that_are_integers(torch):
    values = ["0", "-10", "5", 5, 2.5, True, None]
    wrong = ["a", "1.5", ""]
    made = [parameters_of(x=value).get_as_int("x", 4) for value in values]
    return [
        made,
        [refusal(parameters_of(x=value).get_as_int, "x") for value in wrong],
        parameters_of().get_as_int("x", 4),
    ]


def a_registry(torch):
    rendezvous = elastic("rendezvous")
    registry, handler = rendezvous.RendezvousHandlerRegistry(), mock.Mock()
    handler.get_backend.return_value = "b"
    registry.register("b", make := mock.Mock(return_value=handler, __str__=lambda self: "make"))
    registry.register("b", make)
    registry.register("c", make)
    seen = [registry.create_handler(parameters_of()) is handler, make.call_count]
    other = mock.Mock(__str__=lambda self: "other")
    seen += [refusal(registry.register, "b", other), refusal(registry.register, "", make)]
    return [*seen, *(refusal(registry.create_handler, parameters_of(backend=name)) for name in ("c", "d"))]


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
        backend, store = module.create_backend(parameters_of(endpoint=path, store_type=" FiLe "))
        seen = [backend.name, type(store).__name__, store.path == path, backend.set_state(b"x")[0]]
        with mock.patch("tempfile.mkstemp", side_effect=OSError("full")):
            seen.append(refusal(module.create_backend, parameters_of(endpoint="", store_type="file")))
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
    return [refusal(module.create_backend, parameters_of(**options)) for options in wrong]


def who_makes_the_store(torch):
    module, seen = elastic("rendezvous.c10d_rendezvous_backend"), []
    local = mock.patch.object(module, "_matches_machine_hostname", lambda host: host == "localhost")
    for host, given, fails in itertools.product(("localhost", "127.0.0.1"), (None, "0", "1"), (0, 1, 2)):
        made = [RuntimeError("no")] * fails + [torch.distributed.HashStore()]
        options = {"is_host": given} if given else {}
        with mock.patch.object(module, "TCPStore", side_effect=made) as store, local:
            answer = outcome(lambda: module.create_backend(parameters_of(endpoint=host, **options))[0].name)  # noqa: B023
        calls = [
            [call.args, call.kwargs["is_master"], call.kwargs["multi_tenant"], str(call.kwargs["timeout"])]
            for call in store.call_args_list
        ]
        seen.append([host, given, fails, answer, calls])
    return seen


def static_rendezvous(torch):
    module = elastic("rendezvous.static_tcp_rendezvous")
    handler = module.create_rdzv_handler(
        parameters_of(backend="static", endpoint=" host:5 ", rank=0, timeout="7")
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
    return [outcome(make, parameters_of(**options)) for options in wrong]


def registered_backends(torch):
    registry = elastic("rendezvous").rendezvous_handler_registry
    find = elastic("rendezvous.registry").get_rendezvous_handler
    handler = find(parameters_of(backend="static", endpoint="host:5", rank=0))
    return [sorted(registry._registry), type(handler).__name__, refusal(find, parameters_of(backend="none"))]
