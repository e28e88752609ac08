"""Parts of torch.distributed that need no other process."""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from datetime import timedelta

import pytest

import msadapter as torch
import msadapter.distributed as dist
from msadapter.distributed import mpi_world, msrun, progress, run, setup, signatures, utils
from msadapter.distributed._shard.sharded_tensor import (
    Shard,
    ShardedTensor,
    ShardedTensorMetadata,
    TensorProperties,
)
from msadapter.distributed.agent import Job
from msadapter.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from msadapter.distributed.debug import Checked
from msadapter.distributed.optim import PostLocalSGDOptimizer
from msadapter.distributed.store import HashStore, PrefixStore, _seconds


def _parsed(*words, **variables):
    return run.parse_args([*words, "script.py", "--own", "3"])


def test_options_of_the_launcher(monkeypatch):
    args = _parsed("--nproc-per-node", "3", "--nnodes=1:4", "--rdzv_conf", "a=1,b=x=y")
    assert (args.nproc_per_node, args.nnodes, args.training_script, args.training_script_args) == (
        "3", "1:4", "script.py", ["--own", "3"],
    )  # fmt: skip
    monkeypatch.setenv("PET_NNODES", "2")
    monkeypatch.setenv("PET_MASTER_PORT", "1234")
    monkeypatch.setenv("PET_UNKNOWN", "7")
    monkeypatch.setenv("XPET_NODE_RANK", "7")
    args = _parsed()
    assert (args.nnodes, args.master_port, args.node_rank) == ("2", "1234", None)
    assert not hasattr(args, "unknown")
    assert _parsed("--nnodes=3").nnodes == "3"
    for value, standalone in (("0", False), ("1", True)):
        monkeypatch.setenv("PET_STANDALONE", value)
        assert _parsed().standalone is standalone and _parsed("--standalone").standalone is True
    monkeypatch.setenv("PET_STANDALONE", "yes")
    with pytest.raises(SystemExit, match="torchrun: a variable PET_... .* must be 0 or 1: .*'yes'"):
        _parsed()


def test_numbers_of_machines_and_streams():
    assert run._nodes("2") == (2, 2) and run._nodes("1:4") == (1, 4)
    for text in ("0", "0:3", "4:3", "-1"):
        with pytest.raises(ValueError, match="nnodes"):
            run._nodes(text)
    assert run._streams("3", 2) == {0: 3, 1: 3} and run._streams("0:1,1:2", 4) == {0: 1, 1: 2}
    assert run._settings("a=1, b = x=y,") == {"a": "1", "b": " x=y"}
    with pytest.raises(ValueError, match="key=value"):
        run._settings("secret")
    assert run._local_size("4") == 4 and run._local_size("cpu") >= 1
    for text in ("0", "-1", "many", ""):
        with pytest.raises(ValueError, match="nproc_per_node"):
            run._local_size(text)


def test_the_job_of_the_options(monkeypatch):
    monkeypatch.delenv("MSADAPTER_JOB_SECRET", raising=False)

    def job(*words):
        return run.job_of(_parsed(*words))

    one = job("--nproc-per-node=2")
    assert (one.nodes, one.least_nodes, one.node_rank, one.host, one.port) == (1, 1, 0, "127.0.0.1", 0)
    assert (one.local_size, one.join_timeout, one.last_call, one.silence, one.shown) == (
        2,
        600.0,
        30.0,
        15.0,
        None,
    )
    assert one.log_dir is None and one.secret is None and len(one.run_id) == 12
    assert job("--nnodes=2").port == 29500 and job("--nnodes=2", "--rdzv-backend=c10d").port == 29400
    assert job("--nnodes=2").node_rank == 0 and job("--nnodes=2", "--rdzv-backend=c10d").node_rank is None
    assert (
        job("--nnodes=2", "--node-rank=1").node_rank == 1
        and job("--nnodes=1:2", "--node-rank=1").node_rank is None
    )
    two = job("--nnodes=2", "--rdzv-endpoint=host:77", "--rdzv-id=name")
    assert (two.host, two.port, two.run_id) == ("host", 77, "name")
    alone = job("--standalone", "--nnodes=3", "--rdzv-endpoint=host:77")
    assert (alone.nodes, alone.host, alone.port) == (1, "127.0.0.1", 0)
    conf = "join_timeout=7,last_call_timeout=8,keep_alive_timeout=9,secret=0123456789abcdef0123456789abcdef"
    set_up = job(
        "--rdzv-conf", conf, "--local-ranks-filter=0,2", "--max-restarts=3", "--monitor-interval=0.5"
    )
    assert (set_up.join_timeout, set_up.last_call, set_up.silence) == (7.0, 8.0, 9.0)
    assert set_up.shown == {0, 2} and set_up.max_restarts == 3 and set_up.interval == 0.5
    assert set_up.secret == b"0123456789abcdef0123456789abcdef"
    with pytest.raises(ValueError, match="either secret or secret_file"):
        job("--rdzv-conf", "secret=a,secret_file=b")
    assert job("--redirects=3").log_dir is not None and job("--tee=0:1").log_dir is not None
    assert job("--log-dir=here", "--tee=3").log_dir == "here"


