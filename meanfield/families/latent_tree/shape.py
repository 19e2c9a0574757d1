"""Numbers of latents, children, nodes and configurations at each level of a tree; the root is at level L, leaves at 0.

Latents are numbered from the root on, level by level, from left to right.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from meanfield.typing import IntArray


@dataclass(frozen=True)
class Shape:
    """Shape of a tree and of the network on it.

    Parameters
    ----------
    children : tuple of int
        Children of a latent at level 1, 2, ..., L.
    nodes : int
        Nodes of the network for each latent.
    outputs : int, optional
        Nodes of the root, where they are others.
    values : int
        Number of values of a leaf.
    leaf_inputs : int
        Number of inputs of the network that a leaf is.
    """

    children: tuple[int, ...]
    nodes: int
    outputs: int | None = None
    values: int = 2
    leaf_inputs: int = 1

    @property
    def depth(self) -> int:
        """L."""
        return len(self.children)

    @cached_property
    def latents(self) -> tuple[int, ...]:
        """Number of latents at levels 0, 1, ..., L."""
        counts = [1]
        for below in reversed(self.children):
            counts.append(counts[-1] * below)
        return tuple(reversed(counts))

    @cached_property
    def configurations(self) -> tuple[int, ...]:
        """Number of configurations of the leaves below a latent at levels 0, 1, ..., L."""
        counts = [self.values]
        for below in self.children:
            counts.append(counts[-1] ** below)
        return tuple(counts)

    @property
    def inputs(self) -> tuple[int, ...]:
        """Number of nodes that feed a latent at levels 1, 2, ..., L."""
        return tuple(below * self.width(level) for level, below in enumerate(self.children))

    def width(self, level: int) -> int:
        """Number of nodes of a latent at a level; those of a leaf are its inputs."""
        if level == self.depth and self.outputs is not None:
            return self.outputs
        return self.nodes if level else self.leaf_inputs

    @property
    def output_of(self) -> IntArray:
        """Output for which nodes of each latent below the root count where these are dealt to outputs, in turns."""
        return np.arange(self.latents[-2]) % self.width(self.depth)

    @property
    def levels(self) -> range:
        """Levels that have a network, 1 to L."""
        return range(1, self.depth + 1)

    @property
    def level_of(self) -> IntArray:
        """Level of each latent that has a network, the root first, shape (latents,)."""
        return np.repeat(np.array(self.levels[::-1]), self.latents[:0:-1])
