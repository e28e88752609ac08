"""Collectives of the simulated HCCL between processes."""

import os
import subprocess
import sys
import textwrap

import pytest

from msadapter._host import simulator

ROOT = simulator.SOURCES.parents[1]
PROGRAM = """
    import ctypes, sys, time
    import numpy as np
    from ctypes import byref, c_int, c_uint32, c_uint64, c_void_p
    from tests.simulator.device import *
    rank, size, place = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3].encode()
    npu = Device(sys.argv[4])
    lib, comm = npu.lib, c_void_p()
    FLOAT, SUM = 4, 0
    status = lib.HcclCommInitRootInfo(c_uint32(size), ctypes.create_string_buffer(place, 4108), c_uint32(rank), byref(comm))
    if status:
        print("init", status)
        sys.exit()

    def put(values):
        array = np.asarray(values, np.float32)
        address = npu.malloc(max(array.nbytes, 4))
        npu.upload(address, array)
        return address

    def get(address, count):
        npu.synchronize()
        array = np.zeros(count, np.float32)
        npu.download(address, array)
        return array.tolist()
"""


def start(home, body, ranks=2, present=None, **settings):
    """Run a program on several ranks and return what each has printed."""
    program = textwrap.dedent(PROGRAM) + textwrap.dedent(body)
    settings = {"MEMORY_GB": 1, "DEVICES": 2, "HCCL_TIMEOUT": 20, "HCCL_CONNECT": 20} | settings
    environment = os.environ | {
        f"MSADAPTER_SIMULATED_NPU_{name}": str(value) for name, value in settings.items()
    }
    place = f"test-npu-{os.getpid()}-{os.urandom(6).hex()}"
    jobs = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(rank), str(ranks), place, str(simulator.library(home))],
            env=environment, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for rank in range(ranks if present is None else present)
    ]  # fmt: skip
    answers = [job.communicate(timeout=100) for job in jobs]
    assert all(job.returncode == 0 for job in jobs), [errors[-1500:] for _, errors in answers]
    return [output.splitlines() for output, _ in answers]


@pytest.mark.parametrize("ranks", [2, 3])
def test_collectives(home, ranks):
    seen = start(
        home,
        """
        n = c_uint64
        x, y = put([rank + 1, 10 * rank]), put([0] * 2 * size)
        npu.check(lib.HcclAllReduce(x, y, n(2), FLOAT, SUM, comm, npu.stream))
        print(get(y, 2))
        npu.check(lib.HcclAllGather(x, y, n(2), FLOAT, comm, npu.stream))
        print(get(y, 2 * size))
        part = put([0.0])
        npu.check(lib.HcclReduceScatter(put(np.arange(size) + rank), part, n(1), FLOAT, SUM, comm, npu.stream))
        print(get(part, 1))
        b = put([rank, rank])
        npu.check(lib.HcclBroadcast(b, n(2), FLOAT, c_uint32(1), comm, npu.stream))
        print(get(b, 2))
        z = put([0.0] * size)
        npu.check(lib.HcclAlltoAll(put(np.arange(size) + 10 * rank), n(1), FLOAT, z, n(1), FLOAT, comm, npu.stream))
        print(get(z, size))
        if rank == 0:
            npu.check(lib.HcclSend(x, n(2), FLOAT, c_uint32(1), comm, npu.stream))
        elif rank == 1:
            npu.check(lib.HcclRecv(y, n(2), FLOAT, c_uint32(0), comm, npu.stream))
            print(get(y, 2))
        npu.check(lib.HcclBarrier(comm, npu.stream))
        npu.synchronize()
        """,
        ranks,
        HCCL_SLOT=4096,
    )
    total, tens = ranks * (ranks + 1) / 2, 5.0 * ranks * (ranks - 1)
    for rank, lines in enumerate(seen):
        gathered = [number for r in range(ranks) for number in (r + 1.0, 10.0 * r)]
        expected = [
            [total, tens],
            gathered,
            [ranks * rank + total - ranks],
            [1.0, 1.0],
            [rank + 10.0 * r for r in range(ranks)],
        ]
        assert lines == [str(one) for one in expected] + (["[1.0, 0.0]"] if rank == 1 else [])


def test_messages_larger_than_a_slot(home):
    seen = start(
        home,
        """
        count = 70001
        x = put(np.arange(count) % 97 + rank)
        npu.check(lib.HcclAllReduce(x, x, c_uint64(count), FLOAT, SUM, comm, npu.stream))
        print(np.array_equal(get(x, count), 2 * (np.arange(count) % 97) + 1))
        """,
        HCCL_SLOT=4096,
    )
    assert seen == [["True"], ["True"]]


