"""Priors on the weights, by name, and the part of a problem that names one: the force phi(w) = Phi'(w).

Adding a prior means adding an entry to `PRIORS`; one that takes parameters is a function of them. The functions are
scalar, and numba compiles them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import InitVar, dataclass, field
from functools import lru_cache
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from meanfield.arguments import as_numbers
from meanfield.errors import InputError
from meanfield.ingredients.activations import absolute, cube, identity, sign, tanh
from meanfield.ingredients.function_checks import check_function, check_slope
from meanfield.ingredients.named_functions import NamesFunctions
from meanfield.ingredients.part import NamedValues, Parameters
from meanfield.ingredients.schedules.key import OrSchedule
from meanfield.ingredients.user_functions import Catalogue
from meanfield.numerics.compiled.scalar_functions import ScalarFunction, compilable, evaluate
from meanfield.process import own_numba as numba
from meanfield.typing import FloatArray

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)


@dataclass(frozen=True)
class Prior:
    """Prior of unit strength.

    Parameters
    ----------
    force : callable
        phi(w) of unit strength, the attribute `unit_force`; SGD subtracts (tau/N) strength phi(w) at every step.
    potential : callable, optional
        Phi(w) with Phi' = phi; without it phi is integrated. The density needs differences of it only: phi may jump.
    kinks : tuple of float
        Where phi or one of its derivatives jumps; cells of the density end there.
    linear : bool
        True where phi is proportional to w: the order parameters then close (theory.md, section 2).
    """

    force: InitVar[ScalarFunction]
    potential: ScalarFunction | None = None
    kinks: tuple[float, ...] = ()
    linear: bool = False
    unit_force: ScalarFunction = field(init=False)

    def __post_init__(self, force: ScalarFunction) -> None:
        object.__setattr__(self, "unit_force", force)
        object.__setattr__(self, "kinks", as_numbers(self.kinks, "kinks", "give a list of numbers, such as [0.0]"))

    def forces(self, w: FloatArray) -> FloatArray:
        """Values of phi, of unit strength, at all elements of an array."""
        return evaluate(self.unit_force, w)

    def potential_steps(self, w: FloatArray) -> FloatArray:
        """Differences of Phi between neighbours of the increasing points w, shape (len(w) - 1,)."""
        if self.potential is not None:
            return np.diff(evaluate(self.potential, w))
        low, high = w[:-1], w[1:]
        steps = np.zeros(len(w) - 1)
        # Between neighbours phi is smooth but for its kinks.
        for cut_low, cut_high in zip(*_cut(low, high, self.kinks), strict=True):
            half = 0.5 * (cut_high - cut_low)
            points = 0.5 * (cut_high + cut_low)[:, None] + half[:, None] * _NODES
            steps += half * (self.forces(points) @ _WEIGHTS)
        return steps


def _cut(low: FloatArray, high: FloatArray, kinks: tuple[float, ...]) -> tuple[list[FloatArray], list[FloatArray]]:
    """Pieces into which the kinks cut all intervals [low, high], by their ends; some have no length."""
    inner = [np.clip(kink, low, high) for kink in sorted(kinks)]
    return [low, *inner], [*inner, high]


_INTERVALS = 64


def potential_of(prior: Prior) -> ScalarFunction:
    """Potential Phi of a prior; without a formula, the integral of phi from 0, which takes some forty times as long."""
    return prior.potential if prior.potential is not None else _antiderivative(prior.unit_force, prior.kinks)


@lru_cache(maxsize=256)
def _antiderivative(force: ScalarFunction, kinks: tuple[float, ...]) -> ScalarFunction:
    """Integral of phi from 0, by Gauss-Legendre on intervals that end at the kinks and grow far out."""
    compiled: Any = numba.njit(compilable(force))
    grown = 0.5 * np.concatenate([np.arange(1, _INTERVALS), _INTERVALS * 2.0 ** np.arange(40)])
    ends = np.unique([*grown, *np.abs(kinks)])
    ends = ends[ends > 0]

    def potential(w: float) -> float:
        sign, reach = (1.0, w) if w > 0 else (-1.0, -w)
        total, low = 0.0, 0.0
        for end in ends:
            half = 0.5 * (min(end, reach) - low)
            for i in range(_NODES.size):
                total += half * _WEIGHTS[i] * compiled(sign * (low + half * (1.0 + _NODES[i])))
            low = end
            if reach <= end:
                break
        return sign * total

    return potential


def _zero(w: float) -> float:
    return 0.0 * w


def _half_square(w: float) -> float:
    return 0.5 * w * w


def _elastic_net(ratio: float = 0.5) -> Prior:
    """Elastic net: a share `ratio` of l1, the rest l2."""
    if not 0 <= ratio <= 1:
        raise ValueError(f"ratio = {ratio} is outside [0, 1], the share of l1; correct it")

    def force(w: float) -> float:
        sign = 1.0 if w > 0 else -1.0 if w < 0 else 0.0
        return ratio * sign + (1 - ratio) * w

    def potential(w: float) -> float:
        return ratio * abs(w) + 0.5 * (1 - ratio) * w * w

    return Prior(force, potential, kinks=(0.0,))


def _smooth_l1(width: float = 0.5) -> Prior:
    """Smoothed l1 with phi linear between -width and width: 1/width of the Huber loss."""
    if not 0 < width < math.inf:
        raise ValueError(f"width = {width} must be a positive number, for instance 0.5")

    def force(w: float) -> float:
        return min(max(w / width, -1.0), 1.0)

    def potential(w: float) -> float:
        inner = min(abs(w), width)
        return abs(w) - inner + 0.5 * inner * inner / width

    return Prior(force, potential, kinks=(-width, width))


def _log_cosh(w: float) -> float:
    return abs(w) + math.log1p(math.exp(-2.0 * abs(w))) - math.log(2.0)


def _quarter_fourth_power(w: float) -> float:
    return 0.25 * (w * w) * (w * w)


def _cauchy(w: float) -> float:
    return w / (1.0 + w * w)


def _half_log(w: float) -> float:
    return 0.5 * math.log1p(w * w)


def _double_well(w: float) -> float:
    return w * w * w - w


def _double_well_potential(w: float) -> float:
    return 0.25 * (w * w) * (w * w) - 0.5 * w * w


PRIORS: dict[str, Prior | Callable[..., Prior]] = {
    "none": Prior(_zero, _zero, linear=True),
    "l2": Prior(identity, _half_square, linear=True),
    "l1": Prior(sign, absolute, kinks=(0.0,)),
    "elastic_net": _elastic_net,
    "smooth_l1": _smooth_l1,
    "log_cosh": Prior(tanh, _log_cosh),
    "quartic": Prior(cube, _quarter_fourth_power),
    "cauchy": Prior(_cauchy, _half_log),
    "double_well": Prior(_double_well, _double_well_potential),
}


def _check(prior: Prior, name: str) -> Prior:
    """The prior; one that does not compile, or is not what it says, is refused."""
    check_function(prior.unit_force, f"'{name}'", prior.kinks)
    if prior.potential is not None:
        check_function(prior.potential, f"the potential of '{name}'")
        remedy = "correct force or potential, or name the point among the kinks"
        check_slope(prior.potential, prior.unit_force, prior.kinks, f"the force of '{name}'", remedy)
    points = np.linspace(-3.0, 3.0, 13)
    if prior.linear and not np.allclose(prior.forces(points), points * prior.forces(np.ones(1))):
        raise ValueError(f"'{name}' says that it is linear, but is not proportional to w; remove linear=True")
    return prior


make_prior = Catalogue(PRIORS, Prior, _check)
"""Prior that a problem file names."""


class PriorSettings(NamesFunctions):
    """Prior on the weights: SGD subtracts (tau/N) strength phi(w)."""

    function_key: ClassVar[str] = "prior.name"
    parameters_key: ClassVar[str] = "parameters"
    make: ClassVar[Any] = make_prior

    name: str = Field(default="none", description=f"one of {', '.join(PRIORS)}, or your own as 'package.module:name'")
    strength: Annotated[float, Field(ge=0, le=1e250), OrSchedule()] = Field(
        default=1.0, description="factor of phi, a number >= 0, or a schedule"
    )
    parameters: Parameters = Field(
        default=NamedValues(), description="numbers that the prior takes, for instance { width = 0.5 } for smooth_l1"
    )

    @property
    def functions(self) -> Prior:
        """Prior of unit strength that `name` names.

        Raises
        ------
        InputError
            If it is a user's own and cannot be imported.
        """
        found: Prior = self.found()
        return found

    def force(self, w: FloatArray) -> FloatArray:
        """Force phi(w), with its strength."""
        return self.strength * self.functions.forces(w)

    def potential_steps(self, w: FloatArray) -> FloatArray:
        """Differences of Phi with its strength between neighbours of increasing w, shape (len(w) - 1,)."""
        return self.strength * self.functions.potential_steps(w)

    def check_pull(self, N: int, learning_rate: float | None = None) -> None:
        """Refuse a prior that moves a weight of size 1 past 0 in a single step of SGD, which no limit describes.

        Parameters
        ----------
        learning_rate : float, optional
            Factor of the force in a step, where there is one.
        """
        step = (1.0 if learning_rate is None else learning_rate) / N * float(abs(self.force(np.ones(1))[0]))
        if step > 1:
            raise InputError(
                f"prior.strength = {self.strength:g} with particles.dimension = {N}: one step of SGD moves a weight of "
                f"size 1 by {step:.3g}, past 0 and out on the other side; raise particles.dimension above "
                f"{step * N:.2g}, or lower prior.strength{'' if learning_rate is None else ' or model.learning_rate'}"
            )
