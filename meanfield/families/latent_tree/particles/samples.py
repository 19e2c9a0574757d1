"""Samples of a latent tree."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from meanfield.families.latent_tree.problem import Problem
from meanfield.families.latent_tree.ring.objects import RingObjects
from meanfield.typing import FloatArray

Values = NDArray[np.bool_]
"""Values of latents: True for 1."""


class Sampler:
    """Sampler of the tree of a problem.

    Parameters
    ----------
    problem : Problem
    """

    def __init__(self, problem: Problem) -> None:
        tree, shape = problem.tree, problem.shape
        self._root, self._leaves = tree.root[1], tree.leaves
        # The root is above all: level by level down, with the children of each latent side by side.
        self._stay = [0.5 * (1.0 + rho) for rho in reversed(tree.polarities)]
        self._children = list(reversed(shape.children))
        self._count = sum(len(stay) for stay in self._stay)

    def roots(self, rng: Generator, count: int) -> Values:
        """Values of independent roots, shape (count,)."""
        return np.asarray(rng.random(count) < self._root)

    def below(self, rng: Generator, roots: Values) -> list[Values]:
        """Values of all latents given the root, level by level from the root down, shapes (samples, latents)."""
        chance, first = rng.random((len(roots), self._count)), 0
        found = [roots[:, None]]
        for stay, children in zip(self._stay, self._children, strict=True):
            moved = chance[:, first : first + len(stay)] >= stay
            found.append(np.repeat(found[-1], children, axis=1) ^ moved)
            first += len(stay)
        return found

    def leaves(self, values: list[Values]) -> FloatArray:
        """Inputs of the network, shape (samples, leaves)."""
        low, high = self._leaves
        return np.asarray(np.where(values[-1], high, low))

    def views(self, rng: Generator, roots: Values) -> FloatArray:
        """Inputs of independent views of samples with these roots."""
        return self.leaves(self.below(rng, roots))

    def unaugmented(self, rng: Generator, roots: Values) -> FloatArray:
        """Inputs that stand for the samples themselves: a sample of a tree is one more view."""
        return self.views(rng, roots)


class RingSampler(Sampler):
    """Sampler of objects on a ring: the root is the object, and leaves are the pixels that nodes see."""

    def __init__(self, data: RingObjects) -> None:
        self._data, self._root, self._leaves = data, 0.5, (0.0, 1.0)

    def below(self, rng: Generator, roots: Values) -> list[Values]:
        """See `Sampler.below`."""
        return [roots[:, None], self._data.views(rng, roots)]


def sampler_of(problem: Problem) -> Sampler:
    """Sampler of the data of a problem."""
    return Sampler(problem) if problem.data is None else RingSampler(problem.data)
