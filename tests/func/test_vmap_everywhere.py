"""vmap of every operator sample of the shared conformance set gives what the operator gives element by element.

Needs MSADAPTER_CONFORMANCE: the folder of run_conformance.py and its golden answers.
"""

from __future__ import annotations

import json

import pytest

import msadapter as torch
from msadapter.func import vmap
from msadapter.utils._pytree import tree_flatten, tree_unflatten

# They read a tensor's truth value or resize it, which differs between the elements of a batch.
REFUSED = {"nn.functional.gaussian_nll_loss", "resize_", "resize_as_"}

# Operators that raise without vmap already, with their errors.
UNFIT: dict[str, set[str]] = {}


def _tensors(tree) -> list:
    return [x for x in tree_flatten(tree)[0] if isinstance(x, torch.Tensor)]


def _close(a, b) -> bool:
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    a, b = (x if x.is_complex() else x.double() for x in (a, b))
    return torch.allclose(a, b, 1e-4, 1e-5, equal_nan=True)


def _compare(meta, sample, arrays, rc) -> tuple[int, list, set]:
    """Return (choices of batched inputs for which the results agree, choices for which they do not)."""
    args, kwargs, _ = rc.sample_args(sample, arrays, "cpu", rg=False)
    leaves, spec = tree_flatten((args, kwargs))
    places = [k for k, x in enumerate(leaves) if isinstance(x, torch.Tensor) and x.dtype.is_floating_point]
    agreed, wrong, unfit = 0, [], set()
    for which in {tuple(places[:1]), tuple(places), tuple(places[-1:])} if places else ():

        def function(*given, which=which):
            full = list(leaves)
            for k, x in zip(which, given, strict=True):
                full[k] = x
            a, k = tree_unflatten(full, spec)
            return rc.call(meta["path"], meta["kind"], list(a), dict(k))

        batch = [torch.stack([leaves[k], leaves[k] * 0.75 + 0.0625]) for k in which]
        try:
            one, two = (_tensors(function(*[x[i].clone() for x in batch])) for i in range(2))
        except Exception as error:  # without vmap already: UNFIT lists such operators
            unfit.add(type(error).__name__)
            continue
        if not one or [x.shape for x in one] != [x.shape for x in two]:
            continue
        want = [torch.stack(pair) for pair in zip(one, two, strict=True)]
        got = _tensors(vmap(function, randomness="different")(*[x.clone() for x in batch]))
        if len(got) == len(want) and all(map(_close, got, want)):
            agreed += 1
        else:
            wrong.append(which)
    return agreed, wrong, unfit


@pytest.mark.slow
def test_samples(conformance, torch_by_name, monkeypatch):
    monkeypatch.syspath_prepend(conformance)
    import run_conformance as rc

    rc.load_torch()
    index = json.loads((conformance / "golden" / "index.json").read_text())
    total, wrong, unfit = 0, [], {}
    for entry in index["ops"]:
        if entry["name"] in REFUSED:
            continue
        meta, z = rc.load_golden(str(conformance / "golden" / entry["file"]))
        arrays = rc.Lazy(z)
        for number, sample in enumerate(meta["samples"]):
            if sample["dtype"] != "float32" or sample.get("random"):
                continue
            agreed, differing, errors = _compare(meta, sample, arrays, rc)
            if errors:
                unfit.setdefault(entry["name"], set()).update(errors)
            total += agreed
            wrong += [(entry["name"], number, which) for which in differing]
    assert not wrong
    assert unfit == UNFIT
    assert total > 3500
