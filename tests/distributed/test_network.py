"""What a stranger on the network can do to a job: nothing. Peers are written with plain sockets, from the protocol's text."""

import contextlib
import hashlib
import hmac
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import types
from datetime import timedelta

import pytest

import msadapter.distributed as dist
from msadapter.distributed import listener, tcp_store
from msadapter.distributed.rpc.channel import Client, Server
from tests.distributed.ranks import PATIENCE, TORCHRUN, environment, left, torchrun
from tests.ports import free_port

GREETING = b"msadapter store 1\n"
SECRET = "MSADAPTER_JOB_SECRET"
SOON = timedelta(seconds=60)
PLAIN = "import os\nprint(f\"rank {os.environ['RANK']} of {os.environ['WORLD_SIZE']}\")\n"
UP = """
import os, sys, time, torch
import torch.distributed as dist
dist.init_process_group('gloo')
t = torch.ones(3)
dist.all_reduce(t)
assert t.tolist() == [2.0] * 3
open(sys.argv[1] + os.environ['RANK'], 'w').close()
while not os.path.exists(sys.argv[1] + 'end'):
    time.sleep(0.05)
dist.barrier()
dist.destroy_process_group()
"""


@pytest.fixture
def store(monkeypatch):
    """Start a store with an optional secret. All stores are closed at the end of the test."""
    made = []

    def begin(secret=None, host="127.0.0.1"):
        _secret(monkeypatch, secret)
        made.append(dist.TCPStore(host, 0, is_master=True, timeout=SOON))
        return made[-1]

    monkeypatch.delenv(SECRET, raising=False)
    yield begin
    for each in made:
        each.close()


def _secret(monkeypatch, secret):
    monkeypatch.delenv(SECRET, raising=False)
    if secret is not None:
        monkeypatch.setenv(SECRET, secret)


@contextlib.contextmanager
def _peer(store, greeting=GREETING + b"-" + bytes(32)):
    """Connect as a peer that sends only a greeting."""
    with socket.create_connection(("127.0.0.1", store.port), timeout=60) as peer:
        peer.sendall(greeting)
        yield peer


def _end(peer) -> bytes:
    """Return what the store sends before it closes the connection. TimeoutError if it does not close it."""
    said = b""
    with contextlib.suppress(ConnectionResetError):
        while piece := peer.recv(4096):
            said += piece
    return said


def _frame(*parts) -> bytes:
    return struct.pack(f"<{len(parts) + 1}I", len(parts), *map(len, parts)) + b"".join(parts)


def _still_serves(store):
    """Assert that a client that was connected before, and a new one, are served."""
    store.set("key", b"\xff\x00")
    assert store.get("key") == b"\xff\x00" and store.clone().add("number", 2) > 0


# -- frames ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "announced",
    [
        struct.pack("<I", 0xFFFFFFFF),
        struct.pack("<II", 1, 0xFFFFFFFF),
        struct.pack("<5I", 4, *[0x3FFFFFFF] * 4),
        struct.pack("<9I", 8, *[200 << 20] * 8),
        struct.pack("<I", 0),
    ],
    ids=["parts", "value", "values", "sum", "no parts"],
)
def test_a_frame_of_4_gb_is_refused_when_it_is_announced(store, announced):
    served = store()
    with _peer(served) as peer:
        assert peer.recv(1) == b"O"
        peer.sendall(announced)
        assert b"the store has closed the connection" in _end(peer)
    _still_serves(served)


