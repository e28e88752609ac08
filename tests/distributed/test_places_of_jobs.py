"""What a process finds at the start of a job, and what it does while others fail: defaults, devices, and ends of patience."""

from __future__ import annotations

import socket
import threading
import types
from datetime import timedelta

import pytest

import msadapter as torch
import msadapter.distributed as dist
from msadapter import accelerator, nn
from msadapter.distributed import (
    _symmetric_memory,
    aborting,
    debug,
    hccl_backend,
    mpi_world,
    run,
    setup,
    tcp_store,
)
from msadapter.distributed.debug import Checked
from msadapter.distributed.fsdp import _wrap_utils, wrap
from msadapter.distributed.fsdp._fully_shard import _fsdp_init
from msadapter.distributed.store import HashStore
from msadapter.distributed.tensor import DTensor, Shard


# ---- the start
@pytest.mark.parametrize("under", [False, True])
def test_a_job_of_mpi_without_variables(monkeypatch, under):
    """mpiexec's job if there is one, otherwise this process alone."""
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    made = []
    monkeypatch.setattr(mpi_world, "under_mpiexec", lambda: under)
    monkeypatch.setattr(mpi_world, "meet_under_mpiexec", lambda: (HashStore(), 1, 3))
    monkeypatch.setattr(
        setup.backends, "create", lambda *arguments: made.append(arguments) or backend_of(arguments)
    )
    monkeypatch.setattr(setup.watchdog.watch, "start", lambda *arguments: made.append("watched"))
    world = setup.world
    before = world.default_pg, dict(world.pg_map), world.group_count
    world.default_pg = None
    try:
        dist.init_process_group("mpi")
        group = world.default_pg
        assert (group.rank(), group.size()) == ((1, 3) if under else (0, 1)) and world.group_count == 1
        name, rank, size, ranks, store, timeout = made[0]
        assert (name, rank, size, ranks) == (("mpi", 1, 3, [0, 1, 2]) if under else ("mpi", 0, 1, [0]))
        assert timeout == setup.default_pg_timeout and made[1:] == (["watched"] if under else [])
    finally:
        world.default_pg, world.group_count = before[0], before[2]
        world.pg_map.clear()
        world.pg_map.update(before[1])


def backend_of(arguments):
    return types.SimpleNamespace(name="", rank=arguments[1], ranks=arguments[3], timeout=arguments[5])


def test_ranks_without_devices_and_without_known_cores(monkeypatch):
    answer = types.SimpleNamespace(stdout=b"0\n")
    monkeypatch.setattr(run.subprocess, "run", lambda *a, **k: answer)
    monkeypatch.setattr(run.os, "cpu_count", lambda: None)
    assert run._local_size("auto") == 1


def test_memory_of_other_processes_is_not_supported():
    assert _symmetric_memory.is_symm_mem_enabled_for_group("0") is False
    for name in ("empty", "rendezvous", "get_mem_pool", "set_backend", "get_symm_mem_workspace"):
        with pytest.raises(NotImplementedError, match=f"_symmetric_memory.{name} is not supported"):
            getattr(_symmetric_memory, name)(1, a=2)
        assert getattr(_symmetric_memory, name).__name__ == name


# ---- devices
def test_an_npu_must_hold_what_it_sends(monkeypatch):
    tensor = torch.arange(4.0)[::2]
    for own, inside in ((False, False), (True, True)):
        native = types.SimpleNamespace(has_own_memory=lambda v=own: v, in_device_memory=lambda t, v=inside: v)
        monkeypatch.setattr(hccl_backend, "_C", native)
        data = hccl_backend._data(tensor)
        assert data.is_contiguous() and data.tolist() == [0, 2]
    native = types.SimpleNamespace(has_own_memory=lambda: True, in_device_memory=lambda t: False)
    monkeypatch.setattr(hccl_backend, "_C", native)
    with pytest.raises(RuntimeError, match="No backend type associated with device type cpu"):
        hccl_backend._data(tensor)


@pytest.mark.parametrize("resumed", [True, False])
def test_communicators_of_an_npu_go_on(monkeypatch, resumed):
    import mindspore._c_expression as native

    manager = types.SimpleNamespace(resume_hccl_comm=lambda: resumed)
    monkeypatch.setattr(
        native, "CollectiveManager", types.SimpleNamespace(get_instance=lambda: manager), raising=False
    )
    if resumed:
        assert hccl_backend.resume() is None
    else:
        with pytest.raises(RuntimeError, match="HCCL did not resume its communicators"):
            hccl_backend.resume()


class Hccl(hccl_backend.HcclBackend):
    def __init__(self):
        pass