def test_commands():
    def command(*words):
        return run._command(_parsed(*words))

    assert command("--no-python") == ["script.py", "--own", "3"]
    assert command()[1:] == ["-u", "script.py", "--own", "3"]
    assert command("-m")[1:] == ["-u", "-m", "script.py", "--own", "3"]
    path = command("--run-path")
    assert path[2] == "-c" and "runpy" in path[3] and path[4:] == ["script.py", "--own", "3"]


def test_rendezvous_by_an_own_scheme(monkeypatch):
    monkeypatch.setattr(setup, "_handlers", {})
    store = HashStore()

    def handler(url, timeout=None, **more):
        yield store, 3, 4, url, timeout, more

    setup.register_rendezvous_handler("own", handler)
    with pytest.raises(RuntimeError, match="own:// already registered"):
        setup.register_rendezvous_handler("own", handler)
    found = next(dist.rendezvous("own://place", timeout=timedelta(seconds=3), extra=1))
    assert found == (store, 3, 4, "own://place", timedelta(seconds=3), {"extra": 1})
    with pytest.raises(RuntimeError, match="other"):
        next(dist.rendezvous("other://place", 0, 1))


def test_rendezvous_by_a_file(tmp_path):
    store, rank, size = next(dist.rendezvous(f"file://{tmp_path}/store?rank=1&world_size=2"))
    store.set("a", "b")
    assert (rank, size, store.get("a")) == (1, 2, b"b")
    assert next(dist.rendezvous(f"file://{tmp_path}/store", 0, 2))[1:] == (0, 2)
    with pytest.raises(ValueError, match="file:// rendezvous: rank parameter missing"):
        next(dist.rendezvous(f"file://{tmp_path}/store"))


@pytest.mark.parametrize(
    ("url", "error", "text"),
    [
        ("file://", ValueError, "using file:// rendezvous: path missing"),
        ("tcp://127.0.0.1?rank=0&world_size=1", ValueError, "using tcp:// rendezvous: port number missing"),
        ("tcp://[::1]?rank=0&world_size=1", ValueError, "using tcp:// rendezvous: port number missing"),
        ("tcp://127.0.0.1:23456?rank=0", ValueError, "using tcp:// rendezvous: world size parameter missing"),
        ("tcp://:23456?rank=0&world_size=1", AssertionError, "hostname cannot be None"),
    ],
)
def test_what_a_rendezvous_needs(url, error, text):
    with pytest.raises(error, match=text):
        next(dist.rendezvous(url))


def test_a_rendezvous_is_told_the_rank_once(tmp_path):
    with pytest.raises(AssertionError, match="has node-specific arguments"):
        next(dist.rendezvous(f"file://{tmp_path}/store?rank=1&world_size=2", 1, 2))


def test_the_last_user_of_a_file_removes_it(tmp_path):
    path = tmp_path / "store"
    first, second, without_number = (dist.FileStore(str(path), n) for n in (2, 2, -1))
    assert first.num_keys() == 1  # the number of users, as in PyTorch
    del first, second
    assert path.exists()
    del without_number
    assert path.exists()  # its number of processes is not known
    third = dist.FileStore(str(path), 1)
    child = os.fork()
    if child == 0:
        del third
        os._exit(0)
    os.waitpid(child, 0)
    assert path.exists()
    del third
    assert not path.exists()


class _Work:
    def __init__(self):
        self.done = False
        self.polled = 0

    def poll(self):
        self.polled += 1
        return self.done


