"""Systems: the draws of a problem with its functions, and the layout of the constants that these read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from meanfield.errors import InputError
from meanfield.families.update_rule.draws import Draw, Noise, Program
from meanfield.families.update_rule.hidden_variables import NODES, hidden_of, kinks_of_hidden
from meanfield.families.update_rule.kinks import kinks_of
from meanfield.families.update_rule.problem import Problem, numbers_at
from meanfield.families.update_rule.rule import Function, arguments_of
from meanfield.numerics.compiled.row_functions import Argument, Bound
from meanfield.typing import FloatArray


@dataclass(frozen=True)
class System:
    """Update rule with its data.

    Parameters
    ----------
    features, students : int
        M and K.
    draws : tuple of Draw
        Independent draws of a step, whose terms add.
    observables : mapping of str to Program
        What is averaged over the first draw.
    parameters, side : tuple of str
        Names, in the order in which constants have them.
    constraint : str
    """

    features: int
    students: int
    draws: tuple[Draw, ...]
    observables: Mapping[str, Program]
    parameters: tuple[str, ...]
    side: tuple[str, ...]
    constraint: str

    @property
    def vectors(self) -> int:
        """N = M + K."""
        return self.features + self.students

    def constants(self, problem: Problem, t: float, R: FloatArray, Q: FloatArray, v: FloatArray) -> FloatArray:
        """What all samples share at a time: t, parameters, side variables, R and Q.

        Parameters
        ----------
        problem : Problem
            At that time.
        """
        return np.concatenate([[t], numbers_at(problem.model.rule_parameters), v, R.ravel(), Q.ravel()])

    def gram(self, R: FloatArray, Q: FloatArray) -> FloatArray:
        """G of features, which are orthonormal, and students, shape (vectors, vectors)."""
        return np.block([[np.eye(self.features), R.T], [R, Q]])


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
    rule = problem.model.functions
    parameters, side = tuple(problem.model.rule_parameters), tuple(problem.side)
    variables = M if problem.data.signal != "none" else 0
    names, width, constants = _places(problem, variables)
    steps: list[tuple[str, Function, tuple[int, ...]]] = [("step", rule.step, _squeezed(K))]
    if rule.along is not None:
        steps.append(("along", rule.along, () if K == 1 else (M + K, K)))
    steps += [(f"side.{name}.step", each.function, ()) for name, each in problem.side.items()]
    update = _program(steps, names, width, constants, rule.kinks)
    signal = np.zeros((1, M + K, variables))
    signal[0, :variables] = np.eye(variables)
    forms = np.full((width, variables), np.nan)
    forms[:variables] = np.eye(variables)
    if problem.data.signal == "orthogonal" and problem.data.observed == 1.0:
        forms[list(names["y"].columns)] = np.eye(variables)
    draw = Draw(
        names=names,
        hidden=hidden_of(problem.hidden_laws, nodes, kinks_of_hidden(update.kinks, forms)),
        normals=len(problem.data.normals),
        coins=tuple(problem.data.coins.values()),
        signal=signal,
        noise=(Noise(np.array([[problem.data.noise]]), problem.data.signal == "orthogonal"),),
        features=M,
        batch_size=problem.model.batch_size,
        update=update,
        observed=problem.data.observed,
    )
    observables = {
        name: _program([(f"observable '{name}'", each, ())], names, width, constants, rule.kinks)
        for name, each in rule.measured.items()
    }
    return System(M, K, (draw,), observables, parameters, side, problem.model.constraint)


def _places(problem: Problem, variables: int) -> tuple[dict[str, Argument], int, int]:
    """Places of all names, and numbers of columns of a row and of constants."""
    M, K = len(problem.features), len(problem.students)
    names: dict[str, Argument] = {}
    first = 0

    def put(name: str, count: int) -> None:
        nonlocal first
        names[name] = Argument(first, () if count == 1 else (count,))
        first += count

    if variables:
        put("c", variables)
    for name in (*problem.data.normals, *problem.data.coins):
        put(name, 1)
    if M:
        put("y", M)
    put("s", K)
    width, first = first, 0
    for name in ("t", *problem.model.rule_parameters, *problem.side):
        names[name] = Argument(first, (), constant=True)
        first += 1
    if M:
        names["R"] = Argument(first, _squeezed(K, M), constant=True)
    names["Q"] = Argument(first + K * M, _squeezed(K, K), constant=True)
    return names, width, first + K * (M + K)


def _squeezed(*shape: int) -> tuple[int, ...]:
    """Shape without dims of one: a name of one vector stands for a number."""
    return tuple(size for size in shape if size > 1)


def _program(
    functions: Sequence[tuple[str, Function, tuple[int, ...]]],
    names: Mapping[str, Argument],
    width: int,
    constants: int,
    kinks: tuple[str, ...],
) -> Program:
    """Functions with the shapes of their values, side by side."""
    bound = {
        what: Bound(function, tuple(names[name] for name in arguments_of(function, what)), shape)
        for what, function, shape in functions
    }
    try:
        return Program(bound, width, constants, kinks_of(kinks, names, width))
    except ValueError as error:
        raise InputError(f"model.rule: {error}") from error
