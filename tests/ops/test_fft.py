"""Fourier transforms: what the library is asked for, its failures, real inputs, gradients and short-time transforms."""

from __future__ import annotations

import threading
import warnings

import numpy as np
import pytest

import msadapter as torch
from msadapter.ops import _pocketfft


class Library:
    """Stands for the library of transforms, and notes the numbers of threads that it is given."""

    def __init__(self, failure: Exception | None = None):
        self.threads, self.failure, self.real = [], failure, _pocketfft._library()

    def __getattr__(self, name):
        def call(*args):
            self.threads.append(args[-1])
            if self.failure:
                raise self.failure
            return getattr(self.real, name)(*args)

        return call


@pytest.mark.parametrize("transform", [torch.fft.fft, torch.fft.ifft2, torch.fft.rfft, torch.fft.irfft])
def test_the_library_runs_in_as_many_threads_as_are_set(transform, monkeypatch):
    library = Library()
    monkeypatch.setattr(_pocketfft, "_library", lambda: library)
    before = torch.get_num_threads()
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            for side in (300, 600):  # the threads are not worth while for the small one
                transform(
                    torch.ones(side, side, dtype=torch.complex64 if transform is torch.fft.irfft else None)
                )
    finally:
        torch.set_num_threads(before)
    assert library.threads == [1, 1, 1, 2]


def test_a_failure_of_the_library_is_an_error_that_says_why(monkeypatch):
    library = Library(MemoryError("no room for a plan"))
    monkeypatch.setattr(_pocketfft, "_library", lambda: library)
    with pytest.raises(RuntimeError, match="the Fourier transform failed: MemoryError: no room for a plan"):
        torch.fft.fft(torch.ones(8)).sum().item()
    library.failure = ValueError("x" * 5000)
    with pytest.raises(RuntimeError, match="ValueError: xxx"):
        torch.fft.fft(torch.ones(8)).sum().item()
    monkeypatch.undo()
    assert torch.fft.fft(torch.ones(8))[0].item() == 8


def test_transforms_of_several_threads_at_once():
    x = torch.randn(40, 30, dtype=torch.complex128)
    expected, results = np.fft.fft(x.numpy()), {}

    def run(k):
        results[k] = torch.fft.fft(x).numpy()

    threads = [threading.Thread(target=run, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(results) == [0, 1, 2, 3]
    for result in results.values():
        np.testing.assert_allclose(result, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dim", [(0,), (1, 2), (2, 0), (2, 1, 0)])
@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
def test_all_frequencies_of_real_values(dim, norm):
    x = torch.randn(4, 7, 6, dtype=torch.float64)
    for view in (
        x,
        x.permute(2, 0, 1),
        x[::2, 1:],
        x[:1].expand(5, 7, 6),
        x[:2, :1],
        x[:1, :2, :3],
        x[1:3, 2:5, :1],
    ):
        before = view.clone()
        for name in ("fftn", "ifftn"):
            result = getattr(torch.fft, name)(view, dim=dim, norm=norm).numpy()
            expected = getattr(np.fft, name)(view.numpy(), axes=dim, norm=norm)
            np.testing.assert_allclose(result, expected, rtol=1e-11, atol=1e-11)
        assert torch.equal(view, before)


@pytest.mark.parametrize("name", ["hfft", "hfft2", "ihfft", "ihfft2"])
@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
@pytest.mark.parametrize("size", [1, 2, 7, 8])
def test_transforms_of_hermitian_signals(name, norm, size):
    """Their definition: those of half a spectrum, with the other sign of the exponent."""
    other = {None: "forward", "ortho": "ortho", "forward": "backward"}[norm]
    if name.startswith("ih"):
        x = torch.randn(3, size, dtype=torch.float64)
        expected = {"ihfft": np.fft.rfft, "ihfft2": np.fft.rfft2}[name](x.numpy(), norm=other).conj()
        result = getattr(torch.fft, name)(x, norm=norm)
    else:
        x = torch.randn(3, size // 2 + 1, dtype=torch.complex128)
        inverse = {"hfft": np.fft.irfft, "hfft2": np.fft.irfft2}[name]
        sizes = {"n": size} if name == "hfft" else {"s": (3, size)}
        expected = inverse(x.numpy().conj(), norm=other, **sizes)
        result = getattr(torch.fft, name)(x, norm=norm, **sizes)
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("shape", [(3, 8), (4, 7), (2, 1), (1, 2), (5, 4)])
@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
def test_gradients_of_half_spectra(shape, norm):
    """Even and odd lengths differ in the last frequency, which stands for one or for two."""
    x = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    half = torch.fft.rfft2(x.detach()).requires_grad_()
    for function, value in (
        (lambda v: torch.fft.rfft(v, norm=norm), x),
        (lambda v: torch.fft.rfft2(v, norm=norm), x),
        (lambda v: torch.fft.ihfft(v, norm=norm), x),
        (lambda v: torch.fft.irfft2(v, s=shape, norm=norm), half),
        (lambda v: torch.fft.irfft(v, n=shape[-1] + 1, norm=norm), half),
        (lambda v: torch.fft.hfft(v, n=shape[-1], norm=norm), half),
        (lambda v: torch.fft.hfft2(v, s=shape, norm=norm), half),
        (lambda v: torch.fft.ihfft2(v, norm=norm), x),
        (lambda v: torch.fft.ifft(v, norm=norm), x),
        (lambda v: torch.fft.fft2(v, norm=norm), x),
    ):
        assert torch.autograd.gradcheck(function, (value,))
        assert torch.autograd.gradgradcheck(function, (value,))


@pytest.mark.parametrize("hop", [1, 3, 4, 8])
@pytest.mark.parametrize("real", [True, False])
def test_a_short_time_transform_is_inverted(hop, real):
    x = torch.randn(3, 61, dtype=torch.float64 if real else torch.complex128)
    window = torch.hann_window(8, dtype=torch.float64) + 0.2
    frames = torch.stft(x, 8, hop, window=window, return_complex=True)
    padded = np.pad(x.numpy(), ((0, 0), (4, 4)), mode="reflect")
    expected = (
        np.stack([padded[:, k * hop : k * hop + 8] for k in range(frames.shape[-1])], 1) * window.numpy()
    )
    expected = (np.fft.rfft if real else np.fft.fft)(expected).transpose(0, 2, 1)
    np.testing.assert_allclose(frames.numpy(), expected, rtol=1e-11, atol=1e-11)
    back = torch.istft(frames, 8, hop, window=window, return_complex=not real)
    torch.testing.assert_close(back, x[:, : back.shape[-1]], rtol=1e-11, atol=1e-11)


def test_a_missing_window_is_said():
    x, window = torch.rand(40), torch.ones(8)
    parts = torch.stft(x, 8, window=window, return_complex=True)
    torch.set_warn_always(True)
    try:
        with pytest.warns(UserWarning, match="will be applied,which is known to cause spectral leakage"):
            torch.stft(x, 8, return_complex=True)
        with pytest.warns(UserWarning, match="provide the same window used by stft"):
            torch.istft(parts, 8)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            torch.istft(parts, 8, window=window)
    finally:
        torch.set_warn_always(False)
