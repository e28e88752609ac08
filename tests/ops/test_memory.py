"""How much memory operators need beyond their operands. A bound is below what a copy of an operand more would take."""

import ctypes
from pathlib import Path

import pytest

import msadapter as torch

F = torch.nn.functional
ROWS, COLUMNS = 256, 1024
UNIT = ROWS * COLUMNS * 4  # the bytes of a float32 operand


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Let one thread compute, because kernels have a buffer for each."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def peak(function) -> float:
    """The most memory that a call takes with its result, divided by that of an operand."""
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.max_memory_allocated()
    result = function()
    used = torch.cuda.max_memory_allocated() - before
    del result
    return used / UNIT


def normal(*sizes, dtype=torch.float32):
    return torch.randn(sizes or (ROWS, COLUMNS), dtype=dtype)


def places():
    return torch.randint(0, COLUMNS, (ROWS, COLUMNS))


AT = torch.arange(ROWS * COLUMNS).view(ROWS, COLUMNS) * 7 % COLUMNS


def signs():
    return normal().sign()


# The name of the call -> what makes its operands, the call, and the bound.
FORWARD = {
    "mse_loss": (lambda: (normal(), normal()), F.mse_loss, 1.1),
    "soft_margin_loss": (lambda: (normal(), signs()), F.soft_margin_loss, 1.1),
    "_safe_softmax": (lambda: (normal(), 1), torch._safe_softmax, 1.4),
    "mvlgamma": (lambda: (normal().abs() + 3, 2), torch.mvlgamma, 3.1),
    "ldexp": (lambda: (normal(), places()), torch.ldexp, 1.1),
    "normal": (lambda: (normal(), normal().abs()), torch.normal, 1.1),
    "fake_quantize": (lambda: (normal(), 0.05, 3, -128, 127), torch.fake_quantize_per_tensor_affine, 1.1),
    "local_response_norm": (lambda: (normal(4, 16, 64, 64), 5), F.local_response_norm, 4.3),
    "hann_window": (lambda: (ROWS * COLUMNS,), torch.hann_window, 1.1),
    "bartlett_window": (lambda: (ROWS * COLUMNS,), torch.bartlett_window, 1.1),
    "kaiser_window": (lambda: (ROWS * COLUMNS,), torch.kaiser_window, 2.1),
    "rfftfreq": (lambda: (2 * ROWS * COLUMNS - 2,), torch.fft.rfftfreq, 1.1),
    "ihfft": (lambda: (normal(),), torch.fft.ihfft, 1.6),
    "conv2d pointwise": (lambda: (normal(4, 16, 64, 64), normal(16, 16, 1, 1)), F.conv2d, 1.5),  # depends on the caches
    "binary_cross_entropy_with_logits": (
        lambda: (normal(), normal().sigmoid()),
        F.binary_cross_entropy_with_logits,
        2.1,
    ),
    "fftfreq": (lambda: (ROWS * COLUMNS,), torch.fft.fftfreq, 1.1),
    "binary_cross_entropy": (lambda: (normal().sigmoid(), normal().sigmoid()), F.binary_cross_entropy, 1.1),
    "pad reflect": (lambda: (normal(16, 16, 32, 32), (1, 1, 1, 1), "reflect"), F.pad, 1.6),
    "tril_indices": (lambda: (512, 512), torch.tril_indices, 3.1),
    "fractional_max_pool2d": (
        lambda: (normal(4, 16, 64, 64), 2),
        lambda x, k: F.fractional_max_pool2d(x, k, output_size=(32, 32), return_indices=True),
        1.1,
    ),
    "conv_tbc": (
        lambda: (normal(ROWS * 8, 8, 16), normal(5, 16, 16), normal(16), 2),
        F.conv_tbc,
        1.1,
    ),
    "complex product": (
        lambda: (normal(200, 1000, dtype=torch.complex64), normal(1000, 200, dtype=torch.complex64)),
        torch.matmul,
        1.6,
    ),
    "take_along_dim": (lambda: (normal(), places(), 1), torch.take_along_dim, 3.3),
    "hash_tensor": (lambda: (normal(),), torch.hash_tensor, 0.1),
    "histc": (lambda: (normal().view(-1), 100, -3, 3), torch.histc, 0.1),
    "equal": (lambda: [normal(4 * ROWS, COLUMNS)] * 2, torch.equal, 0.3),
    # Below a half of the numbers: the pool of memory rounds the positions of a half and one more up to half as much again.
    "nonzero": (lambda: (normal() > 0.1,), torch.nonzero, 2.2),
    "nonzero as a tuple": (lambda: (normal() > 0,), lambda x: x.nonzero(as_tuple=True), 3.1),
    "unique_consecutive": (lambda: (torch.randint(0, 3, (ROWS * COLUMNS,)),), torch.unique_consecutive, 1.6),
    "var of bfloat16": (lambda: (normal(dtype=torch.bfloat16), 1), torch.var, 0.1),
    "var of float16": (lambda: (normal(dtype=torch.float16), 1), torch.var, 0.1),
    "var of complex64": (lambda: (normal(dtype=torch.complex64), 1), torch.var, 0.1),
    "msort": (lambda: (normal(),), torch.msort, 3.2),
    "scatter_add of bfloat16": (
        lambda: (normal(dtype=torch.bfloat16), 1, places(), normal(dtype=torch.bfloat16)),
        torch.scatter_add,
        1.6,
    ),
    "scatter_add with an expanded index": (
        lambda: (normal(), 0, torch.randint(0, ROWS, (ROWS, 1)).expand(ROWS, COLUMNS), normal()),
        torch.scatter_add,
        1.1,
    ),
    "segment_reduce": (
        lambda: (normal(),),
        lambda x: torch.segment_reduce(x, "sum", lengths=torch.full((ROWS // 4,), 4)),
        0.6,
    ),
    "max_unpool2d": (
        lambda: F.max_pool2d(normal(4, 64, 32, 32), 2, return_indices=True),
        lambda x, at: F.max_unpool2d(x, at, 2),
        1.3,
    ),
    "bilinear": (
        lambda: (normal(1024, 32), normal(1024, 32), normal(32, 32, 32)),
        F.bilinear,
        0.9,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FORWARD)
def test_a_call_has_no_tensor_more_than_it_needs(name):
    operands, function, bound = FORWARD[name]
    operands = operands()
    function(*operands)
    assert peak(lambda: function(*operands)) < bound


BIAS_AND_TAPS = torch.ones(6, 16, 16)

# The bounds of calls with their gradients.
BACKWARD = {
    "max": (lambda x: x.max(1)[0], 1.1),
    "median": (lambda x: x.median(1)[0], 1.1),
    "topk": (lambda x: x.topk(10)[0], 1.2),
    "msort": (lambda x: x.msort(), 4.2),
    "gather": (lambda x: x.gather(1, AT), 2.1),
    "take_along_dim": (lambda x: torch.take_along_dim(x, AT, 1), 4.2),
    "pad reflect": (lambda x: F.pad(x.view(16, 16, 32, 32), (1, 1, 1, 1), "reflect"), 2.6),
    "conv_tbc": (lambda x: F.conv_tbc(x.view(ROWS * 8, 8, 16), BIAS_AND_TAPS[1:], BIAS_AND_TAPS[0, 0]), 2.2),
    "irfft": (lambda x: torch.fft.irfft(torch.view_as_complex(x.view(ROWS, -1, 2))), 2.5),
    "embedding_bag": (
        lambda x: F.embedding_bag(
            AT.view(-1, 1024)[:16].reshape(-1), x.view(-1, 64), torch.arange(0, 16384, 8)
        ),
        1.9,
    ),
    "clamp": (lambda x: x.clamp(-0.5, 0.5), 2.9),
    "norm": (lambda x: x.norm(2, 1), 2.2),
    "sgn": (lambda x: x.sgn(), 1.1),
    "amin": (lambda x: x.amin(1), 2.5),
}


@pytest.mark.parametrize("name", BACKWARD)
def test_a_gradient_has_no_tensor_more_than_it_needs(name):
    function, bound = BACKWARD[name]
    x = normal().requires_grad_()
    g = torch.randn(function(x).shape)
    torch.autograd.grad(function(x), x, g)
    assert peak(lambda: torch.autograd.grad(function(x), x, g)) < bound


def test_the_gradients_of_a_large_convolution_are_made_from_one_image_after_the_other():
    """oneDNN copies the operands with the eight channels filled up to sixteen. It copies one image of the two at a time."""
    torch.manual_seed(0)
    x, w = normal(2, 8, 48, 64, 64).requires_grad_(), normal(8, 8, 3, 3, 3).requires_grad_()
    g = torch.randn(F.conv_transpose3d(x, w).shape)
    torch.autograd.grad(F.conv_transpose3d(x, w), (x, w), g)
    used = peak(lambda: torch.autograd.grad(F.conv_transpose3d(x, w), (x, w), g))
    # Besides the result and two gradients, there are the copies of one image and of its gradient.
    assert used * UNIT < 4.6 * x.nbytes

    exact = torch.autograd.grad(F.conv_transpose3d(x.double(), w.double()), (x, w), g.double())
    for found, expected in zip(torch.autograd.grad(F.conv_transpose3d(x, w), (x, w), g), exact, strict=True):
        # A gradient of w is the sum of 400,000 products in single precision.
        assert (found - expected).abs().max() < 3e-5 * expected.abs().max()


def _status(line: str) -> int:
    """A line of the process's status, in bytes."""
    text = next(text for text in Path("/proc/self/status").read_text().splitlines() if text.startswith(line))
    return int(text.split()[1]) * 1024


VOLUME = {
    "max_pool3d": lambda x: F.max_pool3d(x, 3),
    "avg_pool3d": lambda x: F.avg_pool3d(x, 3),
    "adaptive_avg_pool3d": lambda x: F.adaptive_avg_pool3d(x, 7),
    "adaptive_max_pool3d": lambda x: F.adaptive_max_pool3d(x, 7),
}


@pytest.mark.parametrize("name", VOLUME)
def test_the_gradient_of_a_volume_is_made_in_its_own_memory(name):
    """The resident set, because sums beside the result would not be in the memory that PyTorch's statistics count."""
    x = normal(1, 1, 150, 150, 150).requires_grad_()
    y = VOLUME[name](x)
    g = torch.ones_like(y)
    torch.cuda.empty_cache()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins here
    before = _status("VmRSS")
    torch.autograd.grad(y, x, g)
    assert _status("VmHWM") - before < 1.5 * x.nbytes
