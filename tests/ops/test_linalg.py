"""Linear algebra, FFT and factories, compared with recorded answers (tests/golden/expressions/linalg.py) and
definitions.
"""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest
import scipy

import msadapter as torch
from tests.batches import together
from tests.golden.suites import cases
from tests.golden.verdict import check

CASES = cases("linalg")


@together(CASES)
def test_case(case):
    check("linalg", case, CASES[case], torch)


def _matrix(*shape, dtype=torch.float64, seed=0):
    torch.manual_seed(seed)
    return torch.randn(*shape, dtype=dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64, torch.complex128], ids=str)
def test_factors_multiply_back(dtype):
    A = _matrix(2, 5, 3, dtype=dtype)
    square = _matrix(2, 4, 4, dtype=dtype)
    positive = square @ square.mH + torch.eye(4, dtype=dtype)
    close = (
        {"rtol": 2e-4, "atol": 2e-4}
        if dtype in (torch.float32, torch.complex64)
        else {"rtol": 1e-9, "atol": 1e-9}
    )

    def same(a, b):
        torch.testing.assert_close(a, b, **close)

    Q, R = torch.linalg.qr(A)
    same(Q @ R, A)
    U, S, Vh = torch.linalg.svd(A, full_matrices=False)
    same((U * S.unsqueeze(-2).to(dtype)) @ Vh, A)
    P, L, W = torch.linalg.lu(A)
    same(P @ L @ W, A)
    C = torch.linalg.cholesky(positive)
    same(C @ C.mH, positive)
    w, V = torch.linalg.eigh(positive)
    same((V * w.unsqueeze(-2).to(dtype)) @ V.mH, positive)
    w, V = torch.linalg.eig(square)
    same(V @ torch.diag_embed(w), square.to(V.dtype) @ V)
    same(square @ torch.linalg.solve(square, A[:, :4]), A[:, :4])
    same(A @ torch.linalg.pinv(A) @ A, A)
    same(torch.linalg.householder_product(*torch.geqrf(A)), Q)
    same(torch.ormqr(*torch.geqrf(A), A), torch.linalg.qr(A, "complete")[0] @ A)


_FUNCTIONS = {
    "inv": torch.linalg.inv,
    "det": torch.linalg.det,
    "slogdet": lambda A: torch.linalg.slogdet(A)[1],
    "matrix_exp": lambda A: torch.linalg.matrix_exp(A * 0.3),
    "cholesky": lambda A: torch.linalg.cholesky(A @ A.mT + torch.eye(3, dtype=A.dtype)),
    "eigvalsh": lambda A: torch.linalg.eigvalsh(A + A.mT),
    "svdvals": torch.linalg.svdvals,
    "qr": lambda A: torch.linalg.qr(A)[1].abs(),
    "solve": lambda A: torch.linalg.solve(A, A.mT),
    "lu": lambda A: torch.linalg.lu(A)[2],
    "pinv": lambda A: torch.linalg.pinv(A[:2]),
    "cross": lambda A: torch.linalg.cross(A, A.mT * 2),
    "solve_triangular": lambda A: torch.linalg.solve_triangular(
        A.triu(1) + 2 * torch.eye(3, dtype=A.dtype), A, upper=True
    ),
    "fft": lambda A: torch.fft.fft(A).abs(),
    "rfft": lambda A: torch.fft.rfft(A, n=5).abs(),
    "irfft": lambda A: torch.fft.irfft(A, n=4) ** 2,
    "hfft": lambda A: torch.fft.hfft(torch.complex(A, A.flip(0))) ** 2,
    "cdist": lambda A: torch.cdist(A, A.flip(0)[:2] + 0.5),
    "renorm": lambda A: torch.renorm(A, 2, 0, 1.0),
    "matrix_norm": lambda A: torch.linalg.matrix_norm(A, "nuc"),
}


def _slope(f, A, v, weight, h=1e-5):
    return ((f(A + h * v) - f(A - h * v)) * weight).sum() / (2 * h)


@pytest.mark.parametrize("name", _FUNCTIONS)
def test_first_and_second_order_gradients(name):
    f = _FUNCTIONS[name]
    A = (_matrix(3, 3, seed=3) + 2 * torch.eye(3, dtype=torch.float64)).requires_grad_()
    v, u = _matrix(3, 3, seed=4), _matrix(3, 3, seed=5)
    with torch.no_grad():
        weight = torch.linspace(0.5, 1.5, f(A).numel(), dtype=torch.float64).reshape(f(A).shape)
        slope = _slope(f, A, v, weight)

    def gradient_along(X):
        X = X.detach().requires_grad_()
        (g,) = torch.autograd.grad((f(X) * weight).sum(), X, create_graph=True)
        return X, (g * v).sum()

    X, first = gradient_along(A)
    torch.testing.assert_close(first.detach(), slope, rtol=1e-6, atol=1e-6)
    (second,) = torch.autograd.grad(first, X)
    h = 1e-5
    expected = (gradient_along(A + h * u)[1] - gradient_along(A - h * u)[1]) / (2 * h)
    torch.testing.assert_close((second * u).sum(), expected.detach(), rtol=1e-5, atol=1e-5)


