"""Design of the augmentation: the noise of the two views that is best for similarity or for learnability.

Both views get the same variance eta ("strength"), with a correlation rho of their noises. Two ends can be served:
the similarity |q| of the recovery state, which is the stable fixed point of largest |q|, and the threshold second
moment of Prop. 3. Unless batches are centred, tau and m enter it as 1 + (tau/m) f(eta, rho), so that the noise of the
lowest threshold is also that of the largest tau/m at which a given feature is learnable from no information.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize_scalar

from meanfield.arguments import as_number
from meanfield.families.contrastive.closures import Closure
from meanfield.families.contrastive.fixed_points.points import find_fixed_points
from meanfield.families.contrastive.learnability.learnability import origin
from meanfield.families.contrastive.order_parameters.field import VectorField
from meanfield.families.contrastive.problem import Problem
from meanfield.families.contrastive.tables import Augmentation
from meanfield.ingredients.laws.base import LARGEST
from meanfield.problems.base import check_problem
from meanfield.problems.problem_keys import with_value
from meanfield.process.progress import counted_calls

SHARES = (0.05, 0.15, 0.35, 0.6, 1.0)
"""Noise strengths at which the search begins, in units of the strongest."""

NEARLY_ONE = 0.995
"""Largest correlation but 1: beyond, the noise that the views do not share is too weak for activations with kinks."""

LEAST_GAIN = 1e-7
"""Least relative gain of the objective for which rounds go on, and for which noise counts as better than none."""


@dataclass(frozen=True)
class Optimum:
    """Noise that is best for one of the two objectives.

    Parameters
    ----------
    strength : float
        eta, the variance of the noise of each view; 0 where any noise does harm.
    correlation : float
        rho of the two noises; 0 without noise.
    value : float
        Value of the objective with this noise.
    noiseless : float
        Value of the objective without noise.
    """

    strength: float
    correlation: float
    value: float
    noiseless: float


@dataclass(frozen=True)
class AugmentationDesign:
    """Best noise for similarity, and best noise for learnability.

    Parameters
    ----------
    similarity : Optimum
        Best noise for |q| of the recovery state; values are 0 where there is none.
    threshold : Optimum
        Best noise for the least learnable second moment; values are infinite where no second moment is learnable.
    vanishing : float
        Strength at which the recovery state vanishes as noise of the correlation that `similarity` names grows; NaN
        where it lasts to the strongest noise.
    """

    similarity: Optimum
    threshold: Optimum
    vanishing: float


def best_augmentation(problem: Problem, strongest: float = 2.0) -> AugmentationDesign:
    """Strength and correlation of the noise that is best for similarity, and of that best for learnability.

    Parameters
    ----------
    problem : Problem
        With a prior that closes the ODEs. Its own augmentation does not matter.
    strongest : float
        Largest variance that is tried.

    Raises
    ------
    InputError
        If the prior does not close the ODEs, `strongest` is no positive number, or q = 0 is not stationary.

    Notes
    -----
    A grid of strengths and correlations is refined by maximising over both in turn. Source: theory.md, section 2 for
    the fixed points, section 7 for the threshold; the paper's section IV.C.
    """
    check_problem(problem, Problem)
    strongest = as_number(
        strongest, "strongest", f"give a positive variance up to {LARGEST:g}, for instance 2.0", above=0.0, most=LARGEST
    )
    noises = [(share * strongest, rho) for rho in (-1.0, -0.5, 0.0, 0.5, 1.0) for share in SHARES]
    with counted_calls("noise of the views") as counting:

        @counting
        def similarity(strength: float, correlation: float) -> float:
            return recovery_similarity(with_noise(problem, strength, correlation))

        @counting
        def contrast(strength: float, correlation: float) -> float:
            return _contrast(with_noise(problem, strength, correlation))

        similar = _best(similarity, [(similarity(*noise), noise) for noise in noises], strongest)
        learnable = _best(contrast, [(contrast(*noise), noise) for noise in noises], strongest)
    least = replace(learnable, value=_threshold(learnable.value), noiseless=_threshold(learnable.noiseless))
    return AugmentationDesign(similar, least, vanishing_strength(problem, similar.correlation, strongest))


def with_noise(problem: Problem, strength: float, correlation: float) -> Problem:
    """The problem with this augmentation and no other."""
    noise = Augmentation(variance=(float(strength), float(strength)), correlation=float(correlation))
    return with_value(problem, "augmentation", noise)


def recovery_similarity(problem: Problem) -> float:
    """Similarity |q| of the stable fixed point of largest |q|; 0 where no other than q = 0 is stable."""
    found = find_fixed_points(VectorField(problem))
    sizes = (float(np.linalg.norm(found.points[i].q)) for i in found.stable)
    return max((size for size in sizes if size > 1e-6), default=0.0)  # a smaller |q| is that of q = 0


def _contrast(problem: Problem) -> float:
    """1/(threshold - 1) = 2 tau A/Lambda: smooth, and not positive where large second moments are not learnable."""
    at = origin(Closure(problem))
    return 2.0 * at.slope / at.diffusion if at.slope else 0.0


def _threshold(contrast: float) -> float:
    return 1.0 + 1.0 / contrast if contrast > 0 else math.inf


Noise = tuple[float, float]
"""Strength and correlation of the noise of the views."""


def _best(value: Callable[[float, float], float], tried: list[tuple[float, Noise]], strongest: float) -> Optimum:
    """Noise that maximises an objective, among all noises and none, from the best of those tried already."""
    noiseless = value(0.0, 0.0)
    highest, (eta, rho) = max(tried)
    for _ in range(6):  # strength and correlation in turn
        near = (0.0, min(2.0 * eta, strongest))
        highest, eta = _along(lambda x: value(x, rho), near, (highest, eta))  # noqa: B023
        # The correlation of so weak a noise does not matter.
        if eta < 1e-3 * strongest or (abs(rho) == 1.0 and value(eta, NEARLY_ONE * rho) <= highest):
            break
        before, near = highest, (max(rho - 0.5, -NEARLY_ONE), min(rho + 0.5, NEARLY_ONE))
        highest, rho = _along(lambda x: value(eta, x), near, (highest, rho))  # noqa: B023
        if highest - before <= LEAST_GAIN * abs(highest):
            break
    if highest <= noiseless + LEAST_GAIN * abs(noiseless):
        return Optimum(0.0, 0.0, noiseless, noiseless)
    return Optimum(eta, rho, highest, noiseless)


def _along(
    value: Callable[[float], float], bounds: tuple[float, float], best: tuple[float, float]
) -> tuple[float, float]:
    """Maximum of an objective between bounds and its place, unless the best so far is better."""
    # The objective is flat about its maximum.
    found = minimize_scalar(lambda x: -value(x), bounds=bounds, method="bounded", options={"xatol": 1e-4})
    return max((-float(found.fun), float(found.x)), best)


def vanishing_strength(problem: Problem, correlation: float, strongest: float = 2.0) -> float:
    """Strength of noise at which the recovery state vanishes: its branch turns, or meets q = 0.

    Parameters
    ----------
    problem : Problem
        With a prior that closes the ODEs. Its own augmentation does not matter.
    strongest : float
        Largest variance that is tried.

    Returns
    -------
    float
        To 1e-5 of the strongest; NaN where the state lasts to the strongest noise, or there is none at all.
    """
    last = math.nan
    for strength in (0.0, *(share * strongest for share in SHARES)):
        if recovery_similarity(with_noise(problem, strength, correlation)) > 0:
            last = strength
        elif math.isfinite(last):
            break
    else:
        return math.nan
    while strength - last > 1e-5 * strongest:
        middle = 0.5 * (last + strength)
        if recovery_similarity(with_noise(problem, middle, correlation)) > 0:
            last = middle
        else:
            strength = middle
    return 0.5 * (last + strength)
