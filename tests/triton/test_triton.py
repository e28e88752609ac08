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
    clean = {name: value for name, value in os.environ.items() if name != "MSADAPTER_TRITON"}
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
        refused = "triton: launching the kernel plain is not supported (docs/coverage.md)"
        assert done.stdout.splitlines() == ["4 8 plain", refused]


def test_mindspore_itself_may_find_triton():
    done = _run(
        "import msadapter; msadapter.install(); import mindspore; print(mindspore.Tensor)",
        MSADAPTER_TRITON="1",
    )
    assert done.returncode == 0, done.stderr