def test_works_are_followed_until_they_end(monkeypatch):
    monkeypatch.setattr(progress, "_works", set())
    one, two = _Work(), _Work()
    two.done = True
    progress.follow(one)
    end = time.monotonic() + 5
    while not one.polled and time.monotonic() < end:
        time.sleep(0.001)
    assert one.polled
    progress._works.add(two)
    assert progress.pending() == [one]
    one.done = True
    while progress._works and time.monotonic() < end:
        time.sleep(0.001)
    assert progress.pending() == [] and not progress._works
    count = one.polled
    time.sleep(0.02)
    assert one.polled == count


def test_seconds_and_prefixes():
    assert _seconds(timedelta(minutes=1)) == 60.0 and _seconds(3) == 3.0
    store = HashStore()
    inner = PrefixStore("a", PrefixStore("b", store))
    inner.set("key", "value")
    assert store.check(["b/a/key"]) or store.check(["a/b/key"])
    assert inner.get("key") == b"value" and inner.check(["key"]) and not inner.check(["key", "other"])
    assert inner.add("n", 3) == 3 and inner.add("n", -1) == 2 and inner.get("n") == b"2"
    inner.append("key", b"s")
    assert inner.get("key") == b"values"
    assert inner.compare_set("new", "", "x") == b"x" and inner.compare_set("new", "y", "z") == b"x"
    assert inner.compare_set("new", "x", "z") == b"z" and inner.compare_set("absent", "x", "z") == b"x"
    assert not inner.check(["absent"])
    assert inner.delete_key("new") is True and inner.delete_key("new") is False
    inner.multi_set(["p", "q"], ["1", "2"])
    assert inner.multi_get(["q", "p"]) == [b"2", b"1"]
    before = time.monotonic()
    with pytest.raises(dist.DistStoreError):
        inner.wait(["never"], timedelta(seconds=0.1))
    assert time.monotonic() - before > 0.09
    threading.Timer(0.05, inner.set, ("late", "1")).start()
    inner.wait(["late"], timedelta(seconds=60))


class _Backend:
    rank, ranks, name = 0, [4], "toy"

    def allreduce(self, tensor, op):
        return "done"

    def allgather(self, parts, tensor):
        return "gathered"

    def other(self):
        return "plain"


def test_what_detail_compares():
    checked = Checked(_Backend(), HashStore(), 1.0)
    x = torch.ones(2, 3)
    assert checked.allreduce(x, "sum") == "done" and checked.other() == "plain"
    assert checked._fingerprint("allreduce", (x, "sum")) == (
        "CollectiveFingerPrint(SequenceNumber=1, OpType=ALLREDUCE, TensorShape=[2, 3], TensorDtypes=torch.float32, "
        "Argument='sum')"
    )
    assert checked._fingerprint("allgather", ([x, x], x.double())) == (
        "CollectiveFingerPrint(SequenceNumber=1, OpType=ALLGATHER, TensorDtypes=torch.float64)"
    )
    assert checked._fingerprint("scatter", ([x], 2)).endswith("TensorDtypes=torch.float32, Argument=2)")
    assert checked._fingerprint("barrier", ()) == "CollectiveFingerPrint(SequenceNumber=1, OpType=BARRIER)"
    assert checked.allgather([x], x) == "gathered" and checked.count == 2
    checked.rank = 0
    assert "rank" in vars(checked.backend)
    kept = []
    for _ in range(3):  # a key is deleted when the rank has made two further calls
        checked.allreduce(x, "sum")
        kept.append([number for number in range(1, 7) if checked.store.check([f"{number}/0"])])
    assert kept == [[2, 3], [3, 4], [4, 5]]


def test_signatures_of_different_flows():
    flows = [(s, r, n) for s in range(4) for r in range(4) for n in (0, 1, 2, 1 << 20)]
    assert len({signatures._C.signature_flow(*flow) for flow in flows}) == len(flows)


def test_the_sums_of_flows_agree_if_every_pair_agrees():
    sizes = [[1, 2, 3], [4, 5, 1 << 40], [0, 7, 8]]  # of the parts, by sender and receiver
    sent = sum(signatures._C.signature_flow_to_all(rank, row) for rank, row in enumerate(sizes))
    received = sum(
        signatures._C.signature_flow_from_all(rank, column)
        for rank, column in enumerate(zip(*sizes, strict=True))
    )
    assert (sent - received) % (1 << 64) == 0
    wrong = signatures._C.signature_flow_from_all(0, [1, 0, 4])  # 4 bytes that moved to another sender
    assert (sent - received - wrong + signatures._C.signature_flow_from_all(0, [1, 4, 0])) % (1 << 64) != 0


