"""How weights move down a gradient: all at the same rate, or as nodes of a network with a limit of many of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from meanfield.families.latent_tree.weights import Array, Weights


class Motion:
    """The flow W' = -grad L."""

    def velocity(self, weights: Weights, gradient: Weights) -> Array:
        """Velocity of all weights in one row."""
        return -gradient.vector

    def held(self, weights: Weights) -> Array:
        """Weights in one row, back where they are held after a step."""
        return weights.vector


@dataclass(frozen=True)
class ManyNodes(Motion):
    """Two levels with the output sum_mu (1/n) sum_j v_j f_j of n nodes for each latent, and n times the rate for each.

    The weights of the root are u = v/n: in time t they move as u' = -grad L/n, those below at n times the gradient.

    Parameters
    ----------
    nodes : int
        n.
    fixed_lengths : bool
        Whether nodes stay on the unit sphere, and v where it is.
    """

    nodes: int
    fixed_lengths: bool

    def velocity(self, weights: Weights, gradient: Weights) -> Array:
        """See `Motion.velocity`."""
        W = [-self.nodes * gradient.W[0], -gradient.W[1] / self.nodes]
        b = [-self.nodes * gradient.b[0], -gradient.b[1]] if gradient.b else []
        if self.fixed_lengths:
            outward = self._along(weights, W, b) / self._along(weights, weights.W, weights.b)
            W = [W[0] - outward[..., None, None] * weights.W[0], np.zeros_like(W[1])]
            b = [b[0] - outward * weights.b[0], b[1]] if b else []
        return Weights(weights.shape, W, b).vector

    def held(self, weights: Weights) -> Array:
        """See `Motion.held`."""
        if not self.fixed_lengths:
            return weights.vector
        length = np.sqrt(self._along(weights, weights.W, weights.b))
        W = [weights.W[0] / length[..., None, None], weights.W[1]]
        b = [weights.b[0] / length, weights.b[1]] if weights.b else []
        return Weights(weights.shape, W, b).vector

    @staticmethod
    def _along(weights: Weights, W: list[Array], b: list[Array]) -> Array:
        """Products of the weights of the nodes below the root with others, shape (..., latents, nodes)."""
        found = (weights.W[0] * W[0]).sum(axis=(-2, -1))
        return np.asarray(found + weights.b[0] * b[0] if b else found)