def test_groups_of_npus_are_used_again(monkeypatch):
    """Their communicators are resumed once for all groups, and the aborted backends are taken back."""
    resumed, inner = [], [Hccl(), Hccl()]
    groups = [
        types.SimpleNamespace(_backend=aborting.Aborted(inner[0], "the test")),
        types.SimpleNamespace(_backend=inner[1]),
    ]
    monkeypatch.setattr(aborting, "world", types.SimpleNamespace(pg_map=groups))
    monkeypatch.setattr(aborting, "default_group", lambda: None)
    monkeypatch.setattr(aborting, "resolve", lambda group: groups[0])
    monkeypatch.setattr(hccl_backend, "resume", lambda: resumed.append(1))
    with pytest.raises(NotImplementedError, match="rebuild_link=True"):
        aborting.reinit_process_group()
    assert not resumed and isinstance(groups[0]._backend, aborting.Aborted)
    assert aborting.reinit_process_group(rebuild_link=False) is None
    assert resumed == [1] and [g._backend for g in groups] == inner
    monkeypatch.setattr(aborting, "_inner", lambda pg: None)
    aborting.reinit_process_group(rebuild_link=False)
    assert resumed == [1]  # there is no NPU now


def test_what_an_aborted_group_still_knows():
    inner = types.SimpleNamespace(name="g", ranks=[0, 3], allreduce=lambda: 1, ended=lambda ranks: ranks[:1])
    aborted = aborting.Aborted(inner, "the test")
    aborted.timeout = 7.0
    assert inner.timeout == 7.0 == aborted.timeout and not hasattr(inner, "reason")
    assert aborted.ranks == [0, 3] and aborted.ended([3, 0]) == [3] and aborted.unconfirmed == 0
    aborted.close()
    with pytest.raises(RuntimeError, match="FORCE STOP: the process group 'g' was aborted by the test"):
        aborted.allreduce(1, op=2)
    aborted.reason, aborted.backend = "another", types.SimpleNamespace(name="h")
    assert aborted.name == "h" and aborted.reason == "another"


# ---- fully_shard
def test_the_mesh_of_all_is_made_if_none_is_given(monkeypatch):
    calls = []
    monkeypatch.setattr(_fsdp_init, "is_initialized", lambda: bool(calls))
    monkeypatch.setattr(_fsdp_init, "init_process_group", lambda: calls.append("init"))
    monkeypatch.setattr(_fsdp_init, "get_world_size", lambda: 6)
    monkeypatch.setattr(_fsdp_init, "init_device_mesh", lambda *a: types.SimpleNamespace(ndim=1, made=a))
    for _ in range(2):
        assert _fsdp_init.mesh_info(None).mesh.made == ("cpu", (6,))
    assert calls == ["init"]
    for ndim in (0, 3):
        with pytest.raises(ValueError, match="expects a 1D or 2D DeviceMesh"):
            _fsdp_init.mesh_info(types.SimpleNamespace(ndim=ndim))
    with pytest.raises(AssertionError, match="mesh_dim_names"):
        _fsdp_init.mesh_info(types.SimpleNamespace(ndim=2, mesh_dim_names=None))


def test_the_device_of_a_mesh(monkeypatch):
    monkeypatch.setattr(accelerator, "current_device_index", lambda: 3)
    device = _fsdp_init._get_device_from_mesh
    assert device(types.SimpleNamespace(device_type="cpu")) == torch.device("cpu")
    assert device(types.SimpleNamespace(device_type="cuda")) == torch.device("cuda", 3)


def test_what_is_moved_to_the_device_of_a_mesh():
    """Parameters and buffers, except for those without memory and those that are there already."""
    moved = []

    class Data:
        def __init__(self, name, kind, is_meta=False):
            self.name, self.device, self.is_meta = name, types.SimpleNamespace(type=kind), is_meta
            self.data = self

        def to(self, target):
            moved.append(self.name)
            return Data(self.name + "'", target.type)

    parameters = [Data("p", "cpu"), Data("there", "cuda"), Data("meta", "cpu", True)]
    module = types.SimpleNamespace(
        _buffers={"b": Data("b", "cpu"), "n": None, "m": Data("m", "cpu", True), "t": Data("t", "cuda")}
    )
    _fsdp_init.move_to_device(parameters, [module], types.SimpleNamespace(type="cuda"))
    assert moved == ["p", "b"] and [p.data.name for p in parameters] == ["p'", "there", "meta"]
    assert [b and b.name for b in module._buffers.values()] == ["b'", None, "m", "t"]


