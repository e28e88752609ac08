"""The switches of operators that run once for each element of a batch, under PyTorch's names."""

from __future__ import annotations

import warnings

import pytest

import msadapter as torch
from msadapter.func import vmap


def _looped(x):
    return torch.kron(x, x)


def test_it_can_be_disabled():
    names, x = torch._C._functorch, torch.ones(2, 3)
    names._set_vmap_fallback_enabled(False)
    try:
        assert not names._is_vmap_fallback_enabled()
        assert torch.equal(vmap(torch.sin)(x), x.sin())
        with pytest.raises(RuntimeError, match="kron hit the vmap fallback which is currently disabled"):
            vmap(_looped)(x)
    finally:
        names._set_vmap_fallback_enabled(True)
    assert torch.equal(vmap(_looped)(x), torch.ones(2, 9))


@pytest.mark.parametrize(
    "place", ["_debug_only_display_vmap_fallback_warnings", "_set_vmap_fallback_warning_enabled"]
)
def test_it_warns_on_demand(place):
    switch = getattr(torch._C if place.startswith("_debug") else torch._C._functorch, place)
    x = torch.ones(2, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        vmap(_looped)(x)
    switch(True)
    try:
        assert torch._C._debug_only_are_vmap_fallback_warnings_enabled()
        with pytest.warns(UserWarning, match="There is a performance drop .* for kron"):
            vmap(_looped)(x)
    finally:
        switch(False)
    assert not torch._C._debug_only_are_vmap_fallback_warnings_enabled()