def test_what_a_signature_says():
    ledger = signatures._C.ledger_open(1)
    broadcast = ("BROADCAST", torch.bfloat16, None, 1, 12, 0, 0)
    assert signatures._C.ledger_unconfirmed(ledger) == 0
    early = signatures._C.ledger_sign(ledger, True, 5, *broadcast)
    assert signatures._C.ledger_unconfirmed(ledger) == 5  # this rank is the root and waits for no other rank
    assert signatures._C.signature_fields(early) == ("BROADCAST", torch.bfloat16, -1, 5, 1, 12)
    reduce = ("ALLREDUCE", torch.float32, 0, -1, 3, 0, 0)
    after, alone = (
        signatures._C.ledger_sign(one, False, 6, *reduce) for one in (ledger, signatures._C.ledger_open(1))
    )
    assert signatures._C.ledger_unconfirmed(ledger) == 0
    assert signatures._C.signature_fields(after) == ("ALLREDUCE", torch.float32, 0, 6, -1, 3)
    # the signature carries what was before it, although it says the same
    assert signatures._C.signatures_disagreeing(after, alone) == 0
    assert signatures._C.signatures_disagreeing(after, after + alone) == 1
    assert signatures._C.signatures_disagreeing(alone, signatures._C.signature_alone(after)) == -1
    sending = signatures._C.signature_sending(alone, 9)
    assert signatures._C.signature_sent(sending) == 9
    assert signatures._C.signatures_disagreeing(alone, alone + sending) == 2  # the sums differ
    with pytest.raises(ValueError, match="not a signature"):
        signatures._C.signature_fields(alone[1:])
    with pytest.raises(ValueError, match="no collective SHUFFLE"):
        signatures._C.ledger_sign(ledger, False, 7, "SHUFFLE", *reduce[1:])


def test_helpers():
    x = torch.arange(6.0)
    assert utils._alloc_storage(x, (6,)) is False
    utils._free_storage(x)
    assert x.untyped_storage().nbytes() == 0
    assert utils._alloc_storage(x, (6,)) is True and x.untyped_storage().nbytes() == 24
    with pytest.raises(AssertionError):
        utils._alloc_storage(x, (7,))
    with pytest.raises(AssertionError, match="unsafe"):
        utils._free_storage(x[1:])
    assert utils._pack_kwargs(1, a=2, b=3) == ((1, 2, 3), ("a", "b"))
    assert utils._unpack_kwargs((1, 2, 3), ("a", "b")) == ((1,), {"a": 2, "b": 3})
    assert utils._unpack_kwargs((1, 2), ("a", "b")) == ((), {"a": 1, "b": 2})
    with pytest.raises(AssertionError, match="too many keys"):
        utils._unpack_kwargs((1,), ("a", "b"))
    state = {"a.x": 1, "a.y": 2, "b.x": 3}
    utils._replace_by_prefix(state, "a.", "c.d.")
    assert state == {"b.x": 3, "c.d.x": 1, "c.d.y": 2}
    with pytest.raises(ValueError, match="distinct"):
        utils._replace_by_prefix(state, "a", "a")
    args, kwargs = utils._cast_forward_inputs(torch.float64, x[:1], [x[:1].long()], k={"a": (x[:1],)})
    assert [args[0].dtype, args[1][0].dtype, kwargs["k"]["a"][0].dtype] == [
        torch.float64,
        torch.int64,
        torch.float64,
    ]
    args, kwargs = utils._cast_forward_inputs(None, x, k=3)
    assert args == (x,) and kwargs == {"k": 3}


@pytest.mark.parametrize(
    "size, text", [(0, "positive"), (-1, "positive"), (3, "exceed"), (None, "Default group size")]
)
def test_sizes_of_subgroups(size, text, monkeypatch):
    monkeypatch.setattr(setup, "get_world_size", lambda group=None: 2)
    with pytest.raises(ValueError, match=text):
        setup.new_subgroups(size)