@pytest.mark.parametrize(
    "rubbish",
    [b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" + bytes(64), bytes(64), b"\xff" * 200],
    ids=["http", "zeros", "ones"],
)
def test_a_peer_that_does_not_greet_gets_nothing(store, rubbish):
    served = store()
    with _peer(served, rubbish) as peer:
        assert _end(peer) == b""
    _still_serves(served)


def test_a_peer_that_falls_silent_hurts_nobody(store):
    served = store()
    with _peer(served) as half, _peer(served) as silent:
        assert half.recv(1) == silent.recv(1) == b"O"
        half.sendall(_frame(b"set", b"key", b"x" * 1000)[:100])
        _still_serves(served)
    _still_serves(served)


@pytest.mark.parametrize(
    "request_",
    [
        (b"get",),
        (b"get", b"nan", b"missing"),
        (b"wait", b"word", b"key"),
        (b"set", b"key"),
        (b"set", b"\xff\xfe", b"value"),
        (b"set", b"k" * (1 << 17), b"value"),
        (b"add", b"key", b"1e400"),
        (b"compare_set", b"key"),
        (b"__class__", b"key"),
        (b"\xff",),
        (b"delete_key",),
    ],
)
def test_a_malformed_request_is_an_error_for_its_sender(store, request_):
    served = store()
    with _peer(served) as peer:
        assert peer.recv(1) == b"O"
        peer.sendall(_frame(*request_))
        assert b"error" in peer.recv(1 << 16)
        peer.sendall(_frame(b"add", b"number", b"1"))  # the connection can still be used
        assert peer.recv(1 << 16).endswith(b"ok1")
    _still_serves(served)


def test_a_wait_without_end_is_possible(store):
    served = store()
    waiting = served.clone()
    waiting.set_timeout(float("inf"))
    threading.Timer(0.2, served.set, ("late", b"1")).start()
    assert waiting.get("late") == b"1"


def test_the_time_to_connect_does_not_limit_what_is_asked_later(store):
    served = store()
    other = dist.TCPStore("127.0.0.1", served.port, timeout=timedelta(seconds=1))
    other.set_timeout(SOON)
    threading.Timer(1.5, served.set, ("late", b"1")).start()
    assert other.get("late") == b"1"


def test_values_have_a_limit_that_is_named(store):
    served = store()
    with pytest.raises(
        ValueError, match=r"the value has 268435457 bytes; a value may have at most 268435456"
    ):
        served.set("key", bytes((256 << 20) + 1))
    with pytest.raises(dist.DistError, match="the key has 65537 bytes; a key may have at most 65536"):
        served.set("k" * 65537, b"")
    _still_serves(served)


def test_append_does_not_pass_the_limit_of_a_value(store, monkeypatch):
    served = store()
    monkeypatch.setattr("msadapter.distributed.wire.MAX_PART", 1000)
    served.append("key", b"x" * 600)
    with pytest.raises(dist.DistError, match="append would make a value of 1200 bytes"):
        served.append("key", b"x" * 600)
    assert len(served.get("key")) == 600


# -- the handshake -----------------------------------------------------------------------------------------
def test_the_same_secret_opens_the_store(store):
    _still_serves(store("correct horse"))


@pytest.mark.parametrize(
    "ours, theirs, said",
    [
        ("correct", "wrong", "it has another secret than this process"),
        ("correct", None, "it needs the job's secret, and this process has none"),
        (None, "correct", "this process has a secret, and the store has none"),
    ],
)
def test_another_secret_is_refused_at_once_with_advice(store, monkeypatch, capfd, ours, theirs, said):
    served, begin = store(ours), time.monotonic()
    _secret(monkeypatch, theirs)
    for _ in range(3):
        with pytest.raises(dist.DistNetworkError, match=said) as refusal:
            dist.TCPStore("127.0.0.1", served.port, timeout=timedelta(seconds=600))
        assert "--rdzv-conf secret_file=PATH" in str(refusal.value)
    assert time.monotonic() - begin < 60  # at once, compared with the timeout
    assert capfd.readouterr().err.count("refused a connection from 127.0.0.1") == 1
    _still_serves(served)


def test_without_proof_no_command_is_read(store):
    served = store("correct")
    with _peer(served, GREETING + b"-" + bytes(32) + _frame(b"set", b"key", b"evil")) as peer:
        assert _end(peer) == b"N"
    with _peer(served, GREETING + b"S" + bytes(32) + _frame(b"set", b"key", b"e" * 64)) as peer:
        said = _end(peer)
        assert said[:1] == b"C" and said[33:] == b"W"
    assert not served.check(["key"])


def _proof(secret: bytes, side: bytes, nonces: bytes) -> bytes:
    return hmac.digest(secret, GREETING + side + nonces, hashlib.sha256)


def test_a_replayed_answer_proves_nothing(store):
    served = store("correct")
    with _peer(served, GREETING + b"S" + bytes(32)) as peer:
        challenge = peer.recv(33)[1:]
        answer = _proof(b"correct", b"client", bytes(32) + challenge)
        peer.sendall(answer)
        assert peer.recv(33) == b"O" + _proof(b"correct", b"server", bytes(32) + challenge)
        peer.sendall(_frame(b"add", b"number", b"1"))
        assert peer.recv(4096).endswith(b"ok1")
    for replay in (answer, _proof(b"correct", b"server", bytes(32) + challenge)):
        with _peer(served, GREETING + b"S" + bytes(32)) as peer:
            assert peer.recv(33)[1:] != challenge
            peer.sendall(replay)
            assert _end(peer) == b"W"
    _still_serves(served)


@pytest.mark.parametrize(
    "answers",
    [
        lambda client: [b"O" + bytes(32)],
        lambda client: [b"C" + bytes(32), b"O" + bytes(32)],
        lambda client: [b"C" + client, b"O" + _proof(b"", b"server", client * 2)],
        lambda client: [b"HTTP/1.1 400 Bad Request\r\n"],
    ],
    ids=["open", "zeros", "own nonce", "http"],
)
def test_a_server_without_the_secret_is_refused(monkeypatch, answers):
    monkeypatch.setenv(SECRET, "correct")
    heard = []
    with socket.create_server(("127.0.0.1", 0)) as impostor:

        def serve():
            connection, _ = impostor.accept()
            with connection:
                client = connection.recv(4096)[-32:]
                for answer in answers(client):
                    connection.sendall(answer)
                    with contextlib.suppress(ConnectionResetError):
                        heard.append(connection.recv(4096))

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        with pytest.raises(dist.DistNetworkError, match="cannot be used"):
            dist.TCPStore("127.0.0.1", impostor.getsockname()[1], timeout=SOON)
        thread.join(60)
    assert b"correct" not in b"".join(heard)


def test_an_empty_secret_is_an_error(monkeypatch):
    monkeypatch.setenv(SECRET, "")
    with pytest.raises(ValueError, match=f"{SECRET}: the secret must have 1 to 4096 bytes"):
        dist.TCPStore("127.0.0.1", 0, is_master=True)


def test_a_slow_handshake_is_ended(store, monkeypatch):
    monkeypatch.setattr(listener, "_HANDSHAKE", 0.5)
    served, begin = store("correct"), time.monotonic()
    with _peer(served, b"") as silent, _peer(served, b"") as slow:
        with contextlib.suppress(OSError):
            while time.monotonic() - begin < 60:
                slow.sendall(GREETING[:1])
                time.sleep(0.1)
        assert time.monotonic() - begin < 60 and _end(silent) == b""
    _still_serves(served)


def test_many_silent_peers_do_not_keep_a_client_out(store, monkeypatch):
    monkeypatch.setattr(listener, "_HANDSHAKE", 600.0)
    served = store("correct")
    with contextlib.ExitStack() as peers:
        for _ in range(listener._WAITING + 40):
            peers.enter_context(_peer(served, b""))
        begin = time.monotonic()
        _still_serves(served)
        assert time.monotonic() - begin < 60  # long before the handshakes of the others end
        assert len(served._lease.server._waiting) <= listener._WAITING


def test_strangers_at_the_port_of_remote_calls_are_bounded_too(monkeypatch):
    monkeypatch.setattr(listener, "_HANDSHAKE", 0.5)
    monkeypatch.setattr(listener, "_WAITING", 4)
    server = Server("127.0.0.1", b"secret", lambda parts, answer: answer(parts[::-1]))
    client = None
    try:
        with contextlib.ExitStack() as peers:
            silent = [
                peers.enter_context(socket.create_connection(("127.0.0.1", server.port), 60))
                for _ in range(12)
            ]
            assert all(peer.recv(1) == b"" for peer in silent)
        client = Client("other", "127.0.0.1", server.port, b"secret", 60, lambda function: function())
        assert [bytes(part) for part in client.ask([b"one", b"two"]).wait()] == [b"two", b"one"]
        assert not server._waiting
    finally:
        if client is not None:
            client.close()
        server.close()


@pytest.mark.parametrize("name", ["send", "receive"])
def test_an_answer_that_nobody_has_read_is_not_taken_for_the_next(store, monkeypatch, name):
    """As where a signal's handler raises an error in the middle of a request."""
    served = store("correct")
    served.set("key", "value")
    done, main, interrupts = getattr(tcp_store.wire, name), threading.get_ident(), [KeyboardInterrupt]

    def once(*given):
        if threading.get_ident() != main or not interrupts:  # the server's threads use the same functions
            return done(*given)
        if name == "send":
            done(*given)
        raise interrupts.pop()

    monkeypatch.setattr(tcp_store.wire, name, once)
    with pytest.raises(KeyboardInterrupt):
        served.check(["key"])
    assert served.get("key") == b"value" and served.add("count", 3) == 3 and not served.check(["other"])


def test_a_server_that_cannot_accept_tries_again_after_a_pause(monkeypatch):
    """As where no file descriptor is free. Without a pause, it would occupy a core."""
    steps = []

    class Socket:
        def accept(self):
            steps.append("accept")
            server._closed = len(steps) > 4
            raise OSError("Too many open files")

    def sleep(seconds):
        assert 0 < seconds < 1
        steps.append("pause")

    server = tcp_store._Server.__new__(tcp_store._Server)
    server._socket, server._closed = Socket(), False
    monkeypatch.setattr(listener, "time", types.SimpleNamespace(sleep=sleep))
    server._accept()
    assert steps == ["accept", "pause", "accept", "pause", "accept"]


# -- addresses ---------------------------------------------------------------------------------------------
def _listening(pids) -> set:
    """The addresses, in the kernel's notation, on which processes accept TCP connections or UDP messages."""
    sockets = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            for handle in os.listdir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    sockets.add(os.readlink(f"/proc/{pid}/fd/{handle}"))
    found = set()
    for table, states in (("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")):
        with contextlib.suppress(FileNotFoundError), open(f"/proc/net/{table}") as lines:
            for line in list(lines)[1:]:
                words = line.split()
                if words[3] == states and f"socket:[{words[9]}]" in sockets:
                    found.add(words[1].split(":")[0])
    return found


LOOPBACK = {"0100007F", "00000000000000000000000001000000"}


@pytest.mark.parametrize(
    "extra, options",
    [({}, ()), ({"MPIR_CVAR_CH4_NETMOD": "ofi"}, ()), ({}, ("--master-addr", socket.gethostname()))],
    ids=["default", "libfabric", "host name"],
)
def test_a_job_of_one_machine_listens_on_loopback_only(tmp_path, extra, options):
    pytest.importorskip("mpi4py")
    (tmp_path / "job.py").write_text(UP)
    mark, sign = f"network-{os.getpid()}-{time.monotonic_ns()}", str(tmp_path / "sign")
    job = subprocess.Popen(
        [sys.executable, *TORCHRUN, "--nproc-per-node", "2", *options, str(tmp_path / "job.py"), sign],
        env=environment(MSADAPTER_TEST_JOB=mark, **extra),
    )
    try:
        end = time.monotonic() + 120
        while not (os.path.exists(sign + "0") and os.path.exists(sign + "1")):
            assert time.monotonic() < end and job.poll() is None, "the ranks have not started"
            time.sleep(0.05)
        addresses = _listening(left(mark))
        open(sign + "end", "w").close()
        assert job.wait(120) == 0
    finally:
        job.send_signal(signal.SIGTERM)
        job.wait(40)
    assert addresses and addresses <= LOOPBACK


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.0.0.2", "::1", "[::1]"])
def test_a_store_at_a_loopback_address_listens_there(store, host):
    served = store(host=host)
    address = served._lease.server._socket.getsockname()[0]
    assert address in ("127.0.0.1", "::1", host)
    _still_serves(served)


def test_a_single_process_listens_on_loopback_only():
    url = "tcp://a-name-of-this-machine:0"
    store, _, _ = next(dist.rendezvous(url, rank=0, world_size=1, timeout=SOON))
    assert store._lease.server._socket.getsockname()[0] == "127.0.0.1"
    store.close()


def test_a_server_ends_with_the_last_store_of_its_port():
    first = dist.TCPStore("127.0.0.1", 0, is_master=True, multi_tenant=True, timeout=SOON)
    second = dist.TCPStore("127.0.0.1", first.port, is_master=True, multi_tenant=True, timeout=SOON)
    client = dist.TCPStore("127.0.0.1", first.port, timeout=SOON)
    second.set("key", "value")
    del second
    assert client.get("key") == b"value"
    del first
    with pytest.raises(dist.DistNetworkError):
        client.get("key")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", client.port))


def test_a_forked_child_does_not_end_the_server():
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, timeout=SOON)
    child = os.fork()
    if not child:
        del store
        os._exit(0)
    os.waitpid(child, 0)
    socket.create_connection(("127.0.0.1", store.port)).close()


