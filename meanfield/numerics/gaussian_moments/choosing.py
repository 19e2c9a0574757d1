"""Choice of a rule of quadrature that is fine enough for a function, and refusal of functions that none resolves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise, product
from typing import NamedTuple

import numpy as np
from scipy.fft import dct

from meanfield.errors import InputError
from meanfield.numerics.compiled.row_functions import RowFunction
from meanfield.numerics.gaussian_moments.interactions import find_parts
from meanfield.numerics.gaussian_moments.kernel import Law, Moments
from meanfield.numerics.gaussian_moments.roughness import find_rough
from meanfield.numerics.gaussian_moments.rules import MOST_NODES, REACH, Kind, Kinks, Rule, TooManyNodesError
from meanfield.numerics.gaussian_moments.spherical import powers_of
from meanfield.typing import FloatArray

ORDERS: dict[Kind, tuple[int, ...]] = {
    "terms": (16, 20, 24, 28, 32, 40, 48, 56, 64, 72, 84, 96, 112, 128),
    "smooth": (12, 16, 24, 32, 40, 48, 64, 96, 128, 192, 256, 384, 512),
    "kinked": (8, 10, 12, 14, 17, 20, 24, 28, 34, 40, 56),
    "random": (2**11, 2**13, 2**15),
}
"""Orders of rules that are tried, from coarse to fine."""

ANGLES = tuple(range(8, 41, 2))
"""The same of rules on the sphere; those in between may have as many nodes, as numbers of these are rounded up."""

REACHES = (REACH, 10.4, 12.4)
"""Standard deviations at which rules end: the larger ones for functions that grow fast."""

MOST_DIRECTIONS = 4
"""Largest number of Gaussian directions for products of rules."""

FEW_DIRECTIONS = 2
"""Largest number of directions in which memory allows the finest rules."""

LARGEST_DEGREE = 12
"""Largest degree of polynomials that are integrated as such."""

LINES = 24
"""Number of random lines on which it is tested whether a function is a polynomial."""

POINTS = 64
"""Number of points on a line."""

LARGEST_ERROR = 1e-6
"""Largest estimated error of averages, relative to their size, with which a rule is taken, unless more is allowed."""

LEAST_ERROR = 1e-13
"""Smallest error that is stated: the rounding of sums over nodes."""


class Choice(NamedTuple):
    """Rule that was chosen.

    Parameters
    ----------
    rule : Rule
    coarser : Rule
        The next coarser one: what it changes in a result bounds the error of the result. The rule itself where that is
        exact.
    error : float
        Estimated error of averages, relative to their size; 3.5 standard errors of random points.
    """

    rule: Rule
    coarser: Rule
    error: float


def choose_rule(
    function: RowFunction,
    constants: FloatArray,
    laws: Sequence[Law],
    kinks: Kinks | None = None,
    tolerance: float = 1e-10,
    random: bool = False,
    names: Sequence[str] = (),
    weights: FloatArray | None = None,
    counted: int | None = None,
    least: Rule | None = None,
) -> Choice:
    """The coarsest rule whose averages a finer one does not change by more than the tolerance, at some typical laws.

    Polynomials are integrated exactly, smooth functions by trapezoidal rules, and others on panels between their kinks;
    in more than four directions by scrambled Sobol points. Smooth functions that are sums of terms of two slots each
    are found and integrated term by term, in any number of directions.

    Parameters
    ----------
    function : RowFunction
    constants : ndarray
        Typical ones: with a rate of 0 every function is a polynomial.
    laws : sequence of Law
        Laws of the components of one mixture: averages of one may be small against those of another.
    kinks : Kinks, optional
        Linear forms of rows at whose values the function, its slope or its curvature jumps.
    tolerance : float, optional
        Of averages relative to their size; see `change`.
    random : bool, optional
        Take random points in any number of directions.
    names : sequence of str, optional
        Names of slots, for messages.
    weights : ndarray, shape (laws,), optional
        Probabilities of the laws, if averages over their mixture are enough, as where they are nodes of a continuous
        one. By default averages over each are accurate.
    counted : int, optional
        Number of the first outputs of which averages of products are wanted; by default all. Of others that is the
        size.
    least : Rule, optional
        Rule that was needed elsewhere: none is tried that is coarser, or for more special functions.

    Raises
    ------
    InputError
        If the function jumps or bends at an undeclared place, if it grows so fast that its averages may not exist, if
        it is not finite, or if no rule that fits into memory resolves it.
    """
    rank = max(law.factor.shape[1] for law in laws)
    names = names or [f"slot {slot}" for slot in range(function.width)]
    declared = kinks or Kinks(np.empty((0, function.width)), np.empty(0))
    task = _Task(function, constants, laws, declared, names, weights)
    if not random and not len(declared.levels) and (least is None or least.kind == "polynomial"):
        degree = task.degree()
        if degree <= LARGEST_DEGREE and (degree + 1) ** rank <= MOST_NODES:
            rule = Rule("polynomial", degree + 1, declared)
            task.averages(rule)
            return Choice(rule, rule, LEAST_ERROR)
    kind: Kind = "kinked" if len(declared.levels) else "smooth"
    parts, misfit = None, 0.0
    if kind == "smooth" and rank > FEW_DIRECTIONS and not random and (least is None or least.kind != "smooth"):
        found = find_parts(function, constants, task.typical, function.outputs if counted is None else counted)
        if found is not None:
            kind, (parts, misfit) = "terms", found
    if random or (rank > MOST_DIRECTIONS and kind != "terms"):
        return _random(task, tolerance)
    powers = powers_of(function, constants, laws) if kind == "kinked" and not declared.levels.any() else None
    if least is not None and powers != least.powers:
        powers = None
    known = Rule(kind, 0, declared, degree=0)
    if least is not None and (least.kind, least.powers) == (kind, powers):
        known = least
    between: int | None = None
    # Largest degree of those between kinks: more nodes on half-lines save little.
    if kind == "kinked" and powers is None and known.degree is not None and (degree := task.degree()) <= 4:
        between = max(degree, known.degree)
    for reach in (each for each in REACHES if each >= known.reach):
        orders = [_at_reach(order, reach, kind) for order in (ORDERS[kind] if powers is None else ANGLES)]
        if kind == "smooth" and rank > FEW_DIRECTIONS:
            most = int(MOST_NODES ** (1.0 / rank))
            orders = [*(order for order in orders if order < most), most]
        if reach == known.reach:
            orders = [order for order in orders if order >= known.order]
        rules = [Rule(kind, n, declared, reach, parts=parts, degree=between, powers=powers) for n in orders]
        choice = _coarsest_accurate(rules, task, tolerance)
        beyond = _beyond(choice.rule, task) if between is None and powers is None else 0.0
        if beyond <= 2.0 * tolerance:  # as is stated of a rule, which is twice the change that it makes
            break
    allowed = max(2.0 * tolerance, LARGEST_ERROR)
    if beyond > allowed:
        raise InputError(
            f"a share of {beyond:.1g} of the averages of the function and of its square come from more than {reach:g} "
            "standard deviations of its arguments, so that they may not exist; let it grow more slowly, or clip it"
        )
    if choice.error > allowed and rank <= FEW_DIRECTIONS:
        raise InputError(
            f"averages of the function change by {choice.error:.1g} of their size up to {choice.rule.order} nodes of "
            f"each {'panel' if kind == 'kinked' else 'direction'}, the most that are tried, and at most "
            f"{allowed:g} is allowed; make what is narrow in it a kink and declare that"
        )
    if choice.error > allowed:  # as memory allows no more nodes
        return min(choice, _random(task, tolerance), key=lambda each: each.error)
    return choice._replace(error=max(choice.error, beyond, misfit))


def change(before: Sequence[Moments], after: Sequence[Moments]) -> float:
    """Largest change of averages over some laws, relative to the size of the functions.

    That of <f> and <z f> is in units of sqrt(<f^2>), their upper bound, and that of <f f'> in units of
    sqrt(<f^2> <f'^2>), with the largest <f^2> of the laws.
    """
    scale = _scale([*before, *after])
    return float(np.abs(_in_units(after, scale) - _in_units(before, scale)).max(initial=0.0))


class _Task(NamedTuple):
    """What a rule is chosen for; see `choose_rule`."""

    function: RowFunction
    constants: FloatArray
    laws: Sequence[Law]
    kinks: Kinks
    names: Sequence[str]
    weights: FloatArray | None

    @property
    def typical(self) -> Sequence[Law]:
        """Laws in which functions are looked at: the likeliest, or all."""
        # Number of components of a mixture in which it is looked at whether a function is a polynomial, or jumps.
        return self.laws if self.weights is None else [self.laws[i] for i in np.argsort(-self.weights)[:8]]

    def averages(self, rule: Rule) -> list[Moments]:
        """Averages over all laws or their mixture, which must be finite."""
        found = [rule.moments(self.function, self.constants, law) for law in self.laws]
        for moments, law in zip(found, self.laws, strict=True):
            if not np.isfinite(moments.products).all():
                shown = rule if rule.parts is None else Rule("random", ORDERS["random"][0], self.kinks)
                rows = law.mean + shown.nodes(law).z.T @ law.factor.T
                size = np.abs(self.function(rows, self.constants)).max(axis=1)  # NaN counts as the largest
                raise self._infinite(rows[size.argmax()])
        return found if self.weights is None else [_mixture(found, self.weights)]

    def _infinite(self, row: FloatArray) -> InputError:
        """Error about a row at which the function is not finite."""
        return InputError(
            f"the function or its square is not finite at {_listed(self.names, row)}; let it be finite, and grow like "
            "a power at most"
        )

    def degree(self) -> int:
        """Degree of the function as a polynomial between kinks, by random lines; about `POINTS` if it is none.

        Lines are long in all slots, so that functions which happen to be polynomials over narrow laws are none.
        """
        rng = np.random.default_rng(0)
        x = np.cos(np.pi * (np.arange(POINTS) + 0.5) / POINTS)
        degree = 0
        for law, _ in product(self.typical, range(LINES)):
            start, along = rng.standard_normal((2, self.function.width))
            lengths = np.maximum(1.0, np.sqrt((law.factor**2).sum(axis=1)))
            start, along = law.mean + lengths * start, lengths * along / np.linalg.norm(along)
            with np.errstate(divide="ignore", invalid="ignore"):  # of kinks that the line never meets
                places = (self.kinks.levels - self.kinks.normals @ start) / (self.kinks.normals @ along)
            ends = np.sort([-REACH, REACH, *places[np.abs(places) < REACH]])
            t = 0.5 * ((ends[1:] + ends[:-1]) + (ends[1:] - ends[:-1]) * x[:, None]).T
            values = self.function(start + t.reshape(-1, 1) * along, self.constants).reshape(*t.shape, -1)
            size = np.abs(dct(values, axis=1))  # of coefficients of Chebyshev polynomials
            counts = ~(size <= 1e-12 * size.max(axis=(0, 1)))  # so do all if one is no number
            degree = max(degree, int(np.flatnonzero(counts.any(axis=(0, 2))).max(initial=0)))
        return degree

    def refuse_rough(self) -> None:
        """Raise an error if the function jumps or bends where no kink is declared."""
        rough = find_rough(self.function, self.constants, self.typical, self.kinks)
        if rough is None:
            return
        if np.isinf(rough.high):
            raise self._infinite(rough.row)
        what = ("jumps", "bends, its slope jumps", "bends, its curvature jumps")[rough.derivative]
        others = [slot for slot in range(len(self.names)) if slot != rough.slot]
        place = _listed([self.names[rough.slot]], rough.row[[rough.slot]])
        beside = _listed([self.names[slot] for slot in others], rough.row[others])
        raise InputError(
            f"the function {what} from {rough.low:.4g} to {rough.high:.4g} at {place}{beside and f' (with {beside})'}, "
            "where no kink is declared; declare it, as in kinks=('s', 's - 1'); if it is no linear form, only simulate"
        )


def _mixture(averages: Sequence[Moments], weights: FloatArray) -> Moments:
    """Averages over a mixture, <z f> with the directions of all components by their numbers."""
    rank = max(len(moments.along) for moments in averages)
    padded = [np.pad(moments.along, ((0, rank - len(moments.along)), (0, 0))) for moments in averages]
    parts = ([each.first for each in averages], padded, [each.products for each in averages])
    return Moments(*(np.tensordot(weights, each, 1) for each in parts))


def _listed(names: Sequence[str], values: FloatArray) -> str:
    return ", ".join(f"{name} = {round(value, 5) + 0.0:.4g}" for name, value in zip(names, values, strict=True))


def _scale(averages: Sequence[Moments]) -> FloatArray:
    """Largest root mean square of each output; outputs that are rounding of others count as these."""
    squares = np.sqrt(np.max([np.diagonal(moments.products) for moments in averages], axis=0))
    return np.asarray(np.maximum(squares, max(1e-12 * squares.max(), 1e-14)))


def _in_units(averages: Sequence[Moments], scale: FloatArray) -> FloatArray:
    return np.concatenate(
        [
            part.ravel()
            for first, along, products in averages
            for part in (first / scale, along / scale, products / np.outer(scale, scale))
        ]
    )


def _at_reach(order: int, reach: float, kind: Kind) -> int:
    """Number of nodes that keeps the spacing of a trapezoidal rule; panels become more."""
    return order if kind == "kinked" else 1 + math.ceil((order - 1) * (reach / REACH))


def _beyond(rule: Rule, task: _Task) -> float:
    """Change of averages by what lies beyond the reach of a rule."""
    if rule.kind == "terms":
        further = rule.reach + 2.0
        outer = replace(rule, reach=further, order=1 + math.ceil((rule.order - 1) * further / rule.reach))
        return change(task.averages(rule), task.averages(outer))
    # Nodes of the panels that tell how much lies beyond the reach of a rule.
    inner = replace(rule, kind="kinked", order=8, bounded=True)  # panels whose ends stay where they are
    return change(task.averages(inner), task.averages(replace(inner, reach=rule.reach + 2.0)))


def _coarsest_accurate(rules: Sequence[Rule], task: _Task, tolerance: float) -> Choice:
    """The first of some rules that the next one changes by less than the tolerance, or else the last."""
    after = task.averages(rules[0])
    changes: list[float] = []
    slow = scanned = False
    for coarse, fine in pairwise(rules):
        before = after
        try:
            after = task.averages(fine)
        except TooManyNodesError:
            if len(changes) < 2:
                raise
            break
        changes.append(change(before, after))
        if changes[-1] <= tolerance:
            number = max(len(changes) - 1, 1)  # so that there is a coarser one
            return Choice(rules[number], rules[number - 1], max(2.0 * changes[-1], LEAST_ERROR))
        first = rules[max(len(changes) - 3, 0)]
        # Power of the number of nodes with which changes must fall: those of functions that jump or bend fall like 1 or
        # 2.
        slow = len(changes) > 3 and changes[-3] < changes[-1] * (coarse.order / first.order) ** 4.0
        if slow and not scanned:
            task.refuse_rough()
            scanned = True
    if not scanned:
        task.refuse_rough()
    if not slow:
        return Choice(rules[len(changes)], rules[len(changes) - 1], changes[-1])
    level = next(k for k in range(len(changes)) if changes[k] <= 3.0 * min(changes))  # from here on nothing is gained
    return Choice(rules[level + 1], rules[level], 3.0 * max(changes[level:]))


def _random(task: _Task, tolerance: float) -> Choice:
    """Random points, more of them until 3.5 standard errors of their averages are below the tolerance."""
    for order in ORDERS["random"]:
        rule = Rule("random", order, task.kinks)
        scale = _scale(task.averages(rule))
        parts = [_in_units(task.averages(part), scale) for part in rule.randomisations()]
        error = 3.5 * float(np.std(parts, axis=0, ddof=1).max()) / math.sqrt(len(parts))
        if error <= tolerance:
            break
    return Choice(rule, replace(rule, order=order // 4), max(error, LEAST_ERROR))