def test_sharded_parameters_that_were_replaced(world):
    """As load_state_dict(assign=True) and Module.to do it: the new parameter is used from then on."""
    layer = dist.fsdp.fully_shard(nn.Linear(2, 2, bias=False), mesh=world)
    param = layer._get_fsdp_state().group.params[0]
    new = nn.Parameter(DTensor.from_local(torch.full((2, 2), 5.0), world, [Shard(0)]))
    layer._parameters["weight"] = new
    param.reread()
    assert param.sharded is new and layer.weight is new
    assert layer(torch.ones(1, 2)).tolist() == [[10.0, 10.0]]
    layer.unshard()
    unsharded = layer.weight
    param.reread()  # the gathered parameter is not a new one
    assert param.sharded is new and layer.weight is unsharded
    layer.reshard()
    assert layer.weight is new
    layer.double()
    assert param.dtype is torch.float64 and param.sharded.dtype is torch.float64
    assert layer(torch.ones(1, 2).double()).tolist() == [[10.0, 10.0]]


# ---- policies of the older wrapper
@pytest.mark.parametrize("options, refused", [
    ({}, True), ({"use_orig_params": False}, True), ({"use_orig_params": True}, False),
])  # fmt: skip
def test_modules_that_are_frozen_in_part(options, refused):
    class Wrapper(nn.Module):
        def __init__(self, module, **given):
            super().__init__()
            self.inner, self.given = module, given

    def root():
        made = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
        made[0].bias.requires_grad_(False)
        return made

    policy = wrap.ModuleWrapPolicy([nn.Linear])
    model = root()
    if refused:
        with pytest.raises(ValueError, match=r"0 has both parameters .* Frozen: \['bias'\]"):
            _wrap_utils._auto_wrap(model, policy, set(), set(), options, Wrapper)
        assert isinstance(model[0], nn.Linear)
    else:
        with pytest.warns(UserWarning, match="0 has both parameters with requires_grad=True and False"):
            _wrap_utils._auto_wrap(model, policy, set(), set(), options, Wrapper)
        assert isinstance(model[0], Wrapper) and model[0].given == options
    model = root()
    _wrap_utils._auto_wrap(model, policy, set(), {model[0].bias}, options, Wrapper)
    assert isinstance(model[0], Wrapper)


# ---- stores, and comparisons without an answer
def test_a_store_without_threads_closes_the_connection(monkeypatch):
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, timeout=timedelta(seconds=20), secret=b"")
    thread, refused = threading.Thread, []

    class NoThread(thread):
        def start(self):
            if self.name == "TCPStore client" and len(refused) < 2:
                refused.append(self.name)
                raise RuntimeError("can't start new thread")
            super().start()

    monkeypatch.setattr(tcp_store.threading, "Thread", NoThread)
    try:
        with socket.create_connection(("127.0.0.1", store.port), timeout=20) as peer:
            assert peer.recv(1) == b""  # closed, so that the client can try again
        other = store.clone()  # which it does
        other.set("key", "value")
        assert len(refused) == 2 and store.get("key") == b"value"
        with store._lease.server._lock:
            assert len(store._lease.server._open) == 2 and not store._lease.server._waiting
    finally:
        store.close()


class Inner:
    rank, ranks, name, position = 1, [4, 6, 9], "toy", None
    aborted = ""

    def barrier(self):
        return "done"


def test_who_did_not_call_a_collective_is_named(monkeypatch):
    monkeypatch.setattr(debug.watchdog.watch, "store", None)
    store = HashStore()
    checked = Checked(Inner(), store, 0.05)
    dist.PrefixStore("detail", store).set("1/2", "anything")
    with pytest.raises(dist.DistBackendError) as caught:
        checked.barrier()
    assert str(caught.value) == (
        "[Rank 6]: ranks [4] did not call a collective of process group 'toy' within 0.05 s, while this one is running "
        "collective: CollectiveFingerPrint(SequenceNumber=1, OpType=BARRIER)"
    )


def test_a_comparison_waits_until_its_patience_ends(monkeypatch):
    now, waits = [100.0], []

    class Store(HashStore):
        def wait(self, keys, timeout=None):
            waits.append(round(timeout, 4))
            now[0] += timeout
            raise dist.DistStoreError("not there")

    monkeypatch.setattr(debug, "time", types.SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(debug, "_SLICE", 2.0)
    checked = Checked(Inner(), Store(), 5.0)
    checked.__dict__["store"] = Store()
    with pytest.raises(dist.DistStoreError):
        checked._wait(["k"], "barrier")
    assert waits == [2.0, 2.0, 1.0, 0.001]
    checked.timeout = 1.0
    waits.clear()
    with pytest.raises(dist.DistStoreError):
        checked._wait(["k"], "barrier")
    assert waits == [1.0, 0.001] and checked.backend.timeout == 1.0
    checked.backend.aborted = "{} was aborted"
    with pytest.raises(RuntimeError, match="BARRIER was aborted"):
        checked._wait(["k"], "barrier")
