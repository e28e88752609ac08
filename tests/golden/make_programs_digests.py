"""Hashes of many more random programs than programs.npz has: errors, geometry, numbers and gradients."""

from __future__ import annotations

import json

from tests.golden import programs

FIRST_SEED, COUNT = 10000, 3000


def answer(torch, seed: int) -> str:
    return programs.digest(json.loads(json.dumps(programs.run(torch, programs.from_seed(seed)))))


def golden_answers(torch) -> dict:
    return {str(seed): answer(torch, seed) for seed in range(FIRST_SEED, FIRST_SEED + COUNT)}
