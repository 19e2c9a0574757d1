"""Mean outputs that change smoothly in time, of one feature and any activation: tables of few times, interpolated."""

from __future__ import annotations

from bisect import bisect_right

import numpy as np

from meanfield.families.contrastive.closures.outputs import (
    MeanOutputs,
    means_at_angles,
    no_mean_outputs,
    tabulated_means,
)
from meanfield.families.contrastive.problem import Problem
from meanfield.families.contrastive.sgd.training import closure_of_outputs
from meanfield.mckean_vlasov.closure_in_time import nodes_in_time, weights_at
from meanfield.numerics.piecewise import Table
from meanfield.problems.in_time import InTime
from meanfield.typing import FloatArray

MOST_STRETCHES = 64
"""Largest number of parts of a time without corners, each of which has nodes of its own."""

ANGLES = np.linspace(-1.5, 1.5, 13)
"""Values of arcsin q at which means show how many times they need."""


class MeansInTime:
    """Mean outputs as a function of time, by tables that are made where they are first asked for.

    Parameters
    ----------
    problem : Problem
        With one feature, without phases.
    """

    def __init__(self, problem: Problem) -> None:
        self._stretches = InTime(problem).stretches(problem.time.stop)
        self._starts = [stretch.start for stretch in self._stretches]
        self._nodes: dict[int, list[tuple[float, FloatArray]]] = {}
        self._tables: dict[float, Table] = {}

    def __call__(self, time: float) -> MeanOutputs:
        """Mean outputs at a time."""
        number = bisect_right(self._starts, time) - 1
        stretch = self._stretches[number]

        def expectation_at(t: float):  # type: ignore[no-untyped-def]
            return closure_of_outputs(stretch.at(t)).expectation

        if number not in self._nodes:
            # Means are found to the size of outputs: those of odd activations vanish under symmetric laws.
            found = nodes_in_time(
                lambda t: means_at_angles(expectation_at(t), ANGLES).reshape(1, -1),
                stretch.start,
                stretch.stop,
                MOST_STRETCHES,
            )
            self._nodes[number] = sorted(found, key=lambda each: each[0])
        parts = self._nodes[number]
        start, nodes = parts[max(bisect_right([each[0] for each in parts], time) - 1, 0)]
        if start not in self._tables:
            self._tables[start] = tabulated_means([expectation_at(float(t)) for t in nodes])
        table = self._tables[start]
        of_nodes = table.coefficients.reshape(*table.coefficients.shape[:2], len(nodes), 2)
        mixed = np.einsum("j,pojl->pol", weights_at(nodes, time), of_nodes)
        return no_mean_outputs()._replace(table=table._replace(coefficients=mixed))
