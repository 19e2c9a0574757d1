"""Images of a problem and their views, as inputs of the network."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from meanfield.families.latent_tree.images.problem import ImageProblem
from meanfield.typing import FloatArray, IntArray


class ImageSampler:
    """Sampler of the images that are trained on, uniformly and with replacement.

    Parameters
    ----------
    problem : ImageProblem
    """

    def __init__(self, problem: ImageProblem) -> None:
        self._images, self._augmentation = problem.data.read, problem.data.augmentation
        self._trained, _ = problem.data.split

    def roots(self, rng: Generator, count: int) -> IntArray:
        """Numbers of independent images, shape (count,)."""
        return np.asarray(self._trained[rng.integers(len(self._trained), size=count)])

    def views(self, rng: Generator, roots: IntArray) -> FloatArray:
        """Inputs of independent views of images with these numbers, shape (views, pixels)."""
        return self._augmentation.views(self._images.values(roots), rng).reshape(len(roots), -1)

    def unaugmented(self, rng: Generator, roots: IntArray) -> FloatArray:
        """Inputs of the images themselves."""
        return self._images.values(roots).reshape(len(roots), -1)
