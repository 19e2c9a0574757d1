"""Systems: the draws of a problem with its functions, and the layout of the constants that these read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from meanfield.errors import InputError
from meanfield.families.update_rule.averages import mean_of
from meanfield.families.update_rule.draws import Draw, Noise, Program
from meanfield.families.update_rule.hidden_variables import NODES, hidden_of, kinks_of_hidden
from meanfield.families.update_rule.kinds import Kind, Use
from meanfield.families.update_rule.kinks import kinks_of
from meanfield.families.update_rule.places import Places, names_of_mean, places_of
from meanfield.families.update_rule.problem import Problem, numbers_at
from meanfield.families.update_rule.rule import Function, arguments_of
from meanfield.ingredients.spectra import Nodes
from meanfield.numerics.compiled.row_functions import Bound
from meanfield.numerics.gaussian_moments.rules import Rule
from meanfield.typing import FloatArray

Step = tuple[str, Function, tuple[int, ...]]
"""What messages call a function, the function, and the shape of its value."""


class Measured(NamedTuple):
    """What is measured, and the draw over which it is averaged."""

    draw: Draw
    program: Program


@dataclass(frozen=True)
class System:
    """Update rule with its data.

    Parameters
    ----------
    features, students : int
        M and K.
    draws : tuple of Draw
        Independent draws of a step, whose terms add.
    means : tuple of Measured
        Averages that functions read, in the order in which constants have them.
    observables : mapping of str to Measured
    parameters, side : tuple of str
        Names, in the order in which constants have them.
    constraints : tuple of (str, range)
        What follows a step for the students of each group.
    """

    features: int
    students: int
    draws: tuple[Draw, ...]
    means: tuple[Measured, ...]
    observables: Mapping[str, Measured]
    parameters: tuple[str, ...]
    side: tuple[str, ...]
    constraints: tuple[tuple[str, range], ...]

    @property
    def vectors(self) -> int:
        """N = M + K."""
        return self.features + self.students

    def constants(
        self,
        problem: Problem,
        t: float,
        R: FloatArray,
        Q: FloatArray,
        v: FloatArray,
        rules: Sequence[Rule] = (),
        weighted: FloatArray | None = None,
    ) -> FloatArray:
        """What all samples share at a time: t, parameters, side variables, R and Q, and averages.

        Parameters
        ----------
        problem : Problem
            At that time.
        rules : sequence of Rule, optional
            Rules of quadrature of the averages, which are NaN without.
        weighted : ndarray, shape (vectors, vectors), optional
            See `Draw.laws`.
        """
        found = np.concatenate([[t], numbers_at(problem.model.rule_parameters), v, R.ravel(), Q.ravel()])
        if not self.means:
            return found
        G, ends = self.gram(R, Q), np.cumsum([len(found), *(each.program.outputs for each in self.means)])
        found = np.concatenate([found, np.full(ends[-1] - ends[0], np.nan)])
        for (draw, program), rule, first, last in zip(self.means, rules, ends, ends[1:], strict=False):
            found[first:last] = mean_of(program, draw, G, found, rule, weighted)
        return found

    def gram(self, R: FloatArray, Q: FloatArray, nodes: Nodes | None = None) -> FloatArray:
        """G of features, which are orthonormal, and students, shape (vectors, vectors), or that of each node."""
        T = np.eye(self.features) if nodes is None else nodes.teacher[:, None, None] * np.eye(self.features)
        return np.block([[T, R.swapaxes(-1, -2)], [R, Q]])


def system_of(problem: Problem, nodes: int = NODES) -> System:
    """System of a problem; its functions are compiled when they are needed.

    Parameters
    ----------
    problem : Problem
        At one time: its numbers but for `rule_parameters` are those of the system.
    nodes : int, optional
        Number of nodes of laws of hidden variables that are no finite mixtures of Gaussians.

    Raises
    ------
    InputError
        If a kink is no linear form of what is in a row, or hidden variables have no mixture that averages can take.
    """
    M, K = len(problem.features), len(problem.students)
    kinds = [(kind, places_of(problem, kind)) for kind in problem.kinds]
    draws = tuple(_draw_of(problem, kind, places, nodes) for kind, places in kinds)
    means = tuple(
        Measured(draw, program)
        for draw, (kind, places) in zip(draws, kinds, strict=True)
        for program in _means(problem, kind, places)
    )
    measured = {
        name: Measured(draw, _program([(what, each, ())], places, kind))
        for draw, (kind, places) in zip(draws, kinds, strict=True)
        for name, (what, each) in kind.measured.items()
    }
    names = tuple(problem.model.rule_parameters), tuple(problem.side)
    return System(M, K, draws, means, measured, *names, problem.constraints)


def _means(problem: Problem, kind: Kind, places: Places) -> Iterator[Program]:
    """Programs of what is averaged over samples of a kind before a step."""
    for each in kind.means:
        seen = places._replace(names=names_of_mean(problem, kind, each.view))
        yield _program([(each.what, each.function, each.shape)], seen, kind, each.kinks)


def _draw_of(problem: Problem, kind: Kind, places: Places, nodes: int) -> Draw:
    """Draw of a kind of sample."""
    M, K, L = len(problem.features), len(problem.students), kind.views
    steps = [step for gains in kind.gains for step in _gains(kind.what, gains, problem)]
    steps += [(use.what, use.function, use.shape) for use in kind.moves]
    steps += [
        (f"side.{name}.step", side.function if name in kind.side else _nothing, ())
        for name, side in problem.side.items()
    ]
    signal = np.zeros((L, M + K, kind.variables))
    for variable, vector in enumerate(kind.along):
        signal[:, vector, variable] = 1.0
    noise = [Noise(np.full((L, L), kind.noise), kind.projected)] + [Noise(kind.own)] * bool(kind.own.any())
    update = _program(steps, places, kind)
    return Draw(
        names=places.names,
        hidden=hidden_of(kind.laws, nodes, kinks_of_hidden(update.kinks, _forms_of(kind, places))),
        normals=len(problem.data.normals),
        coins=tuple(problem.data.coins.values()),
        signal=signal,
        noise=tuple(noise),
        features=M,
        batch_size=kind.batch_size,
        update=update,
        moves=tuple((j, k - M) for use in kind.moves for j in use.vectors for k in use.students),
        observed=kind.observed,
        masks=kind.masks,
        scales_noise=kind.scales_noise,
        scales_signal=kind.scales_signal,
    )


def _forms_of(kind: Kind, places: Places) -> FloatArray:
    """What columns of a row say of hidden variables, shape (width, variables); NaN where they say other things, too."""
    variables = kind.variables
    forms = np.full((places.width, variables), np.nan)
    forms[:variables] = np.eye(variables)
    if kind.projected and min(kind.observed) == 1.0 and not kind.own.any() and not kind.scales_signal:
        fields = [place for name, place in places.names.items() if name.rstrip("0123456789") == "y"]
        for place in fields:
            forms[list(place.columns)] = np.eye(len(kind.along), variables)
    return forms


def _gains(what: str, gains: Sequence[Use], problem: Problem) -> Iterator[Step]:
    """Functions that give the factors of an input for all students in their order, 0 where there are none."""
    place, last = len(problem.features), len(problem.features) + len(problem.students)
    for use in gains:
        yield from _zeros(what, use.students.start - place)
        yield use.what, use.function, use.shape
        place = use.students.stop
    yield from _zeros(what, last - place)


def _zeros(what: str, count: int) -> Iterator[Step]:
    if count:
        yield what, _nothing, (count,)


def _nothing() -> float:
    return 0.0


def _program(functions: Sequence[Step], places: Places, kind: Kind, kinks: tuple[str, ...] = ()) -> Program:
    """Functions with the shapes of their values, side by side."""
    names, width, constants, _ = places
    bound = [
        (what, Bound(function, tuple(names[name] for name in arguments_of(function, what)), shape))
        for what, function, shape in functions
    ]
    try:
        return Program(tuple(bound), width, constants, kinks_of((*kind.kinks, *kinks), names, width, places.numbers))
    except ValueError as error:
        raise InputError(f"{kind.what}: {error}") from error
