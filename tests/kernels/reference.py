"""Plain formulas in float64 numpy, all scores at once: what the fused kernels are compared with."""

from __future__ import annotations

import os

import numpy as np


def examples(count: int) -> int:
    """The number of examples that hypothesis draws: MSADAPTER_EXAMPLES times the usual number."""
    return count * int(os.environ.get("MSADAPTER_EXAMPLES", "1"))


def hidden(mode, queries, keys, pre, following, mask, prefix=0, special=False):
    """The hidden scores, computed score by score from the text of the documentation."""
    out = np.zeros((queries, keys), bool)
    if mask is None:
        return out
    corner = keys - queries
    for i in range(queries):
        for j in range(keys):
            if mode == 0:
                out[i, j] = j < i - pre or j > i + following
            elif mode == 4 or special:
                out[i, j] = j < i + corner - pre or j > i + corner + following
            elif mode in (2, 8):
                out[i, j] = j > i
            elif mode in (3, 7):
                out[i, j] = j > i + corner
            elif mode in (5, 6):
                out[i, j] = j > i + corner and j >= prefix
    return out


def attention(q, k, v, hide, scale, before=0.0, after=0.0, keep=None):
    """Output, maxima, sums, and a function from the output's gradient to those of q, k, v and the bias before scaling.

    q is (B, N, S, D), and k and v have fewer heads. `keep` has the factors of the dropout.
    """
    group = q.shape[1] // k.shape[1]
    kk, vv = (np.repeat(x, group, 1) for x in (k, v))
    s = (q @ kk.swapaxes(-1, -2) + before) * scale + after
    s = np.where(hide, -np.inf, s)
    top = s.max(-1, keepdims=True, initial=-np.inf)
    with np.errstate(invalid="ignore"):
        e = np.where(np.isfinite(top), np.exp(s - top), 0.0)
    total = e.sum(-1, keepdims=True)
    p = e / np.where(total == 0, 1, total)
    dropped = p if keep is None else p * keep
    out = dropped @ vv

    def gradient(g):
        dv = dropped.swapaxes(-1, -2) @ g
        dp = g @ vv.swapaxes(-1, -2)
        dp = dp if keep is None else dp * keep
        ds = p * (dp - (p * dp).sum(-1, keepdims=True))
        dq, dk = ds @ kk * scale, (ds * scale).swapaxes(-1, -2) @ q
        fold = (k.shape[0], k.shape[1], group)
        return (
            dq,
            dk.reshape(*fold, *dk.shape[2:]).sum(2),
            dv.reshape(*fold, *dv.shape[2:]).sum(2),
            ds,
        )

    return out, top[..., 0], total[..., 0], gradient


def vjp(formula, arrays, gradients):
    """The gradients of sum(g * output) by complex steps, which are exact to rounding and need no derivative by hand.

    formula: a function from arrays to a tuple of arrays that is analytic, so that it accepts complex numbers.
    """
    step, found = 1e-30, []
    for which, array in enumerate(arrays):
        out = np.zeros(array.shape)
        for index in np.ndindex(array.shape):
            moved = [x.astype(complex) for x in arrays]
            moved[which][index] += 1j * step
            results = formula(*moved)
            out[index] = (
                sum((g * r).sum() for g, r in zip(gradients, results, strict=True) if g is not None).imag
                / step
            )
        found.append(out)
    return found