def test_an_open_store_says_how_to_set_a_secret(store):
    with pytest.warns(UserWarning, match=f"has no secret.*{SECRET}"):
        served = store(host="a-name-of-this-machine")
    assert served.add("number", 2) == 2


# -- launchers ---------------------------------------------------------------------------------------------
@pytest.fixture
def two_launchers(tmp_path):
    """Run two launchers on this machine, as two nodes, each with a secret. Return (exit code, output) of both."""
    (tmp_path / "job.py").write_text(PLAIN)
    jobs = []

    def run(options, secrets):
        port = free_port()
        for node, secret in enumerate(secrets):
            extra = {} if secret is None else {SECRET: secret}
            command = [*TORCHRUN, "--nnodes", 2, "--node-rank", node, "--master-port", port]
            jobs.append(
                subprocess.Popen(
                    [sys.executable, *map(str, command), *options(node), str(tmp_path / "job.py")],
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    env=environment(**extra),
                )
            )
        return [(job.communicate(timeout=PATIENCE)[0], job.returncode) for job in jobs]

    yield run
    for job in jobs:
        job.kill()
        job.communicate()


def test_two_machines_with_a_secret_in_the_environment(two_launchers):
    done = two_launchers(lambda node: (), ["correct=,horse"] * 2)
    assert sorted(done) == [("rank 0 of 2\n", 0), ("rank 1 of 2\n", 0)]


