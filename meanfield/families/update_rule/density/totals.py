"""Averages of a rule at overlaps of all coordinates, plain and weighted with the variances of their noise.

Averages are linear functions of G at an eigenvalue rho, and of rho times it. So three nodes serve for any spectrum:
G - G' with the eigenvalue 0, G' with 1, and G, which has no share. Their sums are G and G', the weighted one, and what
the rule does along both follows from the averages at the last two (update_rules.md, section 11).
"""

from __future__ import annotations

import numpy as np

from meanfield.families.update_rule.averages import Averages
from meanfield.families.update_rule.hidden_variables import NODES
from meanfield.families.update_rule.order_parameters.equations import FIRST_NODES, Equations
from meanfield.families.update_rule.problem import Problem
from meanfield.ingredients.spectra import Nodes
from meanfield.typing import FloatArray


class TotalEquations(Equations):
    """Equations of one student at overlaps of all coordinates; see `Equations`."""

    def __init__(self, problem: Problem, count: int = FIRST_NODES, hidden_nodes: int = NODES) -> None:
        super().__init__(problem, count, hidden_nodes)
        if self.nodes is not None:
            mean = self.mean_variance = float(self.nodes.weight @ self.nodes.rho)
            R, Q = problem.initial_R[0], problem.initial_Q[0, 0]
            teacher = np.array([1.0 - mean, mean, 1.0])
            self.nodes = Nodes(np.array([0.0, 1.0, 0.0]), np.array([1.0, 1.0, 0.0]), teacher)
            self.start = self.packed(np.array([*R, *(mean * R), mean * Q, Q]))

    def packed(self, overlaps: FloatArray) -> FloatArray:
        """Packed state of R and Q, or of R, those that are weighted, and Q."""
        if self.nodes is None:
            return overlaps
        M = len(self.problem.features)
        plain, weighted = np.append(overlaps[:M], overlaps[-1]), overlaps[M:-1]
        return np.concatenate([plain - weighted, weighted, plain])

    def coefficients(self, averages: Averages, G: FloatArray) -> FloatArray:
        """Coefficients of the limit in one vector: g, with g' and h if variances differ, Lambda, and G."""
        E, B, Lambda = averages.E[..., 0], averages.B[:, 0], averages.Lambda[0, 0]
        # The features of a student that is one of them fit, too.
        if self.nodes is None:
            gains = np.linalg.lstsq(G, E)[0] + B
            return np.array([*-gains[:-1], Lambda, gains[-1]])
        both, gains = (np.linalg.lstsq(G[node], E[node])[0] for node in (1, 2))
        of_noise, gains = both - gains, gains + B
        return np.array([*-gains[:-1], *-of_noise, Lambda, gains[-1]])