def test_ranks_by_devices(monkeypatch):
    class Answer:
        stdout = b"0\n"

    asked = []
    monkeypatch.setattr(run.subprocess, "run", lambda words, **k: asked.append((words, k)) or Answer)
    monkeypatch.setattr(run.os, "cpu_count", lambda: 7)
    assert run._local_size("auto") == 7 and run._local_size("cpu") == 7 and len(asked) == 1
    with pytest.raises(ValueError, match="Cuda is not available"):
        run._local_size("gpu")
    Answer.stdout = b"4\n"
    assert run._local_size("auto") == 4 and run._local_size("gpu") == 4
    words, options = asked[-1]
    assert (
        words[0] == run.sys.executable
        and words[1] == "-c"
        and options == {"check": True, "capture_output": True}
    )
    compile(words[2], "code", "exec")
    monkeypatch.setattr(run.os, "cpu_count", lambda: None)
    assert run._local_size("cpu") == 1


def test_truth_of_msrun_options(capsys):
    assert [msrun._truth(text) for text in ("True", "true", "FALSE")] == [True, True, False]
    with pytest.raises(SystemExit):
        msrun.get_args_parser().parse_args(["--join=maybe", "x.py"])
    assert "argument --join: must be True or False, but got 'maybe'" in capsys.readouterr().err


def test_jobs_of_msrun(tmp_path):
    def job(*words):
        return msrun.job_of(msrun.get_args_parser().parse_args([*words, "script.py", "--own", "3"]))

    plain = job("--worker_num", "2", "--local_worker_num", "2")
    assert plain.command[1:] == ["-u", "script.py", "--own", "3"] and plain.environment == {"RANK_SIZE": 2}
    assert (plain.nodes, plain.local_size, plain.node_rank, plain.log_dir) == (1, 2, 0, ".")
    assert (
        plain.log_name == "worker_{rank}.log"
        and plain.redirects == {0: 3, 1: 3}
        and plain.tee == {0: 0, 1: 0}
    )
    assert plain.shown_ranks is None and plain.tee_prefix is False
    other = job("--worker_num=4", "--local_worker_num=2", "--worker_log_name=w{rank}x", "--cluster_time_out=-1",
                "--tail_worker_log=0,3", "--join=True", "--log_dir=logs", "--master_addr=1.2.3.4", "--master_port=99")  # fmt: skip
    assert (other.nodes, other.least_nodes, other.node_rank, other.log_name) == (2, 2, None, "w{rank}x.log")
    assert (
        other.join_timeout == 10 * 365 * 86400.0 and other.shown_ranks == {0, 3} and other.tee == {0: 3, 1: 3}
    )
    assert (other.host, other.port, other.log_dir) == ("1.2.3.4", 99, "logs")
    assert (
        job("--worker_num=4", "--local_worker_num=2", "--node_rank=1", "--cluster_time_out=7").node_rank == 1
    )
    assert job("--worker_num=4", "--local_worker_num=2", "--cluster_time_out=7").join_timeout == 7.0
    assert job("--worker_num=1", "--local_worker_num=1", "--cluster_time_out=0").join_timeout == 0.0
    for words in (("--worker_num=3", "--local_worker_num=2"), ("--worker_num=0", "--local_worker_num=1")):
        with pytest.raises(ValueError, match="must be a multiple"):
            job(*words)
    with pytest.raises(SystemExit, match="can't open file"):
        msrun.main(["--worker_num=1", "--local_worker_num=1", str(tmp_path / "absent.py")])


def test_defaults_of_msrun_are_those_of_mindspore(monkeypatch):
    from mindspore.parallel.cluster import run as theirs

    monkeypatch.setattr(sys, "argv", ["msrun", "script.py"])
    expected, ours = vars(theirs.get_args()), vars(msrun.get_args_parser().parse_args(["script.py"]))
    common = ours.keys() & expected.keys() - {"worker_log_name"}  # "" stands for worker_{rank} there
    assert {"worker_num", "local_worker_num", "master_addr", "master_port", "node_rank"} <= common
    assert {name: ours[name] for name in common} == {name: expected[name] for name in common}


