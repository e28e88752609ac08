"""Names that exist only if an environment variable asks for them."""

import os
import subprocess
import sys

import pytest

KERNEL = """
import msadapter; msadapter.install()
import triton, triton.language as tl
@triton.jit
def plain(x, BLOCK: tl.constexpr): ...
@triton.jit(launch_metadata=None)
def other(x, n: tl.int32): ...
print(triton.cdiv(7, 2), triton.next_power_of_2(5), plain.__name__)
try:
    plain[(1,)](0, BLOCK=2)
except NotImplementedError as error:
    print(error)
"""


def _run(code: str, **variables):
    asked = ("MSADAPTER_TRITON", "TRITON_INTERPRET")
    clean = {name: value for name, value in os.environ.items() if name not in asked}
    return subprocess.run(
        [sys.executable, "-c", code], env=clean | variables, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    "variables, said", [({}, "No module named 'triton'"), ({"MSADAPTER_TRITON": "1"}, "")]
)
def test_triton_declares_kernels_and_launches_none(variables, said):
    done = _run(KERNEL, **variables)
    assert said in done.stderr
    if variables:
        refused = (
            "triton: launching the kernel plain is not supported (docs/coverage.md); with TRITON_INTERPRET=1 it is "
            "interpreted on the CPU"
        )
        assert done.stdout.splitlines() == ["4 8 plain", refused]


def test_mindspore_itself_may_find_triton():
    done = _run(
        "import msadapter; msadapter.install(); import mindspore; print(mindspore.Tensor)",
        MSADAPTER_TRITON="1",
    )
    assert done.returncode == 0, done.stderr


INTERPRETED = """
import msadapter; msadapter.install()
import torch, triton, triton.language as tl

@triton.jit
def scaled(x, factor):
    return x * factor

@triton.jit
def copy(source, target, rows, stride, width: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    if row >= rows:
        return
    columns = tl.arange(0, BLOCK)
    mask = columns < width
    values = tl.load(source + row * stride + columns, mask=mask, other=-1.0)
    tl.store(target + row * width + columns, scaled(values, 2), mask=mask)
    tl.debug_barrier()
    tl.store(target + row * width, tl.load(source + row * stride))

whole = torch.arange(24.0).reshape(4, 6)
source, target = whole[1:, :3], torch.zeros(3, 3)
copy[lambda meta: (triton.cdiv(meta["rows"], 1) + 1,)](source, target, 3, 6, width=3, BLOCK=4, num_warps=4)
print(target.tolist())
try:
    copy[(9,)](source, target, 9, 6, width=3, BLOCK=4)
except IndexError as error:
    print(error)
for call in (lambda: scaled(1, 2), lambda: tl.dot):
    try:
        call()
    except (NotImplementedError, AttributeError) as error:
        print(error)
"""


def test_kernels_are_interpreted_if_it_is_asked_for():
    """As by Triton's own interpreter: pointers into a view, a mask, a grid that is a function, and a kernel in a kernel."""
    done = _run(INTERPRETED, MSADAPTER_TRITON="1", TRITON_INTERPRET="1")
    assert done.returncode == 0, done.stderr
    values, outside, alone, absent = done.stdout.splitlines()
    assert values == "[[6.0, 14.0, 16.0], [12.0, 26.0, 28.0], [18.0, 38.0, 40.0]]"
    assert outside == "triton: element 24 of a storage of 24 is accessed"
    assert alone.startswith("triton: launching the kernel scaled is not supported (docs/coverage.md)")
    assert absent == "module 'triton.language' has no attribute 'dot' (docs/coverage.md)"


COUNTED = """
import msadapter; msadapter.install()
import torch, triton, triton.language as tl

@triton.jit
def count(numbers, counters, before, total, limit, BLOCK: tl.constexpr):
    first = tl.minimum(tl.program_id(0) * BLOCK, limit)
    for begin in tl.range(first, tl.minimum(first + BLOCK, limit), BLOCK):
        places = begin + tl.arange(0, BLOCK)
        mask = places < limit
        number = tl.load(numbers + places, mask=mask, other=0)
        tl.store(before + places, tl.atomic_add(counters + number, 1, mask=mask), mask=mask)
        tl.atomic_add(total, tl.maximum(begin.to(tl.int64), 1).to(tl.float32))

@triton.jit
def sums(values, target, BLOCK: tl.constexpr):
    places = tl.arange(0, BLOCK)
    block = tl.load(values + places) + tl.zeros([BLOCK], dtype=tl.int32) + tl.full([BLOCK], 1, tl.int32)
    tl.store(target + places, tl.cumsum(block, axis=0))
    tl.store(target + BLOCK + places, tl.cumsum(block, reverse=True))
    tl.store(target + 2 * BLOCK + tl.program_id(0).to(tl.int64), tl.sum(block) + tl.sum(block > 2) * tl.num_programs(0))

numbers = torch.tensor([1, 1, 0, 1, 2, 1, 9, 9])
counters, before, total = torch.zeros(3, dtype=torch.int32), torch.full((8,), -1), torch.zeros(())
count[(3,)](numbers, counters, before, total, 6, BLOCK=4)
print(counters.tolist(), before.tolist(), total.item())
target = torch.zeros(10, dtype=torch.int32)
sums[(2,)](torch.arange(4, dtype=torch.int32), target, BLOCK=4)
print(target.tolist())
print(tl.int1, tl.bfloat16)
"""


def test_kernels_count_and_sum():
    """Equal addresses in a block are added to one after the other. Megatron's kernels for experts claim places in this way."""
    done = _run(COUNTED, MSADAPTER_TRITON="1", TRITON_INTERPRET="1")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "[1, 4, 1] [0, 1, 0, 2, 0, 3, -1, -1] 5.0",
        "[1, 3, 6, 10, 10, 9, 7, 4, 14, 14]",
        "torch.bool torch.bfloat16",
    ]
    names = "import msadapter; msadapter.install(); import triton.language as tl; print(tl.int1, tl.bfloat16)"
    assert _run(names, MSADAPTER_TRITON="1").stdout.split() == ["int1", "bf16"]


CHOSEN = """
import msadapter; msadapter.install()
import torch, triton, triton.language as tl

@triton.autotune(configs=[triton.Config({"BLOCK": 4}, num_warps=2), triton.Config({"BLOCK": 2})], key=["count"])
@triton.heuristics({"EVEN": lambda given: given["count"] % given["BLOCK"] == 0})
@triton.jit
def fill(target, count, BLOCK: tl.constexpr, EVEN: tl.constexpr, more=1):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(target + places, BLOCK * 10 + EVEN + more, mask=places < count)

grid = lambda given: (triton.cdiv(given["count"], given["BLOCK"]),)
for count in (8, 6):
    target = torch.zeros(8, dtype=torch.int32)
    fill[grid](target, count)
    print(target.tolist())
fill[grid](target, 6, BLOCK=2)
print(target.tolist())
"""


def test_parameters_that_a_kernel_chooses():
    """The first choice is taken, and what is computed from arguments sees it. A parameter that is given stays."""
    done = _run(CHOSEN, MSADAPTER_TRITON="1", TRITON_INTERPRET="1")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [str([42] * 8), str([41] * 6 + [0, 0]), str([22] * 6 + [0, 0])]
