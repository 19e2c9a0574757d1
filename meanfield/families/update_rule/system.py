"""Systems: the draws of a problem with its functions, and the layout of the constants that these read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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
        M = self.features
        G = np.empty((*R.shape[:-2], self.vectors, self.vectors))
        G[..., :M, :M] = np.eye(M) if nodes is None else nodes.teacher[:, None, None] * np.eye(M)
        G[..., M:, :M], G[..., :M, M:], G[..., M:, M:] = R, R.swapaxes(-1, -2), Q
        return G


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
    means = tuple(each for kind, _ in kinds for each in _means(problem, kind.single, nodes))
    measured = {
        name: Measured(draw, _program([(what, each, ())], places, kind))
        for draw, (kind, places) in zip(draws, kinds, strict=True)
        for name, (what, each) in kind.measured.items()
    }
    names = tuple(problem.model.rule_parameters), tuple(problem.side)
    return System(M, K, draws, means, measured, *names, problem.constraints)


def _means(problem: Problem, kind: Kind, nodes: int) -> Iterator[Measured]:
    """What is averaged over samples of a kind before a step."""
    places = places_of(problem, kind)
    for each in kind.means:
        seen = places._replace(names=names_of_mean(problem, kind, each.view))
        program = _program([(each.what, each.function, each.shape)], seen, kind, each.kinks)
        yield Measured(_draw_of(problem, kind, places, nodes), program)


def _draw_of(problem: Problem, kind: Kind, places: Places, nodes: int) -> Draw:
    """Draw of a kind of sample."""
    M, K, L, m = len(problem.features), len(problem.students), kind.views, kind.samples
    gains = [(view, *gain) for view, each in enumerate(kind.gains) for gain in _gains(kind, each, M, K)]
    order = [(view * m + b) * K + k for view, students, _ in gains for b in range(m) for k in students]
    steps = [step for _, _, step in gains]
    steps += [(use.what, use.function, use.shape) for use in kind.moves]
    steps += [
        (f"side.{name}.step", side.function if name in kind.side else _nothing, ())
        for name, side in problem.side.items()
    ]
    signal = np.zeros((L, m, M + K, kind.variables))
    for b in range(m):
        for variable, vector in enumerate(kind.along, b * kind.variables // m):
            signal[:, b, vector, variable] = 1.0
    shared, own = (np.asarray(np.kron(each, np.eye(m))) for each in (np.full((L, L), kind.noise), kind.own))
    noise = [Noise(shared, kind.projected)] + [Noise(own)] * bool(own.any())
    update = _program(steps, places, kind)
    if order != sorted(order):
        update = replace(update, order=(*order, *range(len(order), update.outputs)))
    return Draw(
        names=places.names,
        hidden=hidden_of(kind.laws, nodes, kinks_of_hidden(update.kinks, _forms_of(kind, places))),
        normals=m * len(problem.data.normals),
        coins=tuple(np.repeat([*problem.data.coins.values()], m).tolist()),
        signal=signal.reshape(L * m, M + K, kind.variables),
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
            forms[list(place.columns)] = np.eye(len(place.columns), variables)
    return forms


def _gains(kind: Kind, gains: Sequence[Use], features: int, students: int) -> Iterator[tuple[range, Step]]:
    """Functions that give the factors of inputs of a view, for all students in their order; 0 where there are none."""
    place = 0
    for use in gains:
        first, last = use.students.start - features, use.students.stop - features
        yield from _zeros(kind, range(place, first))
        yield range(first, last), (use.what, use.function, use.shape)
        place = last
    yield from _zeros(kind, range(place, students))


def _zeros(kind: Kind, students: range) -> Iterator[tuple[range, Step]]:
    if students:
        yield students, (kind.what, _nothing, (kind.samples * len(students),))


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
