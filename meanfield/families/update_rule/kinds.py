"""Kinds of samples of a step: what each of them shows, which functions read it, and which vectors these move.

A problem with one rule has one kind, whose functions are those of the rule; otherwise each [[draws]] table is one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from meanfield.families.update_rule.places import FEATURES, fields_of, names_of_mean, squeezed
from meanfield.families.update_rule.rule import Function, Rule, arguments_of
from meanfield.families.update_rule.samples import Sample
from meanfield.ingredients.laws.base import HiddenPart
from meanfield.typing import FloatArray

if TYPE_CHECKING:
    from meanfield.families.update_rule.problem import Problem


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


class Mean(NamedTuple):
    """Function of a sample whose average functions read.

    Parameters
    ----------
    what : str
        What messages call it.
    function : Function
    kinks : tuple of str
        Where it jumps or bends, besides those of the kind of sample.
    view : int or None
        The only view that it reads, whose fields have no numbers for it.
    shape : tuple of int
        Of its value.
    """

    what: str
    function: Function
    kinks: tuple[str, ...]
    view: int | None
    shape: tuple[int, ...]


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
    noise : float
        Variance of that noise.
    observed : tuple of float
        Share of coordinates of each input that is kept.
    masks : tuple of int
        Numbers of the masks of inputs: those of all views of a sample are one, or each has its own.
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
    means : tuple of Mean
        What is averaged before a step, for the functions to read.
    samples : int
        How many samples functions see at once. The inputs of a view are those of each, and so are laws.
    """

    what: str
    along: range
    laws: tuple[HiddenPart, ...]
    others: Mapping[str, int]
    scales_noise: tuple[int, ...]
    scales_signal: tuple[int, ...]
    projected: bool
    noise: float
    observed: tuple[float, ...]
    masks: tuple[int, ...]
    own: FloatArray
    batch_size: int
    gains: tuple[tuple[Use, ...], ...]
    moves: tuple[Use, ...]
    side: tuple[str, ...]
    measured: Mapping[str, tuple[str, Function]]
    kinks: tuple[str, ...]
    means: tuple[Mean, ...] = ()
    samples: int = 1

    @property
    def single(self) -> Kind:
        """Kind of one of the samples that functions see at once, which nothing reads."""
        m = self.samples
        return replace(
            self,
            laws=self.laws[: len(self.laws) // m],
            observed=self.observed[::m],
            masks=tuple(mask // m for mask in self.masks[::m]),
            gains=((),) * self.views,
            moves=(),
            side=(),
            measured={},
            kinks=self.kinks if m == 1 else (),
            samples=1,
        )

    @property
    def mean_names(self) -> tuple[str, ...]:
        """Names by which functions read averages."""
        return ("mean",) if len(self.means) == 1 else tuple(f"mean{number + 1}" for number in range(len(self.means)))

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
        yield from ((mean.what, mean.function) for mean in self.means)
        yield from ((use.what, use.function) for gains in self.gains for use in gains)
        yield from ((use.what, use.function) for use in self.moves)
        yield from self.measured.values()


def kinds_of(problem: Problem) -> tuple[Kind, ...]:
    """Kinds of samples of a problem; functions that are not at hand are left out."""
    if problem.draws is None:  # a rule is that of a sample without a name
        return (_kind(problem, Sample(), "model.rule", True, _of_rule(problem)),)
    return tuple(
        _kind(problem, sample, what, number == 0, _of_sample(problem, sample, what))
        for number, sample in enumerate(problem.draws)
        for what in [f"draws[{number}]"]
    )


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


class Functions(NamedTuple):
    """Functions that read a kind of sample; see `Kind`."""

    gains: tuple[tuple[Use, ...], ...]
    moves: tuple[Use, ...]
    measured: Mapping[str, tuple[str, Function]]
    kinks: tuple[str, ...]


def _of_rule(problem: Problem) -> Functions:
    """Functions of the rule of a problem without draws."""
    if not problem.model.at_hand or problem.model.rule is None:
        return Functions(((),), (), {}, ())
    rule, M, K = problem.model.functions, len(problem.features), len(problem.students)
    students, moves = range(M, M + K), []
    if rule.along is not None:
        shape, along = ((), students) if K == 1 else ((M + K, K), range(M + K))
        moves.append(Use("model.rule, along", rule.along, shape, along, students))
    return Functions(
        ((Use("model.rule, step", rule.step, squeezed(K), range(0), students),),),
        tuple(moves),
        {name: (f"model.rule, observable '{name}'", each) for name, each in rule.measured.items()},
        rule.kinks,
    )


def _of_sample(problem: Problem, sample: Sample, what: str) -> Functions:
    """Functions that a kind of sample names."""
    vectors, rules = problem.vectors, sample.functions if sample.at_hand else {}
    gains: list[tuple[Use, ...]] = []
    for view in range(sample.views or 1):
        found = []
        for group, given in (sample.gain or {}).items():
            key = f"gain.{group}" if isinstance(given, str) else f"gain.{group}[{view}]"
            if key in rules:
                shape = squeezed(sample.samples or 1, len(vectors[group]))
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
    kinks = (kink for key, rule in rules.items() if not key.startswith("means") for kink in rule.kinks)
    return Functions(tuple(gains), tuple(moves), _measured(what, sample, rules), tuple(dict.fromkeys(kinks)))


def _kind(problem: Problem, sample: Sample, what: str, first: bool, functions: Functions) -> Kind:
    """Kind of a sample, of which `first` says whether side variables without a draw read it."""
    data, along = problem.data, along_of(problem, sample)
    names = {sample.name} - {None} | ({None} if first else set())
    kept, L, m = sample.observed or data.observed, sample.views or 1, sample.samples or 1
    variables = _variables(problem, along)
    kind = Kind(
        what=what,
        along=range(0) if along is None else problem.vectors[along],
        **variables._replace(laws=variables.laws * m)._asdict(),
        projected=along == FEATURES and data.signal == "orthogonal",
        noise=sample.noise or data.noise,
        observed=tuple(np.repeat(kept if isinstance(kept, tuple) else (kept,) * L, m).tolist()),
        masks=tuple(range(L * m)) if isinstance(kept, tuple) else tuple(range(m)) * L,
        own=sample.own_covariance,
        batch_size=sample.batch_size or problem.model.batch_size,
        **functions._asdict(),
        side=tuple(name for name, side in problem.side.items() if side.draw in names),
        samples=m,
    )
    return replace(kind, means=tuple(_means(problem, sample, kind)))


def _means(problem: Problem, sample: Sample, kind: Kind) -> Iterator[Mean]:
    """Functions of samples that are averaged, those of one view for each."""
    for key, rule in (sample.functions if sample.at_hand else {}).items():
        if not key.startswith("means"):
            continue
        what = f"{kind.what}.{key}"
        read = arguments_of(rule.step, what)
        of_each = kind.views > 1 and any(name in read for name in fields_of(problem))
        for view in range(kind.views) if of_each else [None]:
            names = names_of_mean(problem, kind, view)
            shapes = tuple(names[name].shape if name in names else () for name in read)
            yield Mean(what, rule.step, rule.kinks, view, _shape_of_value(rule.step, shapes))


@lru_cache(maxsize=256)
def _shape_of_value(function: Function, shapes: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
    """Shape of what a function returns in a trial call; that of a number if it fails, which other checks tell."""
    rng = np.random.default_rng(0)
    given = [rng.standard_normal(shape) if shape else float(rng.standard_normal()) for shape in shapes]
    try:
        with np.errstate(all="ignore"):
            return np.shape(getattr(function, "py_func", function)(*given))
    except Exception:  # whatever a user's function raises
        return ()


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
