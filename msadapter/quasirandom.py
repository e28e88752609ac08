"""torch.quasirandom: Sobol sequences, with the direction numbers that SciPy has."""

from __future__ import annotations

import numpy as np

import msadapter as torch

_BITS = 30


def _direction_numbers(dimension: int) -> np.ndarray:
    """Return the direction numbers, one row for each dimension, the most significant one first."""
    from scipy.stats import qmc  # here: it takes a second to import

    return qmc.Sobol(dimension, scramble=False, bits=_BITS)._sv.astype(np.int64)


def _multiplied(directions: np.ndarray, lower: np.ndarray) -> np.ndarray:
    """Multiply the bits of each direction number by the lower triangular matrix of its dimension, modulo 2."""
    places = np.arange(_BITS)[::-1]
    matrices = lower | np.eye(_BITS, dtype=lower.dtype)
    bits = directions[:, :, None] >> places & 1
    return ((bits @ matrices.transpose(0, 2, 1)) % 2 << places).sum(-1)


class SobolEngine:
    """Draws points of a Sobol sequence in the unit cube of ``dimension`` dimensions.

    With ``scramble`` the sequence is randomised by a linear matrix scramble and a digital shift, which ``seed``
    determines.

    Raises:
        ValueError: the dimension is not supported.
    """

    MAXBIT = _BITS
    MAXDIM = 21201

    def __init__(self, dimension, scramble=False, seed=None):
        if not 1 <= dimension <= self.MAXDIM:
            raise ValueError(f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}]")
        self.seed = seed
        self.scramble = scramble
        self.dimension = dimension
        self.sobolstate = torch.from_numpy(_direction_numbers(dimension))
        self.shift = torch.zeros(dimension, dtype=torch.long)
        if scramble:
            self._scramble()
        self.quasi = self.shift.clone()
        self._first_point = (self.quasi / 2**_BITS).reshape(1, -1)
        self.num_generated = 0

    def _scramble(self) -> None:
        generator = None if self.seed is None else torch.Generator().manual_seed(self.seed)
        shift = torch.randint(2, (self.dimension, _BITS), generator=generator)
        self.shift = (shift << torch.arange(_BITS)).sum(1)
        lower = torch.randint(2, (self.dimension, _BITS, _BITS), generator=generator).tril()
        self.sobolstate = torch.from_numpy(_multiplied(self.sobolstate.numpy(), lower.numpy()))

    def _advance(self, n: int) -> np.ndarray:
        """Move on by ``n`` points after the first one, and return them as integers."""
        # A point differs from the one before it by the direction number of the lowest zero bit of its index.
        index = np.arange(n) + max(self.num_generated - 1, 0)
        lowest = np.log2(~index & index + 1).astype(np.int64)
        steps = self.sobolstate.numpy().T[lowest]
        points = np.bitwise_xor.accumulate(np.concatenate([self.quasi.numpy()[None], steps]))
        self.quasi = torch.from_numpy(points[-1].copy())
        return points[1:]

    def draw(self, n: int = 1, out=None, dtype=None):
        """Return the next ``n`` points as a tensor of shape (n, dimension)."""
        dtype = torch.get_default_dtype() if dtype is None else dtype
        fresh = self.num_generated == 0
        count = n - 1 if fresh else n
        if count < 0:
            raise RuntimeError(
                f"Trying to create tensor with negative dimension {count}: [{count}, {self.dimension}]"
            )
        if count and dtype not in (torch.float32, torch.float64):
            name = dtype.scalar_name
            raise NotImplementedError(f"\"_sobol_engine_draw\" not implemented for '{name}'")
        result = torch.from_numpy(self._advance(count)).to(dtype) / 2**_BITS
        if fresh:
            result = torch.cat((self._first_point.to(dtype), result.to(dtype)), dim=0)
        self.num_generated += n
        return result if out is None else out.resize_as_(result).copy_(result)

    def draw_base2(self, m: int, out=None, dtype=None):
        """Return the next 2**m points. Together with those before they must be a power of two, which keeps their balance."""
        n = 2**m
        total = self.num_generated + n
        if total & total - 1:
            raise ValueError(
                "The balance properties of Sobol' points require n to be a power of 2. "
                f"{self.num_generated} points have been previously generated, then: n={self.num_generated}+2**{m}={total}. "
                "If you still want to do this, please use 'SobolEngine.draw()' instead."
            )
        return self.draw(n=n, out=out, dtype=dtype)

    def reset(self):
        """Go back to the first point."""
        self.quasi.copy_(self.shift)
        self.num_generated = 0
        return self

    def fast_forward(self, n: int):
        """Leave out the next ``n`` points."""
        self._advance(max(n - 1 if self.num_generated == 0 else n, 0))
        self.num_generated += n
        return self

    def __repr__(self) -> str:
        parts = [f"dimension={self.dimension}"]
        if self.scramble:
            parts.append("scramble=True")
        if self.seed is not None:
            parts.append(f"seed={self.seed}")
        return f"{type(self).__name__}({', '.join(parts)})"