def test_a_rank_that_never_comes_is_a_time_out(home):
    seen = start(
        home,
        """
        x = put([1.0])
        if rank == 0:
            npu.check(lib.HcclAllReduce(x, x, c_uint64(1), FLOAT, SUM, comm, npu.stream))
            try:
                npu.synchronize()
            except Refused as error:
                print(error.status, "waited too long" in error.text, "HcclAllReduce" in error.text)
        """,
        HCCL_TIMEOUT=0.3,
    )
    assert seen == [["507048 True True"], []]
    assert start(home, "", present=1, HCCL_CONNECT=0.3) == [["init 9"]]  # HCCL_E_TIMEOUT


@pytest.mark.parametrize("fault, status", [("hccl_timeout", 507048), ("link", 507056)])
def test_injected_faults(home, fault, status):
    seen = start(
        home,
        """
        x = put([1.0])
        try:
            lib.HcclAllReduce(x, x, c_uint64(1), FLOAT, SUM, comm, npu.stream)
            npu.synchronize()
        except Refused as error:
            print(error.status, "injected" in error.text)
        """,
        FAULTS=f"{fault}@1",
    )
    assert seen == [[f"{status} True"]] * 2


def test_what_hccl_does_not_reduce_is_refused(home):
    seen = start(
        home,
        """
        x = put([1.0])
        print(lib.HcclAllReduce(x, x, c_uint64(1), 10, SUM, comm, npu.stream))  # DOUBLE
        print(lib.HcclAllReduce(c_void_p(np.ones(1).ctypes.data), x, c_uint64(1), FLOAT, SUM, comm, npu.stream))
        """,
    )
    assert seen == [["5", "1"]] * 2  # HCCL_E_NOT_SUPPORT, HCCL_E_PARA


def test_products_fused_with_collectives(home):
    seen = start(
        home,
        """
        rng = np.random.default_rng(0)
        x, w = rng.integers(-4, 5, (size, 4, 6)).astype(np.float16), rng.integers(-4, 5, (size, 6, 3)).astype(np.float16)
        group = place.decode()
        results = Out((4 * size, 3), "float16"), Out((4 * size, 6), "float16")
        whole, gathered = npu.run("AllGatherMatmul", x[rank], w[0], None, group, 0, 0, 1, *results)
        print(np.array_equal(whole, x.reshape(-1, 6) @ w[0]), np.array_equal(gathered, x.reshape(-1, 6)))
        total = sum(x[r].astype(np.float32) @ w[r].astype(np.float32) for r in range(size))
        part = npu.run("MatmulReduceScatter", x[rank], w[rank], None, group, "sum", 0, 1, Out((4 // size, 3), "float16"))
        print(np.array_equal(part, total[4 // size * rank : 4 // size * (rank + 1)]))
        print(np.array_equal(npu.run("MatmulAllReduce", x[rank], w[rank], None, group, "sum", 0, 1, Out((4, 3), "float16")), total))
        try:
            npu.run("AllGatherMatmul", x[rank], w[0], None, "nobody", 0, 0, 1, Out((8, 3), "float16"), None)
        except Refused as error:
            print("no communicator" in error.text)
        r, g = np.float16(np.arange(12).reshape(1, 4, 3)), np.float16([1, 2, 3])
        three, outs = x[rank][None], (Out((1, 4, 3), "float16"), Out((1, 4, 3), "float16"))
        y, norm = npu.run("MatmulAllReduceAddRmsNorm", three, w[rank], None, r, g, 1e-6, group, "sum", 0, 1, *outs)
        expected = total + r
        scaled = expected / np.sqrt((expected**2).mean(-1, keepdims=True) + 1e-6) * g
        print(np.array_equal(y, expected), np.allclose(norm, scaled, 2e-3, 2e-3))
        for left, reduce in ((three, "max"), (np.asfortranarray(three[0]).T.copy().T[None], "sum")):
            try:
                npu.run("MatmulAllReduceAddRmsNorm", left, w[rank], None, r, g, 1e-6, group, reduce, 0, 1, *outs)
            except Refused as error:
                print(error.status, "reduceOp" in error.text, "not contiguous" in error.text)
        """,
    )
    refused = ["161002 True False", "161002 False True"]
    assert seen == [["True True", "True", "True", "True", "True True", *refused]] * 2
