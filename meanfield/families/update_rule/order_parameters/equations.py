"""Equations of R, Q and side variables in time, with averages by rules of quadrature that are fine enough for them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from meanfield.errors import BlowUpError
from meanfield.families.update_rule.averages import Averages, averages_of, mean_of, sum_of
from meanfield.families.update_rule.choices import COUNTS, choose, enough_nodes, means_of
from meanfield.families.update_rule.draws import Draw, Program
from meanfield.families.update_rule.hidden_variables import NODES
from meanfield.families.update_rule.problem import Problem
from meanfield.families.update_rule.rates import State, packed, rates_of, start_at, unpacked
from meanfield.families.update_rule.spectral import Grams
from meanfield.families.update_rule.system import System, system_of
from meanfield.numerics.gaussian_moments.choosing import Choice
from meanfield.numerics.gaussian_moments.kernel import Moments
from meanfield.numerics.gaussian_moments.rules import Kind, Rule
from meanfield.numerics.ode import Rate, Solution, Tolerance, solve_in_stretches
from meanfield.problems.in_time import InTime
from meanfield.typing import FloatArray

GENERALITY: tuple[Kind, ...] = ("polynomial", "terms", "smooth", "kinked", "random")
"""Kinds of rules, from those for the most special functions."""

LARGEST = 1e6
"""Largest overlap that is not taken for a blow-up."""

FIRST_NODES = 16
"""Nodes of a spectrum of more eigenvalues in the first solution."""

MOST_NODES = 256
"""Largest number of nodes: more than any time takes in which digits of overlaps are left."""


class Stretch(NamedTuple):
    """Equations from one corner of a schedule or end of a phase to the next.

    Parameters
    ----------
    times : ndarray
        Both ends, and output times in between.
    system : System
    at : callable
        Problem at a time.
    """

    times: FloatArray
    system: System
    at: Callable[[float], Problem]


@dataclass(frozen=True)
class Rules:
    """Rules of quadrature for the draws of each stretch, for what these read as averages, and for the observables.

    Parameters
    ----------
    means, draws, observables : tuple of tuple of Rule
    """

    means: tuple[tuple[Rule, ...], ...]
    draws: tuple[tuple[Rule, ...], ...]
    observables: tuple[tuple[Rule, ...], ...]

    @property
    def levels(self) -> list[tuple[int, float, float, int]]:
        """Finenesses of all of them."""
        return [_fineness(rule) for stretch in (*self.means, *self.draws, *self.observables) for rule in stretch]


Place = tuple[float, FloatArray]
"""Time and packed state."""

Choices = Mapping[tuple[int, int], Choice]
"""Rules that were chosen, by the numbers of stretches and of programs; see `programs_of`."""


class Equations:
    """Equations of a problem in time.

    Parameters
    ----------
    problem : Problem
    count : int
        Number of nodes of the spectrum, if there is one.
    hidden_nodes : int
        Number of nodes of laws of hidden variables that are no finite mixtures of Gaussians.
    """

    def __init__(self, problem: Problem, count: int = FIRST_NODES, hidden_nodes: int = NODES) -> None:
        self.hidden_nodes = hidden_nodes
        self.problem, self.times = problem, problem.time.outputs_at
        spectrum, state = problem.data.spectrum, None if problem.initial is None else problem.initial.atoms
        self.count = count if state is None or state.rho is None else len(state.rho)
        self.nodes = None if spectrum is None else spectrum.nodes(self.count)
        self.stretches = [
            Stretch(each.outputs(self.times), system_of(each.at(each.start), hidden_nodes), each.at)
            for each in InTime(problem).stretches(float(self.times[-1]))
        ]
        start = State(problem.initial_R, problem.initial_Q, problem.initial_v)
        if state is not None and state.R_rho is not None and state.Q_rho is not None:
            start = State(state.R_rho, state.Q_rho, start.v)
        elif self.nodes is not None:
            start = start_at(self.nodes, *start)
        self.start = packed(start)

    def with_nodes(self, factor: float) -> Equations:
        """Equations with more or fewer nodes of the spectrum; the same with all eigenvalues, or with most nodes."""
        spectrum, count = self.problem.data.spectrum, round(factor * self.count)
        given = self.problem.initial is not None  # with overlaps at nodes of its own
        if self.nodes is None or spectrum is None or given or count > MOST_NODES:
            return self
        has_all = len(self.nodes.rho) != self.count or spectrum.exact_nodes() == self.count
        return self if has_all else Equations(self.problem, count, self.hidden_nodes)

    def with_hidden_nodes(self, hidden_nodes: int) -> Equations:
        """Equations with another number of nodes of hidden variables; the same if these have finite mixtures."""
        exact = all(draw.hidden.exact for each in self.stretches for draw in each.system.draws)
        if exact or hidden_nodes == self.hidden_nodes:
            return self
        return type(self)(self.problem, self.count, hidden_nodes)

    def with_fewer_hidden_nodes(self) -> Equations:
        """Equations whose difference tells how exact those are; the same if they are exact."""
        return self.with_hidden_nodes(COUNTS[max(COUNTS.index(self.hidden_nodes) - 1, 0)])

    def with_enough_hidden_nodes(self, places: Sequence[Place], choices: Choices, tolerance: float) -> Equations:
        """Equations with as many nodes of hidden variables as averages need at some states.

        Parameters
        ----------
        places, tolerance
            See `choose`.
        choices : mapping

        Raises
        ------
        InputError
            If no number of nodes resolves averages.
        """
        if self.with_fewer_hidden_nodes() is self:
            return self

        rules = self.rules(choices, lambda each: each.rule)

        def averages(hidden_nodes: int) -> list[Moments]:
            other = self.with_hidden_nodes(hidden_nodes)
            found = []
            for time, y in places:
                number = self._stretch_at(time)
                system, G, weighted, constants = other.place(number, time, y, rules.means[number])
                chosen = (*rules.means[number], *rules.draws[number], *rules.observables[number])
                found += [
                    means_of(draw, program, G, constants, rule, weighted)
                    for (draw, program), rule in zip(programs_of(system), chosen, strict=True)
                ]
            return found

        return self.with_hidden_nodes(enough_nodes(averages, tolerance))

    def state(self, y: FloatArray) -> State:
        """Order parameters of vectors, shape (..., numbers)."""
        overlaps = self.overlaps(y)
        return overlaps if self.nodes is None else overlaps.total(self.nodes.weight)

    def overlaps(self, y: FloatArray) -> State:
        """Order parameters at the nodes of the spectrum, if there is one, of vectors, shape (..., numbers)."""
        nodes = None if self.nodes is None else len(self.nodes.rho)
        return unpacked(y, len(self.problem.students), len(self.problem.features), nodes)

    def follow(self, rules: Rules, step: float, dense: bool = False) -> Solution:
        """Solution with some rules of quadrature, and a tolerance of steps; with its path if that is dense."""
        return solve_in_stretches(
            [(each.times, self.velocity(number, rules)) for number, each in enumerate(self.stretches)],
            self.start,
            self.times,
            Tolerance(relative=step, absolute=step),
            integrator="DOP853",
            check=_blow_up,
            dense=dense,
            label="order parameters",
            interruptible=True,
        )

    def observe(self, rules: Rules, solution: Solution) -> dict[str, FloatArray]:
        """Order parameters at output times, and observables there."""
        state = self.state(solution.values)
        found = {"Q": state.Q, "R": state.R, "v": state.v}
        if self.nodes is not None:
            by_noise = self.overlaps(solution.values).total(self.nodes.weight * self.nodes.rho)
            found |= {"Q_noise": by_noise.Q, "R_noise": by_noise.R}
        measured = list(self.stretches[0].system.observables)
        found["observables"] = np.full((len(self.times), len(measured)), np.nan)
        for row in np.flatnonzero(np.isfinite(solution.values).all(axis=1)):
            found["observables"][row] = self.measured(rules, self.times[row], solution.values[row])
        return {name: values for name, values in found.items() if values.size}

    def at_nodes(self, solution: Solution) -> dict[str, FloatArray]:
        """Nodes of the spectrum, if there is one, and the overlaps there at output times."""
        if self.nodes is None:
            return {}
        overlaps = self.overlaps(solution.values)
        found = {"rho": self.nodes.rho, "rho_weight": self.nodes.weight, "R_rho": overlaps.R, "Q_rho": overlaps.Q}
        return {name: values for name, values in found.items() if values.size}

    def measured(self, rules: Rules, time: float, y: FloatArray, number: int | None = None) -> FloatArray:
        """Observables at a time, shape (observables,), of a stretch, by default the last that it belongs to."""
        number = self._stretch_at(time) if number is None else number
        system, G, weighted, constants = self.place(number, time, y, rules.means[number])
        pairs = zip(system.observables.values(), rules.observables[number], strict=True)
        return np.array([mean_of(each.program, each.draw, G, constants, rule, weighted)[0] for each, rule in pairs])

    def choose(self, places: Iterable[Place], tolerance: float, known: Choices) -> Choices:
        """The finest of the rules that averages need at some states, and of those that are known.

        Parameters
        ----------
        places : iterable of (float, ndarray)
            Times and packed states.
        tolerance : float
            Of averages, relative to their size.
        known : mapping

        Raises
        ------
        InputError
            If averages do not exist, or no rule resolves them.
        """
        found = dict(known)
        for time, y in places:
            number = self._stretch_at(time)
            system, G, weighted, constants = self.place(number, time, y)
            for i, (draw, program) in enumerate(programs_of(system)):
                if system.means and i == len(system.means):  # from here on programs read these averages
                    constants = self.place(number, time, y, [found[number, mean].rule for mean in range(i)])[3]
                before = found.get((number, i))
                least = None if before is None else before.coarser
                choice = choose(draw, program, G, constants, tolerance, weighted, least)
                found[number, i] = max(before or choice, choice, key=lambda each: _fineness(each.rule))
        return found

    def rules(self, choices: Choices, which: Callable[[Choice], Rule]) -> Rules:
        """Rules of some choices, which stretches without any take from those before."""
        found = []
        for number, each in enumerate(self.stretches):
            last = max(known for known, _ in choices if known <= number)
            chosen = [which(choices[last, i]) for i, _ in enumerate(programs_of(each.system))]
            first, last = np.cumsum([len(each.system.means), len(each.system.draws)])
            found.append((tuple(chosen[:first]), tuple(chosen[first:last]), tuple(chosen[last:])))
        return Rules(*zip(*found, strict=True))

    def velocity(self, number: int, rules: Rules) -> Rate:
        """Rates of change of a packed state in a stretch, by rules of quadrature."""
        stretch, nodes, averages = self.stretches[number], self.nodes, self.averages(number, rules)
        system = stretch.system

        def velocity(t: float, y: FloatArray) -> FloatArray:
            if not np.isfinite(y).all():  # inside a step that is much too long, which integrators then take back
                return np.full_like(y, np.nan)
            found, G = averages(t, y)
            return packed(rates_of(found, G, system.features, decay_of(stretch.at(t)), system.constraints, nodes))

        return velocity

    def averages(self, number: int, rules: Rules) -> Callable[[float, FloatArray], tuple[Averages, FloatArray]]:
        """Averages of a step at a time and a packed state of a stretch, and the Gram matrix, by rules of quadrature."""
        stretch, nodes, means, draws = self.stretches[number], self.nodes, rules.means[number], rules.draws[number]
        system = stretch.system

        def averages(t: float, y: FloatArray) -> tuple[Averages, FloatArray]:
            overlaps = self.overlaps(y)
            state = overlaps if nodes is None else overlaps.total(nodes.weight)
            grams = Grams(system.gram(overlaps.R, overlaps.Q, nodes), nodes)
            constants = system.constants(stretch.at(t), t, *state, means, grams.weighted)
            found = sum_of(
                (1.0, averages_of(draw, len(system.side), grams.at, constants, rule, nodes))
                for draw, rule in zip(system.draws, draws, strict=True)
            )
            return found, grams.at

        return averages

    def place(
        self, number: int, time: float, y: FloatArray, means: Sequence[Rule] = ()
    ) -> tuple[System, FloatArray, FloatArray | None, FloatArray]:
        """System, Gram matrix, that weighted with variances if these differ, and constants at a time of a stretch.

        Averages that functions read are NaN without their rules.
        """
        stretch, overlaps = self.stretches[number], self.overlaps(y)
        grams = Grams(stretch.system.gram(overlaps.R, overlaps.Q, self.nodes), self.nodes)
        constants = stretch.system.constants(stretch.at(time), time, *self.state(y), means, grams.weighted)
        return stretch.system, grams.total, grams.weighted, constants

    def _stretch_at(self, time: float) -> int:
        ends = [each.times[-1] for each in self.stretches[:-1]]
        return int(np.searchsorted(ends, time, side="right"))


def programs_of(system: System) -> list[tuple[Draw, Program]]:
    """Programs that are averaged: what others read as averages, the steps of all draws, and the observables."""
    steps = [(draw, draw.update) for draw in system.draws]
    return [*system.means, *steps, *system.observables.values()]


def decay_of(problem: Problem) -> float:
    """Rate at which a linear prior shrinks the weights."""
    return 0.0 if problem.prior.name == "none" else float(problem.prior.force(np.ones(1))[0])


def _fineness(rule: Rule) -> tuple[int, float, float, int]:
    special = math.inf if rule.degree is None else float(rule.degree)
    if rule.powers is not None:
        special = -1.0
    if rule.parts is not None:
        special = float(rule.parts.partners.sum())
    return GENERALITY.index(rule.kind), special, rule.reach, rule.order


def _blow_up(time: float, y: FloatArray) -> BlowUpError | None:
    if np.all(np.abs(y) <= LARGEST):
        return None
    size = f"as large as {np.abs(y).max():.3g}" if np.isfinite(y).all() else "not finite"
    return BlowUpError(
        time,
        f"an overlap or side variable is {size}, infinite in finite time",
        "lower the rate in model.rule_parameters",
    )