def test_two_machines_with_a_secret_in_a_file(two_launchers, tmp_path):
    path = tmp_path / "secret"
    path.write_text("correct=horse\n")
    path.chmod(0o600)
    conf = [f"secret_file={path}", "secret=correct=horse,join_timeout=120"]
    done = two_launchers(lambda node: ("--rdzv-conf", conf[node]), [None, "not used"])
    assert sorted(done) == [("rank 0 of 2\n", 0), ("rank 1 of 2\n", 0)]


@pytest.mark.parametrize("secrets", [("one", "two"), ("one", None), (None, "two")])
def test_two_machines_with_different_secrets(two_launchers, secrets):
    (first, code), (second, other) = two_launchers(
        lambda node: ("--rdzv-conf", "join_timeout=4"), list(secrets)
    )
    assert code != 0 and other != 0 and "rank" not in second.split()
    assert "give every launcher of the job the same secret" in second and "Traceback" not in second, second
    assert "refused a connection from 127.0.0.1" in first and "Traceback" not in first, first


@pytest.mark.parametrize(
    "conf, said",
    [
        ("secret_file=FILE", "other users may read or write secret_file="),
        ("secret_file=/nowhere/at/all", "secret_file=/nowhere/at/all cannot be read"),
        ("secret_file=/dev/null", "/dev/null is not a regular file"),
        ("secret=", "the secret must have 1 to 4096 bytes"),
        ("secret=a,secret_file=b", "give either secret or secret_file"),
        ("my,secret", "each part must be key=value"),
    ],
)
def test_a_secret_that_cannot_be_used_is_an_error(tmp_path, conf, said):
    path = tmp_path / "secret"
    path.write_text("correct")
    path.chmod(0o644)
    (tmp_path / "job.py").write_text(PLAIN)
    done = torchrun("--rdzv-conf", conf.replace("FILE", str(path)), tmp_path / "job.py")
    assert done.returncode == 1 and said in done.stderr and "Traceback" not in done.stderr
    assert "my" not in done.stderr.split()
