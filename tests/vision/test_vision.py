"""torch.ops.torchvision against the answers recorded from torchvision's C++ library, and torch.ops.load_library."""

from __future__ import annotations

import pytest

import msadapter as torch
from tests.batches import together
from tests.golden.suites import cases
from tests.golden.verdict import check
from tests.vision.operators import operators

CASES = cases("vision")


@together(CASES)
def test_case(case):
    check("vision", case, CASES[case], torch)


@pytest.mark.parametrize("name", ["nms_cuda.so", "image.so"])
def test_other_libraries_cannot_be_loaded(tmp_path, name):
    folder = tmp_path / "torchvision"
    folder.mkdir()
    (folder / name).touch()
    with pytest.raises(
        OSError, match=rf"^Could not load this library: {folder / name}: .*\(docs/coverage.md\)$"
    ):
        torch.ops.load_library(str(folder / name))
    assert str(folder / name) not in torch.ops.loaded_libraries


def test_a_missing_library_is_named(tmp_path):
    with pytest.raises(
        OSError, match=f"^Could not load this library: {tmp_path}/torchvision/_C.so: there is no such file$"
    ):
        torch.ops.load_library(tmp_path / "torchvision" / "_C.so")


def test_loading_twice_defines_the_operators_once():
    assert operators(torch).nms is operators(torch).nms
    assert any(path.endswith("torchvision/_C.so") for path in torch.ops.loaded_libraries)


def test_an_image_that_is_not_there_is_refused():
    vision = operators(torch)
    for image in (2, -1):
        rois = torch.tensor([[0, 0, 0, 2, 2], [image, 0, 0, 2, 2]], dtype=torch.float32)
        with pytest.raises(RuntimeError, match=f"one of the 2 images, but a row has {image}"):
            vision.roi_align(torch.ones(2, 3, 4, 4), rois, 1.0, 2, 2, 2, True)


@pytest.mark.parametrize("name", ["qnms", "qroi_align"])
def test_quantised_operators_say_so(name):
    with pytest.raises(
        NotImplementedError, match=rf"torchvision::{name} needs quantised tensors.*docs/coverage.md"
    ):
        getattr(operators(torch), name)(*[torch.ones(1, 4)] * (3 if name == "qnms" else 11))


@pytest.mark.parametrize("name", ["roi_align", "deform_conv2d"])
def test_gradients_given_by_the_backward_operators(name):
    """torchvision registers formulas of its own, which call the backward operators."""
    vision = operators(torch)
    torch.manual_seed(3)
    x = torch.randn(2, 4, 6, 5, dtype=torch.float64, requires_grad=True)
    if name == "roi_align":
        rois = torch.tensor([[0, 1, 1, 4, 3], [1, 0, 2, 3, 5.0]], dtype=torch.float64)
        out = vision.roi_align(x, rois, 0.8, 2, 3, 2, True)
        found = (vision._roi_align_backward(torch.ones_like(out), rois, 0.8, 2, 3, *x.shape, 2, True),)
        leaves = [x]
    else:
        shapes = ((4, 4, 3, 3), (2, 18, 4, 3), (2, 9, 4, 3), (4,))
        leaves = [x, *(torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes)]
        rest = (1, 1, 0, 0, 1, 1, 1, 1, True)
        out = vision.deform_conv2d(*leaves, *rest)
        found = vision._deform_conv2d_backward(torch.ones_like(out), *leaves, *rest)
    expected = torch.autograd.grad(out.sum(), leaves)
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs)
