"""Plain SGD as a good user of NumPy or PyTorch would write it, to hold ours against.

Arrays are made once, all samples of a step are drawn by one call, and everything else is matrix products; there is no
loop over samples. The update is theory.md, section 1, without prior, for sigma(x) = x^2 and no centring; the views'
noise need not be added to the samples, because the views enter through products alone.
"""

from __future__ import annotations

import math
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.random import SFC64, Generator, SeedSequence

from meanfield.contrastive import Problem
from meanfield.families.contrastive.sgd.start import draw_features, draw_weights
from meanfield.families.contrastive.sgd.training import training_of

LIBRARIES = {"NumPy": "numpy", "PyTorch": "torch"}
INSTALLED = [name for name, module in LIBRARIES.items() if find_spec(module) is not None]


class Elsewhere:
    """One replica in NumPy or PyTorch, in double precision.

    Parameters
    ----------
    library : str
        A key of `LIBRARIES`.
    problem : Problem
    replica : int
        Chooses the random numbers.
    """

    def __init__(self, library: str, problem: Problem, replica: int = 0) -> None:
        self._rng = Generator(SFC64(SeedSequence(problem.particles.seed, spawn_key=(replica,))))
        U = draw_features(problem, self._rng)
        w = draw_weights(problem, U, self._rng)
        self._N, self._m = len(U), problem.model.batch_size
        self._rate = problem.model.learning_rate / (self._m * math.sqrt(self._N))
        self._laws, self._noise_factor = problem.hidden_laws, training_of(problem).noise_factor
        self._noisy = bool(self._noise_factor.any())
        shape = (3 if self._noisy else 1, self._m, self._N)
        if library == "PyTorch":
            import torch

            normals, generator = torch.empty(shape, dtype=torch.float64), torch.Generator()
            generator.manual_seed(int(self._rng.integers(2**62)))
            self._draw = lambda: torch.randn(shape, out=normals, generator=generator)
            self._lib: Any = torch
            self._as_array: Any = torch.from_numpy
        else:
            normals = np.empty(shape)
            self._draw = lambda: self._rng.standard_normal(out=normals)
            self._lib, self._as_array = np, np.asarray
        self._normals, self._rows = normals, normals.reshape(-1, self._N)
        self._U, self._w = self._as_array(U), self._as_array(w)
        self._shift = self._lib.empty_like(normals[0])

    @property
    def overlap(self) -> np.ndarray:
        """Q, shape (d1,)."""
        return np.asarray(self._U.T @ self._w / self._N)

    def advance(self, steps: int) -> None:
        """Take steps."""
        law_samples = [law.sample(self._rng, (steps, self._m)) for law in self._laws]
        for hidden in self._as_array(np.concatenate(law_samples, axis=2)):
            self._step(hidden)

    def _step(self, hidden: Any) -> None:
        (l11, _), (l21, l22) = self._noise_factor.tolist()
        root, U, w = math.sqrt(self._N), self._U, self._w
        self._draw()
        x = self._normals[0]
        # x = U c / sqrt(N) + a, where a is a Gaussian vector without its components along U
        self._lib.matmul(hidden / root - x @ U / self._N, U.T, out=self._shift)
        x += self._shift
        along = self._normals @ w / root
        if self._noisy:
            z1, z2 = along[0] + l11 * along[1], along[0] + l21 * along[1] + l22 * along[2]
        else:
            z1 = z2 = along[0]
        alpha, beta = z2 * z2 * (2.0 * z1), z1 * z1 * (2.0 * z2)
        factors = [alpha + beta, l11 * alpha + l21 * beta, l22 * beta][: len(along)]
        w += self._rate * (self._lib.stack(factors).reshape(-1) @ self._rows)
        w *= root / self._lib.linalg.norm(w)
