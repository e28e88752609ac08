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
for call in (lambda: scaled(1, 2), lambda: tl.inline_asm_elementwise):
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
    assert absent == "module 'triton.language' has no attribute 'inline_asm_elementwise' (docs/coverage.md)"


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

@triton.autotune(configs=[triton.Config({"BLOCK": 2}), triton.Config({"BLOCK": 4}, num_warps=2)], key=["count"])
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
    """The largest blocks are taken, and what is computed from arguments sees them. A parameter that is given stays."""
    done = _run(CHOSEN, MSADAPTER_TRITON="1", TRITON_INTERPRET="1")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [str([42] * 8), str([41] * 6 + [0, 0]), str([22] * 6 + [0, 0])]


OPERATIONS = """
import msadapter; msadapter.install()
import torch, triton, triton.language as tl

@triton.jit
def product(a, b, out, count, LOG: tl.constexpr, M: tl.constexpr, K: tl.constexpr, N: tl.constexpr):
    rows, inner, columns = tl.arange(0, M), tl.arange(0, K), tl.arange(0, N)
    left = tl.load(a + rows[:, None] * K + inner[None, :])
    right = tl.load(b + tl.reshape(tl.arange(0, K * N), (K, N)), mask=inner.expand_dims(1).broadcast_to(K, N) < count, other=0.0)
    total = tl.zeros((M, N), dtype=tl.float32)
    for part in tl.static_range(2):
        total += tl.dot(left, right.to(a.dtype.element_ty)) * (part + count.to(tl.float32))
    total = tl.where(LOG, tl.math.log(tl.exp(total)), total)
    tl.store(out + rows[:, None] * N + columns[None, :], total.to(out.dtype.element_ty))

a, b, out = torch.randn(4, 8).bfloat16(), torch.randn(8, 2), torch.zeros(4, 2)
product[(1,)](a, b, out, 6, LOG=True, M=4, K=8, N=2)
kept = torch.cat((b[:6], torch.zeros(2, 2))).bfloat16()
torch.testing.assert_close(out, a.float() @ kept.float() * 13)

@triton.jit
def kept_apart(source, out, count: tl.int32, BLOCK: tl.constexpr):
    first = tl.load(source)
    first += 5
    values = tl.load(source + tl.arange(0, BLOCK))
    more = values
    more *= 2
    last = tl.max(tl.clamp(tl.abs(values - 3), 1, 2), axis=0, keep_dims=True)
    tl.store(out + tl.arange(0, BLOCK), values * 100 + more + tl.sum(last) // 2 + tl.min(values % 2) + first * 0 - count // 4 * 7)
    tl.store(out + BLOCK, (0 - count) // 4)
    tl.store(out + BLOCK + 1, (0 - count) % 4)

source, out = torch.arange(4, dtype=torch.int32), torch.zeros(6, dtype=torch.int32)
kept_apart[(1,)](source, out, 6, BLOCK=4)
print(source.tolist(), out.tolist())
print(bool(tl.constexpr(0)), [10, 20][tl.constexpr(1)])

@triton.jit
def compare(source, out, BLOCK: tl.constexpr):
    values = tl.load(source + tl.arange(0, BLOCK))
    tl.store(out + tl.arange(0, BLOCK), tl.maximum(values, 1.0))
    tl.store(out + BLOCK + tl.arange(0, BLOCK), tl.minimum(values, 1.0, propagate_nan=tl.PropagateNan.ALL))
    tl.store(out + 2 * BLOCK + tl.arange(0, BLOCK), tl.clamp(values, 1.0, 2.0))
    tl.store(out + 3 * BLOCK, tl.max(values))
    tl.store(out + 3 * BLOCK + 1, tl.min(values + float("nan")))

source, out = torch.tensor([float("nan"), 3.0]), torch.zeros(8)
compare[(1,)](source, out, BLOCK=2)
print(out.tolist())

@triton.jit
def place(source):
    tl.max(tl.load(source + tl.arange(0, 2)), 0, return_indices=True)

try:
    place[(1,)](source)
except NotImplementedError as error:
    print(error)
"""


def test_kernels_compute():
    """Products of matrices, shapes and reductions, also with NaNs.

    `x += y` changes no memory and no other name; division rounds toward zero.
    """
    done = _run(OPERATIONS, MSADAPTER_TRITON="1", TRITON_INTERPRET="1")
    assert done.returncode == 0, done.stderr
    values = [number * 102 + 1 - 7 for number in range(4)]
    *lines, refusal = done.stdout.splitlines()
    compared = "[1.0, 3.0, nan, 1.0, 1.0, 2.0, 3.0, nan]"
    assert lines == [f"[0, 1, 2, 3] {[*values, -1, -2]}", "False 20", compared]
    assert "triton.language.max" in refusal and "return_indices is not supported" in refusal


WRITTEN = """
import msadapter; msadapter.install()
import torch, triton, triton.language as tl
from torch.overrides import TorchFunctionMode

@triton.jit
def write(target, place, BLOCK: tl.constexpr):
    tl.store(target + place + tl.arange(0, BLOCK), 1.0)

class Written(TorchFunctionMode):
    # Counts the elements of the tensors that calls make, and of those that they write to, which a write may copy.

    elements = 0

    def __torch_function__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        name = function.__name__
        in_place = name == "__setitem__" or name.endswith("_") and not name.endswith("__")
        made = args[0] if in_place else result
        with torch._C.DisableTorchFunction():
            if isinstance(made, torch.Tensor) and (in_place or not made._is_view()):
                self.elements += made.numel()
        return result

def written(size):
    target = torch.zeros(size)
    with Written() as counted:
        write[(1,)](target, size - 64, BLOCK=64)
    assert target.sum() == 64
    return counted.elements

print(written(64), written(100_000))
"""


def test_a_write_costs_the_same_in_a_large_storage():
    """The keys and values of an inference engine are one storage, to which a program for each token writes."""
    done = _run(WRITTEN, MSADAPTER_TRITON="1", TRITON_INTERPRET="1")
    assert done.returncode == 0, done.stderr
    small, large = map(int, done.stdout.split())
    assert 0 < small == large
