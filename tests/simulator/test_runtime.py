"""The simulated runtime: memory that the host cannot read, streams, events, copies, modes and faults."""

import ctypes
import os
import subprocess
import sys
import textwrap
from ctypes import byref, c_float, c_uint64, c_void_p

import numpy as np
import pytest

from msadapter._host import simulator
from tests.simulator.device import TO_DEVICE, TO_HOST, InPlace, Refused, Scalar

ROOT = simulator.SOURCES.parents[1]
PREFIX = "MSADAPTER_SIMULATED_NPU_"


def run(home, program, expect=0, **settings):
    """Run a program with a device `npu` in a separate process. `settings` are those of the simulator."""
    head = f"""
        import ctypes, numpy as np
        from ctypes import byref, c_float, c_int, c_uint64, c_void_p
        from tests.simulator.device import *
        npu = Device({str(simulator.library(home))!r})
    """
    text = textwrap.dedent(head) + textwrap.dedent(program)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
    environment |= {
        PREFIX + name: str(value) for name, value in ({"MEMORY_GB": 1, "DEVICES": 2} | settings).items()
    }
    answer = subprocess.run(
        [sys.executable, "-c", text], env=environment, cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert answer.returncode == expect, answer.stderr[-2000:]
    return answer.stdout.strip()


def test_the_host_cannot_read_device_memory(home):
    program = """
        address = npu.malloc(64)
        npu.upload(address, np.arange(4, dtype=np.float32))
        ctypes.string_at(address.value, 8)
    """
    run(home, program, expect=-11)  # SIGSEGV
    run(home, program, HOST_ACCESS=1)


def test_memory_is_counted_and_returned(npu):
    figures = (ctypes.c_size_t * 4)()
    npu.lib.SimulatedNpuMemory(0, figures)
    used = figures[1]
    address = npu.malloc(5 << 20)
    npu.lib.SimulatedNpuMemory(0, figures)
    assert figures[0] == 1 << 30 and figures[1] - used == 6 << 20  # pages of 2 MB
    npu.free(address)
    npu.lib.SimulatedNpuMemory(0, figures)
    assert figures[1] == used
    with pytest.raises(Refused, match="was not handed out"):
        npu.free(address)


def test_a_device_runs_out_of_memory_and_goes_on(npu):
    with pytest.raises(Refused, match="out of device memory") as error:
        npu.malloc(2 << 30)
    assert error.value.status == 207001
    npu.free(npu.malloc(1 << 20))


def test_copies_are_checked_for_their_kind(npu):
    array = np.zeros(16, np.float32)
    address = npu.malloc(64)
    host, size = c_void_p(array.ctypes.data), c_uint64(64)
    for to, source, kind in (
        (address, host, TO_HOST),
        (host, address, TO_DEVICE),
        (host, host, TO_DEVICE),
        (address, address, TO_HOST),
    ):
        with pytest.raises(Refused, match="wrong side"):
            npu.check(npu.lib.aclrtMemcpy(to, size, source, size, kind))
    with pytest.raises(Refused, match="do not fit"):
        npu.check(npu.lib.aclrtMemcpy(address, c_uint64(32), host, size, TO_DEVICE))
    npu.free(address)


def test_an_operator_refuses_a_host_address(npu):
    array = np.zeros(4, np.float32)
    shape = (ctypes.c_int64 * 1)(4)
    handle = c_void_p(
        npu.lib.aclCreateTensor(
            shape, c_uint64(1), 0, None, ctypes.c_int64(0), 2, shape, c_uint64(1), c_void_p(array.ctypes.data)
        )
    )
    workspace, executor = c_uint64(), c_void_p()
    with pytest.raises(Refused, match="host address"):
        npu.check(npu.lib.aclnnNegGetWorkspaceSize(handle, handle, byref(workspace), byref(executor)))


def test_tasks_run_later_than_the_call(home):
    seen = run(
        home,
        """
        a = np.ones(8, np.float32)
        address = npu.malloc(32)
        size = c_uint64(32)
        npu.check(npu.lib.aclrtMemcpyAsync(address, size, c_void_p(a.ctypes.data), size, TO_DEVICE, npu.stream))
        status = c_int()
        npu.check(npu.lib.aclrtStreamQuery(npu.stream, byref(status)))
        early = status.value
        npu.synchronize()
        npu.check(npu.lib.aclrtStreamQuery(npu.stream, byref(status)))
        print(early, status.value)
        """,
        DELAY_US=200000,
        DELAY_SEED=3,
    )
    assert seen == "1 0"


def test_events_order_streams_and_measure_time(home):
    """Without the event, the second stream would read the memory before the delayed first one has written it."""
    program = """
        other, event, end = c_void_p(), c_void_p(), c_void_p()
        npu.check(npu.lib.aclrtCreateStream(byref(other)))
        for one in (event, end):
            npu.check(npu.lib.aclrtCreateEvent(byref(one)))
        a, b, size = np.ones(8, np.float32), np.zeros(8, np.float32), c_uint64(32)
        address = npu.malloc(32)
        npu.upload(address, b)
        for _ in range(6):
            npu.lib.aclrtMemcpyAsync(address, size, c_void_p(a.ctypes.data), size, TO_DEVICE, npu.stream)
        npu.check(npu.lib.aclrtRecordEvent(event, npu.stream))
        if %d:
            npu.check(npu.lib.aclrtStreamWaitEvent(other, event))
        npu.lib.aclrtMemcpyAsync(c_void_p(b.ctypes.data), size, address, size, TO_HOST, other)
        npu.check(npu.lib.aclrtRecordEvent(end, other))
        npu.check(npu.lib.aclrtSynchronizeStream(other))
        print(b.sum())
        npu.synchronize()
        passed = c_float()
        npu.check(npu.lib.aclrtEventElapsedTime(byref(passed), event, end))
        assert (passed.value > 0) == bool(%d), passed
    """
    assert run(home, program % (1, 1), DELAY_US=40000, DELAY_SEED=1) == "8.0"
    assert run(home, program % (0, 0), DELAY_US=40000, DELAY_SEED=1) == "0.0"


def test_the_time_of_an_unreached_event_is_an_error(npu):
    event = c_void_p()
    npu.check(npu.lib.aclrtCreateEvent(byref(event)))
    with pytest.raises(Refused, match="before both were reached"):
        npu.check(npu.lib.aclrtEventElapsedTime(byref(c_float()), event, event))


def test_fresh_memory_can_be_poisoned(home):
    program = """
        a = np.zeros(4, np.float32)
        npu.download(npu.malloc(16), a)
        print(np.isnan(a).all())
    """
    assert run(home, program, POISON=1) == "True"
    assert run(home, program) == "False"


def test_chip_devices_and_memory_are_settings(home):
    program = """
        npu.lib.aclrtGetSocName.restype = ctypes.c_char_p
        count, free, total = ctypes.c_uint32(), c_uint64(), c_uint64()
        npu.check(npu.lib.aclrtGetDeviceCount(byref(count)))
        npu.check(npu.lib.aclrtGetMemInfo(1, byref(free), byref(total)))
        print(npu.lib.aclrtGetSocName().decode(), count.value, total.value >> 20)
        try:
            npu.run("Neg", Bf16.of([1.0]), Out((1,), "bfloat16"))
        except Refused as error:
            print(error.text.split(": ")[1].split(" (")[0])
    """
    seen = run(home, program, CHIP="Ascend910A", DEVICES=3, MEMORY_GB=0.5).splitlines()
    assert seen == ["Ascend910A 3 512", "'self' is BFLOAT16, which Ascend910A does not have"]
    with pytest.raises(AssertionError, match="no device 5"):
        run(home, "npu.check(npu.lib.aclrtSetDevice(5))")


@pytest.mark.parametrize("fault, status", [("ecc", 507054), ("uce", 507053), ("kernel", 507015)])
def test_a_fault_of_a_task_shows_when_the_host_waits(home, fault, status):
    program = """
        a = np.ones(4, np.float32)
        for i in range(3):
            try:
                npu.run("InplaceAdds", InPlace(a), Scalar(1), Scalar(1))
            except Refused as error:
                print(i, error.status, "injected" in error.text)
        npu.check(npu.lib.aclrtDeviceTaskAbort(0, 0))
        print(npu.run("InplaceAdds", InPlace(a), Scalar(1), Scalar(1)).tolist())
    """
    seen = run(home, program, FAULTS=f"{fault}@2")
    # the device stays failed until it is reset
    assert seen.splitlines() == [f"1 {status} True", f"2 {status} True", "[2.0, 2.0, 2.0, 2.0]"]


def test_an_injected_lack_of_memory_happens_once(npu):
    npu.check(npu.lib.SimulatedNpuInjectFaults(b"oom@2"))
    npu.free(npu.malloc(1))
    with pytest.raises(Refused, match="injected fault: out of device memory"):
        npu.malloc(1)
    npu.free(npu.malloc(1))


@pytest.mark.parametrize("text", ["ecc", "ecc@0", "none@1", "ecc@-1", "oom@1,x"])
def test_a_fault_that_is_not_known_is_an_error(npu, text):
    with pytest.raises(Refused, match="kind@number"):
        npu.check(npu.lib.SimulatedNpuInjectFaults(text.encode()))


def test_an_index_out_of_range_ends_the_task(home):
    seen = run(
        home,
        """
        try:
            npu.run("IndexSelect", np.ones((2, 2), np.float32), 0, np.array([5]), Out((1, 2)))
        except Refused as error:
            print(error.status, error.text)
        """,
    )
    assert seen.startswith("507015") and "aclnnIndexSelect" in seen and "the index 5 is out of range" in seen


def test_a_forked_process_has_no_device(home):
    seen = run(
        home,
        """
        import os
        child = os.fork()
        if child == 0:
            try:
                npu.synchronize()
            except Refused as error:
                os._exit(7 if "forked process" in error.text else 1)
            os._exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """,
    )
    assert seen == "7"


@pytest.mark.parametrize("settings", [{"SYNC": 1}, {"DELAY_US": 3000, "DELAY_SEED": 5}, {"POISON": 1}])
def test_every_mode_computes_the_same(home, settings):
    program = """
        a = np.arange(6, dtype=np.float32).reshape(2, 3)
        for _ in range(4):
            a = npu.run("InplaceAdd", InPlace(a), np.float32([1, 2, 3]), Scalar(2))
        print(npu.run("ReduceSum", a, Ints([1]), False, I32(0), Out((2,))).tolist())
    """
    assert run(home, program, **settings) == "[51.0, 60.0]"


def test_operators_tasks_and_copies_are_counted(npu):
    before = npu.counters()
    npu.run("InplaceAdds", InPlace(np.ones(2, np.float32)), Scalar(1), Scalar(1))
    after = npu.counters()
    for name, more in (
        ("aclnnInplaceAdds", 1),
        ("copies host to device", 1),
        ("copies device to host", 1),
        ("bytes device to host", 8),
    ):
        assert after[name] - before.get(name, 0) == more


def test_the_switch_takes_0_and_1_alone(monkeypatch):
    monkeypatch.setenv(simulator.SWITCH, "yes")
    with pytest.raises(ValueError, match="MSADAPTER_SIMULATED_NPU is 'yes'"):
        simulator.is_asked_for()
    monkeypatch.delenv(simulator.SWITCH)
    assert not simulator.is_asked_for()