def test_errors_are_linalg_errors():
    with pytest.raises(torch.linalg.LinAlgError):
        torch.linalg.inv(torch.zeros(2, 2))
    assert issubclass(torch.linalg.LinAlgError, RuntimeError)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7, 8, 11, 16, 30, 37, 41, 97, 128, 1009])
def test_transform_is_the_definition(n):
    x = torch.complex(_matrix(n, seed=1), _matrix(n, seed=2))
    k = torch.arange(n, dtype=torch.float64)
    angle = -2 * torch.pi * torch.remainder(torch.outer(k, k), n) / n
    matrix = torch.complex(torch.cos(angle), torch.sin(angle))
    torch.testing.assert_close(torch.fft.fft(x), matrix @ x, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(torch.fft.ifft(torch.fft.fft(x)), x, rtol=1e-11, atol=1e-11)


def test_transform_of_views():
    x = _matrix(6, 8)
    torch.testing.assert_close(torch.fft.fft(x.t()), torch.fft.fft(x.t().contiguous()))
    torch.testing.assert_close(torch.fft.rfft(x[::2, 1:7]), torch.fft.rfft(x[::2, 1:7].contiguous()))
    torch.testing.assert_close(torch.fft.fft(x[0].expand(4, 8)), torch.fft.fft(x[0]).expand(4, 8))


@pytest.mark.parametrize("other", [torch.float16, torch.float64])
def test_cdist_refuses_two_dtypes(other):
    with pytest.raises(RuntimeError, match="expected m1 and m2 to have the same dtype, but got: float != "):
        torch.cdist(torch.ones(30, 40), torch.ones(20, 40, dtype=other))


def test_openblas_takes_the_number_of_threads_of_torch():
    (path,) = (Path(scipy.__file__).resolve().parent.parent / "scipy.libs").glob("libscipy_openblas*")
    library, before = ctypes.CDLL(str(path)), torch.get_num_threads()
    try:
        for threads in (1, 2, 1):
            torch.set_num_threads(threads)
            torch.linalg.inv(_matrix(3, 3))
            assert library.scipy_openblas_get_num_threads() == threads
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64, torch.complex128])
@pytest.mark.parametrize("size", [63, 64, 150])
def test_triangles_of_small_and_of_large_matrices(size, dtype):
    torch.manual_seed(3)
    a = torch.randn(2, size, size, dtype=dtype) / size + 2 * torch.eye(size, dtype=dtype)
    b = torch.randn(2, size, 5, dtype=dtype)
    bound = 1e-4 if dtype in (torch.float32, torch.complex64) else 1e-11
    for upper in (False, True):
        for unit in (False, True):
            triangle = a.triu(int(unit)) if upper else a.tril(-int(unit))
            if unit:
                triangle = triangle + torch.eye(size, dtype=dtype)
            x = torch.linalg.solve_triangular(a, b, upper=upper, unitriangular=unit)
            torch.testing.assert_close(triangle @ x, b, rtol=bound, atol=bound)
            x = torch.linalg.solve_triangular(a, b.mT, upper=upper, left=False, unitriangular=unit)
            torch.testing.assert_close(x @ triangle, b.mT, rtol=bound, atol=bound)
            x = torch.triangular_solve(b, a, upper, True, unit).solution
            torch.testing.assert_close(triangle.mT @ x, b, rtol=bound, atol=bound)


@pytest.mark.parametrize("size", [3, 100])
def test_a_zero_on_the_diagonal_gives_no_error(size):
    a = torch.eye(size)
    a[1, 1] = 0
    x = torch.linalg.solve_triangular(a, torch.ones(size, 2), upper=True)
    assert x[1].tolist() == [float("inf")] * 2 and x[2].tolist() == [1, 1]


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("transpose", [True, False])
def test_gradients_of_ormqr_in_the_multiplied_matrix(dtype, left, transpose):
    torch.manual_seed(7)
    reflectors, tau = torch.geqrf(torch.randn(2, 4, 3, dtype=dtype))
    x = torch.randn(2, *((4, 2) if left else (2, 4)), dtype=dtype, requires_grad=True)

    def multiplied(x):
        return torch.ormqr(reflectors, tau, x, left, transpose)

    assert torch.autograd.gradcheck(multiplied, x, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(multiplied, x)
    node = multiplied(x).grad_fn
    assert [after.name() for after, _ in node.next_functions] == ["torch::autograd::AccumulateGrad"]