def test_processes_find_one_another_through_the_store():
    """The lines that an MPI library sends, and the answers, for two ranks of one machine."""
    store = HashStore()
    managers = [mpi_world._Manager(store, rank, ["one", "one"], "job-7") for rank in (0, 1)]
    streams = [m.theirs.makefile("rw") for m in managers]

    def ask(rank, line):
        streams[rank].write(line + "\n")
        streams[rank].flush()

    def said(rank):
        return streams[rank].readline().rstrip("\n")

    for rank, m in enumerate(managers):
        variables = m.environment()
        assert variables == {"PMI_FD": str(m.theirs.fileno()), "PMI_RANK": str(rank), "PMI_SIZE": "2"}
        for line, answer in (
            ("cmd=init pmi_version=1 pmi_subversion=1", "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0"),
            ("cmd=get_maxes", "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024"),
            ("cmd=get_appnum", "cmd=appnum appnum=0"),
            ("cmd=get_my_kvsname", "cmd=my_kvsname kvsname=job-7"),
            ("cmd=get_universe_size", "cmd=universe_size size=2"),
            ("cmd=nonsense", "cmd=unknown rc=-1 msg=unknown_command"),
            ("cmd=get key=absent", "cmd=get_result rc=-1 msg=key_not_found value=unknown"),
            ("cmd=get key=PMI_process_mapping", "cmd=get_result rc=0 msg=success value=(vector,(0,1,2))"),
        ):  # fmt: skip
            ask(rank, line)
            assert said(rank) == answer
    for turn in ("a", "b"):  # the second barrier is another one than the first
        ask(0, f"cmd=put kvsname=job-7 key={turn} value=here={turn} there")
        assert said(0) == "cmd=put_result rc=0 msg=success"
        ask(0, "cmd=barrier_in")
        managers[0].theirs.settimeout(0.2)
        with pytest.raises(TimeoutError):
            managers[0].theirs.recv(1, socket.MSG_PEEK)  # the other rank has not come yet
        managers[0].theirs.settimeout(None)
        ask(1, "cmd=barrier_in")
        assert said(0) == said(1) == "cmd=barrier_out"
        ask(1, f"cmd=get kvsname=job-7 key={turn}")
        assert said(1) == f"cmd=get_result rc=0 msg=success value=here={turn} there"
    ask(0, "cmd=finalize")
    assert said(0) == "cmd=finalize_ack"
    ask(1, "cmd=abort")
    assert said(1) == ""  # the end of the stream, at which an MPI library ends its process


@pytest.mark.parametrize(
    ("nodes", "runs"),
    [
        (["a"], "(0,1,1)"),
        (["a", "a", "b", "b"], "(0,1,2),(1,1,2)"),
        (["a", "b", "a"], "(0,1,1),(1,1,1),(0,1,1)"),
        (["b", "b", "b", "a"], "(0,1,3),(1,1,1)"),
    ],
)
def test_which_ranks_share_a_machine(nodes, runs):
    manager = mpi_world._Manager(HashStore(), 0, nodes, "job")
    assert manager._mapping() == f"(vector,{runs})"
    manager.theirs.close()


def test_who_has_started_this_process(monkeypatch):
    names = [n for n in os.environ if n.startswith(("PMI", "OMPI", "TORCHELASTIC"))]
    for name in names:
        monkeypatch.delenv(name)

    def found(**variables):
        with pytest.MonkeyPatch.context() as patch:
            for name, value in variables.items():
                patch.setenv(name, value)
            return mpi_world.under_mpiexec()

    assert not found() and not found(PMI_RANK="0") and not found(PMI_PORT="1") and not found(PMIX_RANK="0")
    assert found(PMI_RANK="0", PMI_PORT="h:1") and found(PMIX_RANK="0", PMIX_SERVER_URI2="x")
    assert found(OMPI_COMM_WORLD_RANK="0", OMPI_MCA_ess_base_jobid="x") and not found(OMPI_MCA_orte_x="y")
    assert not found(PMI_RANK="0", PMI_PORT="h:1", TORCHELASTIC_RUN_ID="a")
    one, two = socket.socketpair()
    with one, two:
        assert found(PMI_RANK="0", PMI_FD=str(one.fileno()))
    for number in ("", "x", "-1", "99999", "9" * 30):
        assert not found(PMI_RANK="0", PMI_FD=number)


