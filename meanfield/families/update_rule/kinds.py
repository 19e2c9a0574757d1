"""Kinds of samples of a step: what each of them shows, which functions read it, and which vectors these move.

A problem with one rule has one kind, whose functions are those of the rule; otherwise each [[draws]] table is one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from meanfield.families.update_rule.rule import Function, Rule
from meanfield.ingredients.laws.base import HiddenPart
from meanfield.ingredients.schedules.shapes import Schedule
from meanfield.numerics.compiled.row_functions import Argument
from meanfield.typing import FloatArray

if TYPE_CHECKING:
    from meanfield.families.update_rule.problem import Problem
    from meanfield.families.update_rule.samples import Sample

FEATURES = "u"
"""What `along` and `move` call the features."""


class Use(NamedTuple):
    """Function with what it gives.

    Parameters
    ----------
    what : str
        What messages call it.
    function : Function
    shape : tuple of int
        Of its value.
    vectors, students : range
        Vectors along which it moves which of them, by numbers among all vectors; none where it multiplies an input.
    """

    what: str
    function: Function
    shape: tuple[int, ...]
    vectors: range
    students: range


@dataclass(frozen=True)
class Kind:
    """Kind of sample.

    Parameters
    ----------
    what : str
        What messages call it.
    along : range
        Vectors that hidden variables multiply, by numbers among all vectors.
    laws : tuple of HiddenPart
        Of these variables, and of others that follow.
    others : mapping of str to int
        Which of the variables functions read besides, by names.
    scales_noise, scales_signal : tuple of int
        Variables by which noise and signal are multiplied.
    projected : bool
        Whether the noise that views share has no part along features.
    noise, observed : float
        Variance of that noise, and share of coordinates that is kept.
    own : ndarray, shape (views, views)
        Covariance of the noise of views of their own.
    batch_size : int
    gains : tuple of tuple of Use
        Factors of each view, in the order of the students that they move.
    moves : tuple of Use
    side : tuple of str
        Side variables whose steps it takes.
    measured : mapping of str to (str, Function)
        Observables by name, and what messages call them.
    kinks : tuple of str
        Where the functions jump or bend.
    """

    what: str
    along: range
    laws: tuple[HiddenPart, ...]
    others: Mapping[str, int]
    scales_noise: tuple[int, ...]
    scales_signal: tuple[int, ...]
    projected: bool
    noise: float
    observed: float
    own: FloatArray
    batch_size: int
    gains: tuple[tuple[Use, ...], ...]
    moves: tuple[Use, ...]
    side: tuple[str, ...]
    measured: Mapping[str, tuple[str, Function]]
    kinks: tuple[str, ...]

    @property
    def variables(self) -> int:
        """Number of hidden variables."""
        return sum(law.dimension for law in self.laws)

    @property
    def views(self) -> int:
        """Number of inputs of a sample."""
        return len(self.own)

    @property
    def acts(self) -> bool:
        """Whether its samples change anything."""
        return bool(any(self.gains) or self.moves or self.side)

    def functions(self) -> Iterator[tuple[str, Function]]:
        """All functions but those of side variables, with words for them."""
        yield from ((use.what, use.function) for gains in self.gains for use in gains)
        yield from ((use.what, use.function) for use in self.moves)
        yield from self.measured.values()


def kinds_of(problem: Problem) -> tuple[Kind, ...]:
    """Kinds of samples of a problem; functions that are not at hand are left out."""
    if problem.draws is None:
        return (_of_rule(problem),)
    return tuple(_of_sample(problem, sample, number) for number, sample in enumerate(problem.draws))


def squeezed(*shape: int) -> tuple[int, ...]:
    """Shape without dims of one: a name of one vector stands for a number."""
    return tuple(size for size in shape if size > 1)


def along_of(problem: Problem, sample: Sample) -> str | None:
    """Name of the vectors that the hidden variables of a sample multiply."""
    if sample.along is None:
        return None if problem.data.signal == "none" else FEATURES
    return None if sample.along == "none" else sample.along


class Variables(NamedTuple):
    """Hidden variables of a kind of sample; see `Kind`."""

    laws: tuple[HiddenPart, ...]
    others: Mapping[str, int]
    scales_noise: tuple[int, ...]
    scales_signal: tuple[int, ...]


def _variables(problem: Problem, along: str | None) -> Variables:
    """Hidden variables of samples along some vectors: theirs, of classes a label and a deviation, and the scale."""
    laws = () if along is None else problem.laws_of(along)
    count, scale = sum(law.dimension for law in laws), problem.data.scale
    others: dict[str, int] = {}
    noise: tuple[int, ...] = ()
    if along == FEATURES and problem.data.classes is not None:
        others, noise = {"label": count - 2}, (count - 1,)
    if scale is None:
        return Variables(laws, others, noise, ())
    named = {} if scale.name is None else {scale.name: count}
    return Variables((*laws, scale), others | named, (*noise, count), (count,) if scale.of == "sample" else ())


def _of_rule(problem: Problem) -> Kind:
    data, vectors = problem.data, problem.vectors
    M, K = len(problem.features), len(problem.students)
    students, signal = range(M, M + K), data.signal != "none"
    rule = problem.model.functions if problem.model.at_hand and problem.model.rule is not None else None
    gains, moves = [], []
    if rule is not None:
        gains.append(Use("model.rule, step", rule.step, squeezed(K), range(0), students))
    if rule is not None and rule.along is not None:
        shape, along = ((), students) if K == 1 else ((M + K, K), range(M + K))
        moves.append(Use("model.rule, along", rule.along, shape, along, students))
    measured = {} if rule is None else rule.measured
    return Kind(
        what="model.rule",
        along=vectors[FEATURES] if signal else range(0),
        **_variables(problem, FEATURES if signal else None)._asdict(),
        projected=data.signal == "orthogonal",
        noise=data.noise,
        observed=data.observed,
        own=np.zeros((1, 1)),
        batch_size=problem.model.batch_size,
        gains=(tuple(gains),),
        moves=tuple(moves),
        side=tuple(problem.side),
        measured={name: (f"model.rule, observable '{name}'", each) for name, each in measured.items()},
        kinks=() if rule is None else rule.kinks,
    )


def _of_sample(problem: Problem, sample: Sample, number: int) -> Kind:
    data, vectors, what = problem.data, problem.vectors, f"draws[{number}]"
    along = along_of(problem, sample)
    rules: Mapping[str, Rule] = sample.functions if sample.at_hand else {}
    own, L = sample.own_covariance, sample.views or 1
    gains: list[tuple[Use, ...]] = []
    for view in range(L):
        found = []
        for group, given in (sample.gain or {}).items():
            key = f"gain.{group}" if isinstance(given, str) else f"gain.{group}[{view}]"
            if key in rules:
                shape = squeezed(len(vectors[group]))
                found.append(Use(f"{what}.{key}", rules[key].step, shape, range(0), vectors[group]))
        gains.append(tuple(sorted(found, key=lambda use: use.students.start)))
    moves = [
        Use(
            f"{what}.{key}",
            rules[key].step,
            squeezed(len(vectors[other]), len(vectors[group])),
            vectors[other],
            vectors[group],
        )
        for group, sources in (sample.move or {}).items()
        for other in sources
        if (key := f"move.{group}.{other}") in rules
    ]
    names = {sample.name} - {None} | ({None} if number == 0 else set())
    return Kind(
        what=what,
        along=range(0) if along is None else vectors[along],
        **_variables(problem, along)._asdict(),
        projected=along == FEATURES and data.signal == "orthogonal",
        noise=sample.noise or data.noise,
        observed=sample.observed or data.observed,
        own=own,
        batch_size=sample.batch_size or problem.model.batch_size,
        gains=tuple(gains),
        moves=tuple(moves),
        side=tuple(name for name, side in problem.side.items() if side.draw in names),
        measured=_measured(what, sample, rules),
        kinks=tuple(dict.fromkeys(kink for rule in rules.values() for kink in rule.kinks)),
    )


def _measured(what: str, sample: Sample, rules: Mapping[str, Rule]) -> dict[str, tuple[str, Function]]:
    """Observables of a sample: those that rules bring along, and its own.

    Raises
    ------
    ValueError
        If two have one name.
    """
    found = [
        (name, (f"{what}.{key}, observable '{name}'", each))
        for key, rule in rules.items()
        for name, each in rule.measured.items()
    ]
    found += [
        (name, (f"{what}.{key}", rules[key].step))
        for name in sample.observables or {}
        if (key := f"observables.{name}") in rules
    ]
    names = [name for name, _ in found]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{what}: two observables have the name '{name}'; rename one of the two")
    return dict(found)


class Places(NamedTuple):
    """Where functions find what they read by name.

    Parameters
    ----------
    names : dict of str to Argument
    width, constants : int
        Numbers of columns of a row, and of constants.
    numbers : dict of str to float
        Values of parameters that follow no schedule.
    """

    names: dict[str, Argument]
    width: int
    constants: int
    numbers: dict[str, float]


def places_of(problem: Problem, kind: Kind) -> Places:
    """Places of all names that functions of a kind of sample may read."""
    M, K = len(problem.features), len(problem.students)
    names: dict[str, Argument] = {}
    first = 0

    def put(name: str, count: int) -> None:
        nonlocal first
        names[name] = Argument(first, () if count == 1 else (count,))
        first += count

    if len(kind.along):
        put("c", len(kind.along))
    names |= {name: Argument(variable) for name, variable in kind.others.items()}
    first = kind.variables
    for name in (*problem.data.normals, *problem.data.coins):
        put(name, 1)
    for view in range(kind.views):
        for group, vectors in problem.vectors.items():
            if len(vectors):
                put(f"{'y' if group == FEATURES else group}{view + 1 if kind.views > 1 else ''}", len(vectors))
    width, first = first, 0
    for name in ("t", *problem.model.rule_parameters, *problem.side):
        names[name] = Argument(first, (), constant=True)
        first += 1
    if M:
        names["R"] = Argument(first, squeezed(K, M), constant=True)
    names["Q"] = Argument(first + K * M, squeezed(K, K), constant=True)
    given = problem.model.rule_parameters
    numbers = {name: float(value) for name, value in given.items() if not isinstance(value, Schedule)}
    return Places(names, width, first + K * (M + K), numbers)
