"""Limit of training as N grows, for the density and stationary solvers of any family."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from meanfield.ingredients.laws import CoordinateLaw, ResidualLaw
    from meanfield.ingredients.priors import PriorSettings
    from meanfield.ingredients.spectra import Spectrum
    from meanfield.mckean_vlasov.drive import Drive
    from meanfield.mckean_vlasov.weight_law import WeightLaw
    from meanfield.typing import FloatArray


@dataclass(frozen=True, eq=False)
class Limit:
    """McKean-Vlasov equation of one weight w given its feature coordinates u.

    dw = (G w - u.g(q) - tau phi(w)) dt + sqrt(Lambda(q)) dB with q = E[u w] and the multiplier G that keeps
    E[w^2] = 1 (theory.md, section 2). Where the norm is free, g, Lambda and G are functions of q and E[w^2]
    (update_rules.md, section 5). Where the noise of coordinates has variances rho of a spectrum,

    dw = (G w - u.g - rho (u.g' + h w) - tau phi(w)) dt + sqrt(rho Lambda) dB,

    and E[rho u w] and E[rho w^2] stand beside E[u w] in q, and g' and h beside g (update_rules.md, section 11).

    Parameters
    ----------
    closure : callable
        q, shape (d1,) with |q|^2 <= E[w^2], to g, shape (d1,), and Lambda; where the norm is free, q and E[w^2] to g,
        Lambda and G. With a spectrum q has E[u w], E[rho u w] and E[rho w^2], and g has g, g' and h, shape (2 d1 + 1,).
    learning_rate : float
        tau, the factor of the prior's force.
    prior : PriorSettings
        phi with its strength, and differences of its potential.
    coordinates : tuple of CoordinateLaw
        Laws of the feature coordinates u, one for each feature.
    initial_overlap : ndarray, shape (d1,)
        q(0).
    initial_residual : ResidualLaw
        Law of the part of a weight that is not along the features at t = 0.
    times : ndarray, shape (outputs,)
        Output times, increasing from 0.
    remedy_if_too_fast : str
        Advice of messages about dynamics that is too fast: a family names its keys.
    remedy_if_norm_drifts : str
        Advice of messages about E[w^2] far from 1: a family names its keys.
    initial_law : WeightLaw, optional
        Law of w given u at t = 0, where it is none of a residual of a law of its own.
    schedules : Drive, optional
        Factors in time on g (and G), Lambda and phi, which are those of the largest rate and strength then.
    start : float
        Time from which on the equation holds.
    later : tuple of Limit
        Limits of later phases, by their starts; what trains goes on from one to the next. Their times are not asked.
    initial_norm : float
        E[w^2] at t = 0.
    free_norm : bool
        Whether E[w^2] follows from the closure; otherwise it is kept.
    spectrum : Spectrum, optional
        Law of the variances of the noise, on which u and the start do not depend.

    Notes
    -----
    A density asks for g and Lambda thousands of times; `meanfield.mckean_vlasov.closures` says how they are compiled.
    Limits are equal if they are one object, by which solvers keep what they have made of it.
    """

    closure: Callable[..., tuple[Any, ...]]
    learning_rate: float
    prior: PriorSettings
    coordinates: tuple[CoordinateLaw, ...]
    initial_overlap: FloatArray
    initial_residual: ResidualLaw
    times: FloatArray
    remedy_if_too_fast: str = "lower the learning rate"
    remedy_if_norm_drifts: str = "lower the learning rate or the noise"
    initial_law: WeightLaw | None = None
    schedules: Drive | None = None
    start: float = 0.0
    later: tuple[Limit, ...] = ()
    initial_norm: float = 1.0
    free_norm: bool = False
    spectrum: Spectrum | None = None

    @property
    def overlaps(self) -> int:
        """Number of entries of q."""
        return len(self.coordinates) if self.spectrum is None else 2 * len(self.coordinates) + 1

    @property
    def judged(self) -> int:
        """Number of averages that a tolerance is for: q, r and, where it is free, E[w^2]."""
        return self.overlaps + 1 + self.free_norm

    @property
    def what_is_judged(self) -> str:
        """Words for these."""
        return "q, r and E[w^2]" if self.free_norm else "q and r"

    @cached_property
    def mean_variance(self) -> float:
        """Mean of the spectrum, E[rho], which Gauss nodes have exactly."""
        nodes = self.spectrum and self.spectrum.nodes(2)
        return float(nodes.weight @ nodes.rho) if nodes else 1.0

    @cached_property
    def largest_variance(self) -> float:
        """Largest eigenvalue of the spectrum, or of many nodes."""
        return 1.0 if self.spectrum is None else float(self.spectrum.nodes(16).rho.max())

    def factors(self, nodes: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Factors of w in the overlaps that are linear in it, shape (nodes, overlaps), and variances at nodes.

        Parameters
        ----------
        nodes : ndarray, shape (nodes, d1), or (nodes, d1 + 1) with a spectrum
            Coordinates u and, with a spectrum, rho.
        """
        if self.spectrum is None:
            return nodes, np.ones(len(nodes))
        u, rho = nodes[:, :-1], np.maximum(nodes[:, -1], 1e-10)  # points and cells take some noise
        return np.hstack([u, rho[:, None] * u]), rho

    def initial_means(self, nodes: FloatArray) -> FloatArray:
        """Means of w at t = 0 given coordinates at nodes; see `factors`."""
        return np.asarray(nodes[:, : len(self.coordinates)] @ self.initial_overlap)

    @property
    def initial_deviation(self) -> float:
        """Standard deviation of w given u at t = 0."""
        return math.sqrt(self.initial_norm - self.initial_overlap @ self.initial_overlap)

    def arguments_of(self, moments: FloatArray) -> FloatArray:
        """Numbers on which coefficients depend, of q, r, E[w^2] and the mass: q and, where it is free, E[w^2]."""
        q = moments[:-3]
        return np.append(q, moments[-2]) if self.free_norm else q.copy()

    @property
    def initial_arguments(self) -> FloatArray:
        """Those at t = 0."""
        return self.arguments_at(self.initial_overlap)

    def arguments_at(self, overlap: FloatArray) -> FloatArray:
        """Those of weights that know nothing of the variances, with the norm at t = 0 and E[u w], shape (d1,)."""
        mean, norm = self.mean_variance, self.initial_norm
        q = overlap if self.spectrum is None else np.array([*overlap, *(mean * overlap), mean * norm])
        return np.append(q, norm) if self.free_norm else q

    @cached_property
    def drive(self) -> Drive:
        """Factors on g, Lambda and phi in time."""
        from meanfield.mckean_vlasov.drive import steady_drive  # which imports numba

        return self.schedules or steady_drive(float(self.times[-1]))

    @property
    def phases(self) -> tuple[Limit, ...]:
        """Limits of all phases."""
        return (self, *self.later)

    @property
    def priors(self) -> tuple[PriorSettings, ...]:
        """Priors of all phases."""
        return tuple(phase.prior for phase in self.phases)

    @property
    def starts(self) -> tuple[float, ...]:
        """Times at which later phases begin."""
        return tuple(phase.start for phase in self.later)

    @cached_property
    def corners(self) -> tuple[float, ...]:
        """Times after the start at which a phase begins, or a schedule jumps or bends, increasing."""
        ends = (*self.starts, np.inf)
        found = {
            time
            for phase, end in zip(self.phases, ends, strict=True)
            for time in (phase.start, *phase.drive.inner_corners)
            if phase.start <= time < min(end, self.times[-1])
        }
        return tuple(sorted(found - {self.start}))

    def phase_at(self, time: float) -> Limit:
        """Limit that holds at a time: that of the next phase where one ends."""
        return self.phases[int(np.searchsorted(self.starts, time, side="right"))]

    def along(self, values_of: Callable[[Limit, slice], FloatArray]) -> FloatArray:
        """Values at the output times, from a function of a phase and the numbers of its output times."""
        ends = np.searchsorted(self.times, self.starts)
        outputs = map(slice, [0, *ends], [*ends, len(self.times)])
        return np.concatenate([values_of(phase, at) for phase, at in zip(self.phases, outputs, strict=True)])

    @property
    def learning_rates(self) -> FloatArray:
        """Factor of the prior's force at the output times, with the prior's largest strength, shape (outputs,)."""
        return self.along(lambda phase, at: phase.learning_rate * phase.drive.at(self.times[at])[:, 2])

    def followed_by(self, later: Sequence[tuple[float, Limit]]) -> Limit:
        """Limit of this phase and of later ones, each with its start; itself if there are none."""
        starts = [start for start, _ in later]
        first, *others = (
            replace(limit, start=start, schedules=limit.drive.stopping_at(starts))
            for start, limit in ((self.start, self), *later)
        )
        return replace(first, later=tuple(others)) if later else self

    @classmethod
    def of(
        cls,
        problem: Any,
        closure: Callable[[FloatArray], tuple[FloatArray, float]],
        initial_overlap: FloatArray,
        besides: str = "",
    ) -> Limit:
        """Limit of a problem in whose files the learning rate is `model.learning_rate`.

        Parameters
        ----------
        problem : Problem
            With the tables `model`, `prior`, `time` and the laws of coordinates and of the initial residual.
        closure : callable
        initial_overlap : ndarray, shape (d1,)
        besides : str
            What else helps where E[w^2] drifts from 1.
        """
        remedy = "lower model.learning_rate"
        return cls(
            closure,
            problem.model.learning_rate,
            problem.prior,
            problem.coordinates,
            initial_overlap,
            problem.initial_residual,
            problem.time.outputs_at,
            remedy,
            f"{remedy}{besides}",
        )
