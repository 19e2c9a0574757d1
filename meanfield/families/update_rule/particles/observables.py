"""Observables of SGD: averages over samples at the overlaps of a run, without the noise of samples of their own."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from meanfield.families.update_rule.averages import mean_of
from meanfield.families.update_rule.choices import choose
from meanfield.families.update_rule.problem import Problem
from meanfield.families.update_rule.rates import start_at
from meanfield.families.update_rule.spectral import Grams
from meanfield.families.update_rule.system import Measured, System
from meanfield.numerics.gaussian_moments.rules import Rule
from meanfield.problems.in_time import InTime
from meanfield.typing import FloatArray

TOLERANCE = 1e-7
"""Tolerance of averages, relative to the size of what is averaged: runs scatter by far more."""

NODES = 16
"""Nodes of a spectrum for the start at which rules of quadrature are chosen."""


class Observables:
    """Averages of the observables of a problem over samples, by rules of quadrature that suit its start.

    Parameters
    ----------
    problem : Problem
        Without phases.
    system : System
        Of that problem.

    Raises
    ------
    InputError
        If averages do not exist, or cannot be resolved.
    """

    def __init__(self, problem: Problem, system: System) -> None:
        self._in_time, self._system = InTime(problem), system
        R, Q, v, weighted = problem.initial_R, problem.initial_Q, problem.initial_v, None
        G, here = system.gram(R, Q), self._in_time(0.0)
        if problem.data.spectrum is not None:
            nodes = problem.data.spectrum.nodes(NODES)
            start = start_at(nodes, R, Q, v)
            weighted = Grams(system.gram(start.R, start.Q, nodes), nodes).weighted

        def chosen(measured: Iterable[Measured], constants: FloatArray) -> list[Rule]:
            return [choose(*each, G, constants, TOLERANCE, weighted).rule for each in measured]

        self.means = chosen(system.means, system.constants(here, 0.0, R, Q, v))
        constants = system.constants(here, 0.0, R, Q, v, self.means, weighted)
        self._rules = chosen(system.observables.values(), constants)

    def at(
        self, time: float, R: FloatArray, Q: FloatArray, v: FloatArray, weighted: FloatArray | None = None
    ) -> FloatArray:
        """Averages at the order parameters of some replicas, shape (replicas, observables).

        Gram matrices may be weighted with the variances of the noise, shape (replicas, vectors, vectors).
        """
        system, problem = self._system, self._in_time(time)
        found = np.full((len(R), len(self._rules)), np.nan)
        for row, state in enumerate(zip(R, Q, v, strict=True)):
            if not all(np.isfinite(each).all() for each in state):
                continue
            of_noise = None if weighted is None else weighted[row]
            constants = system.constants(problem, time, *state, self.means, of_noise)
            G = system.gram(*state[:2])
            for column, (each, rule) in enumerate(zip(system.observables.values(), self._rules, strict=True)):
                found[row, column] = mean_of(each.program, each.draw, G, constants, rule, of_noise)[0]
        return found