def test_values_of_a_sharded_tensor():
    own = Shard.from_tensor_and_offsets(torch.ones(2, 3), [4, 0], 1)
    assert own.metadata.shard_offsets == [4, 0] and own.metadata.shard_sizes == [2, 3]
    assert str(own.metadata.placement).startswith("rank:1/cpu")
    properties = TensorProperties(dtype=torch.float32, requires_grad=True)
    whole = ShardedTensorMetadata([own.metadata], torch.Size([6, 3]), properties)
    made = ShardedTensor(whole, [own])
    assert made.local_tensor() is own.tensor and made.size() == (6, 3) and made.size(1) == 3
    assert made.dtype is torch.float32 and made.requires_grad is True and made.metadata() is whole
    for shards in ([], [own, own]):
        with pytest.raises(NotImplementedError, match="single local shard"):
            ShardedTensor(whole, shards).local_tensor()


def test_steps_of_an_averaging_optimizer():
    class Averager:
        step = 3
        seen: list = []

        def average_parameters(self, params):
            self.seen.append(params)

    parameter = torch.nn.Parameter(torch.ones(2))
    averager = Averager()
    made = PostLocalSGDOptimizer(torch.optim.SGD([parameter], 0.5, momentum=0.9), averager)
    parameter.grad = torch.ones(2)
    assert made.step(lambda: 7) == 7 and made.step() is None and averager.seen == [made.param_groups] * 2
    state = made.state_dict()
    assert state["step"] == 3 and made.state is made.optim.state and repr(made) == repr(made.optim)
    averager.step = 9
    other = PostLocalSGDOptimizer(torch.optim.SGD([parameter], 0.1, momentum=0.9), Averager())
    other.load_state_dict(state | {"step": 5})
    assert other.averager.step == 5 and other.param_groups is other.optim.param_groups
    assert other.param_groups[0]["lr"] == 0.5
    with pytest.warns(UserWarning, match="does not contain a step counter"):
        other.load_state_dict({k: v for k, v in state.items() if k != "step"})
    assert other.averager.step == 0
    other.add_param_group({"params": [torch.nn.Parameter(torch.ones(1))]})
    assert len(other.optim.param_groups) == 2
    parameter.grad = torch.ones(2)
    other.zero_grad(set_to_none=False)
    assert parameter.grad.tolist() == [0, 0]
    other.zero_grad()
    assert parameter.grad is None


def test_compressed_hooks():
    class Bucket:
        def __init__(self):
            self.held = torch.tensor([1.0, 1 / 3])

        def buffer(self):
            return self.held

        def set_buffer(self, value):
            self.held = value

    def hook(state, bucket, in_list):
        assert state == "state"
        future = torch.futures.Future()
        future.set_result([bucket.buffer() * 2] if in_list else bucket.buffer() * 2)
        return future

    for wrapper, dtype in (
        (default_hooks.fp16_compress_wrapper, torch.float16),
        (default_hooks.bf16_compress_wrapper, torch.bfloat16),
    ):
        for in_list in (True, False):
            bucket = Bucket()
            first = bucket.held
            found = wrapper(lambda s, b, in_list=in_list: hook(s, b, in_list))("state", bucket).wait()
            assert found is first and bucket.held.dtype is dtype
            assert torch.equal(found, (torch.tensor([1.0, 1 / 3]).to(dtype) * 2).float())
    state = type("State", (), {"matrix_approximation_rank": 2, "min_compression_rate": 2})
    for shape, rank in (
        ((9,), 0),
        ((40, 40), 2),
        ((4, 4), 0),
        ((40, 1, 40), 2),
        ((8, 8), 0),
        ((16, 16), 2),
        ((1, 99), 0),
    ):
        assert powerSGD_hook._rank_of(state, torch.zeros(shape)) == rank, shape


def test_a_job_without_settings():
    """One machine with one rank, which is not started again, listens on loopback and shows all output."""
    job = Job(["program"])
    assert (job.local_size, job.nodes, job.least_nodes, job.node_rank, job.max_restarts) == (1, 1, 1, 0, 0)
    assert (job.host, job.port, job.run_id, job.role, job.secret) == ("127.0.0.1", 0, "none", "default", None)
    assert (job.interval, job.join_timeout, job.last_call, job.silence) == (0.1, 600.0, 30.0, 15.0)
    assert job.tee_prefix and not job.bind_cores and job.shown is job.shown_ranks is None
    assert job.log_dir is job.log_name is None
    assert job.redirects == job.tee == job.environment == job.copied_names == {}
