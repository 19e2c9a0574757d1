"""Support recovery: which coordinates of a feature weights find, and how far they are off, of densities and of SGD.

A weight w estimates the coordinate u of its feature. A coordinate belongs to the support where u is not 0, and is found
where |w| is above a threshold. Between edges of cells the distribution functions of a density are interpolated in their
normal score, in which a Gaussian law is a straight line; the stated error is what half of the edges change, and that of
the density itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtr

from meanfield.arguments import as_numbers, wrong
from meanfield.errors import InputError
from meanfield.ingredients.laws import CoordinateLaw, GaussianCoordinate
from meanfield.ingredients.priors import PriorSettings
from meanfield.mckean_vlasov.cells import edges_of, nodes_of
from meanfield.mckean_vlasov.marginal import laws_given
from meanfield.mckean_vlasov.weight_law import Score
from meanfield.numerics.fine_rules import ContinuousLaw
from meanfield.numerics.quadrature import panel_rule
from meanfield.problems.in_time import InTime
from meanfield.results.made_by import FINGERPRINTS
from meanfield.results.result import Result
from meanfield.results.schema import build_dataset
from meanfield.typing import FloatArray

if TYPE_CHECKING:
    import xarray as xr

FEWEST_EDGES, INSIDE = 12, 1e-9
"""Least number of edges at which a distribution function is further from 0 and 1 than `INSIDE` to have a smooth score;
between fewer it is a line, whose error is at most the probability of a cell."""

SIGNS = (-1.0, 0.0, 1.0)
"""Signs of u, by which coordinates are grouped."""

PANELS = np.linspace(-8.0, 8.0, 17)
"""Ends of panels of normal scores, for averages over a law; 1e-15 of it lies beyond."""


def support_recovery(
    result: xr.Dataset, threshold: float | Sequence[float], gain: float | Sequence[float] = ()
) -> xr.Dataset:
    """Rates of support recovery, sign errors and mean square errors of the weights of one vector.

    Parameters
    ----------
    result : xarray.Dataset
        A density, or SGD with its weights at snapshots.
    threshold : float or sequence of float
        A coordinate is found where |w| is above it; from 0 on.
    gain : float or sequence of float, optional
        Rate at which training pulls a weight to u without a prior, such as the learning rate of least squares. Then
        w + phi(w)/gain is the debiased estimate of u: its mean given u is u once training has come to rest.

    Returns
    -------
    xarray.Dataset
        Of the kind `support_recovery`, at the output times of a density or the snapshots of SGD, there with the dim
        `replica`: `share_below`, the share of weights with |w| up to the threshold; for each feature
        `true_positive_rate`, the share of its support that is found, `false_positive_rate`, the share of the other
        coordinates that is found, NaN where there are none, and `sign_error_rate`, the share of the support that is
        found with the wrong sign; `mean_square_error` of w as an estimate of u, and `debiased_mean_square_error`. Where
        a density states errors, so do they. It is saved, drawn and compared as other results are.

    Raises
    ------
    InputError
        If the result holds no weights of one vector with features, a threshold is negative or a gain not positive, or
        the debiased estimate takes a prior of one's own, which no result can import.

    Notes
    -----
    All quantities are dimensionless.
    """
    given = Result.of(result)
    thresholds, gains = _numbers(threshold, "threshold", 0.0), _numbers(gain, "gain", 1e-300)
    if not thresholds.size:
        raise wrong("threshold", threshold, "give one number from 0 on or more")
    held = given.dataset
    one = {"channel", "particle"}.isdisjoint(held.dims) and held.sizes.get("student", 1) == 1
    if one and "P" in held and "u_weight" in held:
        arrays = _of_density(given, thresholds, gains)
    elif one and "weights" in held and "U" in held:
        arrays = _of_runs(given, thresholds, gains)
    else:
        raise InputError(
            f"support_recovery: a result of kind '{given.method}' holds no weights of one vector with features; give a "
            "density, or SGD with its weights, which particles.snapshots keeps"
        )
    arrays |= {"threshold": thresholds} | ({"gain": gains} if gains.size else {})
    built = build_dataset("support_recovery", given.problem, arrays, given.status, held.attrs["provenance"])
    return built.assign_attrs({FINGERPRINTS: held.attrs[FINGERPRINTS]} if FINGERPRINTS in held.attrs else {})


def _numbers(given: Any, name: str, least: float) -> FloatArray:
    """Numbers of an argument in increasing order."""
    wanted = f"give {'positive numbers' if least else 'numbers from 0 on'}, such as 0.5 or [0.25, 0.5]"
    found = np.unique(as_numbers((given,) if isinstance(given, Real | str) else given, name, wanted))
    if found.size and found[0] < least:
        raise wrong(name, float(found[0]), wanted)
    return found


def _rates(share: FloatArray, tails: FloatArray) -> dict[str, FloatArray]:
    """Shares of coordinates that are found, or not.

    Parameters
    ----------
    share : ndarray, shape (..., feature, 3)
        Of coordinates with u < 0, u = 0 and u > 0.
    tails : ndarray, shape (2, ..., feature, 3, threshold)
        Probabilities of w < -threshold and of w > threshold; 0 where there are no such coordinates.
    """
    below, above = share[..., None] * tails
    found, support = below + above, share[..., ::2].sum(axis=-1)[..., None]
    with np.errstate(invalid="ignore", divide="ignore"):
        return {
            "share_below": 1.0 - found[..., 0, :, :].sum(axis=-2),
            "true_positive_rate": (found[..., 0, :] + found[..., 2, :]) / support,
            "false_positive_rate": found[..., 1, :] / share[..., 1, None],
            "sign_error_rate": (above[..., 0, :] + below[..., 2, :]) / support,
        }


def _of_runs(given: Result, thresholds: FloatArray, gains: FloatArray) -> dict[str, FloatArray]:
    """Variables of SGD, all with the dims `replica` and `time` in front."""
    held, problem = given.dataset, given.problem
    w = held["weights"].transpose("replica", "snapshot_time", "coordinate", ...).values.astype(float)
    w, times = w.reshape(w.shape[:3]), held["snapshot_time"].values
    U = held["U"].transpose("feature", "replica", "coordinate").values.astype(float)
    share = np.zeros((len(w), 1, len(U), 3))
    tails = np.zeros((2, *w.shape[:2], len(U), 3, len(thresholds)))
    for feature, u in enumerate(U):
        signs = _signs(problem.coordinates[feature], u)
        for replica, group in np.ndindex(len(w), 3):
            chosen = signs[replica] == SIGNS[group]
            members = w[replica][:, chosen]
            share[replica, 0, feature, group] = chosen.mean()
            for k, threshold in enumerate(thresholds if members.size else ()):
                tails[:, replica, :, feature, group, k] = [
                    (sign * members > threshold).mean(axis=1) for sign in (-1, 1)
                ]
    share = np.where(np.isfinite(w).all(axis=2)[..., None, None], share, np.nan)
    arrays = {"time": times} | _rates(share, tails)
    arrays["mean_square_error"] = np.stack([((w - u[:, None]) ** 2).mean(axis=2) for u in U], axis=2)
    if gains.size:
        in_time = InTime(problem)
        pull = np.stack([in_time(float(t)).prior.force(w[:, k]) for k, t in enumerate(times)], axis=1)
        squares = [[((w + pull / gain - u[:, None]) ** 2).mean(axis=2) for gain in gains] for u in U]
        arrays["debiased_mean_square_error"] = np.moveaxis(np.array(squares), (0, 1), (2, 3))
    return arrays


def _signs(law: CoordinateLaw, u: FloatArray) -> FloatArray:
    """Signs of coordinates of SGD, which where features are several are only near the values of a discrete law."""
    if isinstance(law, ContinuousLaw):
        return np.sign(u)
    values, _ = law.quadrature(1)
    return np.asarray(np.sign(values)[np.argmin(np.abs(u[..., None] - values), axis=-1)])


def _of_density(given: Result, thresholds: FloatArray, gains: FloatArray) -> dict[str, FloatArray]:
    """Variables of a density, with errors where it states its own."""
    held, problem = given.dataset, given.problem
    edges, (nodes, weight) = edges_of(held), nodes_of(held)
    P, times, features = held["P"].values, held["time"].values, held.sizes["feature"]
    share = np.full((len(P), features, 3), np.nan)
    tails, errors = np.zeros((2, 2, len(P), features, 3, len(thresholds)))
    squares = np.full((3, len(P), features, len(gains)), np.nan)
    for time in np.flatnonzero(np.isfinite(P).all(axis=(1, 2))):
        prior = InTime(problem)(float(times[time])).prior
        kinks = prior.functions.kinks if prior.at_hand else ()
        for feature in range(features):
            laws = laws_given(problem.coordinates, nodes, weight, edges, P[time], feature)
            for group, sign in enumerate(SIGNS):
                members = np.sign(laws.u[:, feature]) == sign
                share[time, feature, group] = laws.weight[members].sum()
                if members.any():
                    found = _Law(edges, laws.weight[members] @ laws.F[members], kinks).tails(thresholds)
                    tails[:, time, feature, group], errors[:, time, feature, group] = found
        if gains.size:
            laws_at = [_Law.of(edges, row, kinks) for row in P[time]]
            squares[:, time] = _debiased(prior, gains, nodes[:, :features], weight, laws_at)
    R, Q = (held["q"], held["norm"]) if "q" in held else (held["R"], held["Q"])
    arrays = {"time": times} | _rates(share, tails)
    arrays["mean_square_error"] = 1.0 + Q.values.reshape(-1, 1) - 2.0 * R.values.reshape(len(P), -1)
    arrays |= {"debiased_mean_square_error": squares[0]} if gains.size else {}
    return arrays | (_errors(held, share, errors, squares) if "P_error" in held else {})


def _debiased(
    prior: PriorSettings, gains: FloatArray, u: FloatArray, u_weight: FloatArray, laws: Sequence[_Law]
) -> FloatArray:
    """Mean square errors of debiased estimates, what half of the edges change in them, and the largest squares."""

    def squares(w: FloatArray, node: FloatArray) -> FloatArray:
        return (w + prior.force(w) / gains[:, None] - node[:, None, None]) ** 2

    found = [law.mean(partial(squares, node=node)) for law, node in zip(laws, u, strict=True)]
    value, error = np.einsum("n,nsfg->sfg", u_weight, [each[:2] for each in found])
    return np.array([value, error, np.max([each[2] for each in found], axis=0)])


def _errors(held: xr.Dataset, share: FloatArray, tails: FloatArray, squares: FloatArray) -> dict[str, FloatArray]:
    """Errors of interpolation, and what an error of the density in L1 allows: half of it in a probability."""
    half, support = 0.5 * held["P_error"].values[:, None, None], share[..., ::2].sum(axis=-1)[..., None]
    found = _rates(share, tails)
    found["share_below"] = 1.0 - found["share_below"] + half[..., 0]
    with np.errstate(invalid="ignore", divide="ignore"):
        for name, among in {"true": support, "false": share[..., 1, None]}.items():
            found[f"{name}_positive_rate"] += half / among
        found["sign_error_rate"] += half / support
    R, Q = (held[name].values for name in (("q_error", "norm") if "q" in held else ("R_error", "Q_error")))
    by_norm = 0.0 if "q" in held else Q.reshape(-1, 1)
    found["mean_square_error"] = by_norm + 2.0 * R.reshape(len(half), -1)
    if squares.shape[-1]:
        found["debiased_mean_square_error"] = squares[1] + 2.0 * half * squares[2]
    return {f"{name}_error": error for name, error in found.items()}


class _Law:
    """Law of weights, whose normal score is interpolated between edges of cells: between all, and between half of them.

    Parameters
    ----------
    edges, F : ndarray, shape (cells + 1,)
        F increases from 0 to the probability of all, by which it is divided.
    kinks : tuple of float
        Edges where the density may have a corner.
    """

    def __init__(self, edges: FloatArray, F: FloatArray, kinks: tuple[float, ...]) -> None:
        self.edges, self.F, self.kinks = edges, F / F[-1], np.array(kinks)
        first = int(np.abs(edges - kinks[0]).argmin()) % 2 if kinks else 0
        half = np.unique([0, *range(first, len(edges), 2), len(edges) - 1])
        wide = np.sum((self.F > INSIDE) & (self.F < 1.0 - INSIDE)) >= FEWEST_EDGES
        self.scores = [self._score(edges[each], self.F[each]) for each in (slice(None), half)] if wide else []

    @classmethod
    def of(cls, edges: FloatArray, P: FloatArray, kinks: tuple[float, ...]) -> _Law:
        """Law of a density that is averaged over cells."""
        return cls(edges, np.cumsum(np.append(0.0, P * np.diff(edges))), kinks)

    def _score(self, edges: FloatArray, F: FloatArray) -> Score:
        return Score.of(edges, np.diff(F) / np.diff(edges), tuple(self.kinks))

    def tails(self, thresholds: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Probabilities of w < -threshold and of w > threshold, and their errors, both of shape (2, thresholds)."""
        places = np.array([-thresholds, thresholds])
        if self.scores:
            fine, half = (ndtr(np.array([[1.0], [-1.0]]) * score(places)) for score in self.scores)
            return fine, np.abs(half - fine)
        cell = np.clip(np.searchsorted(self.edges, places), 1, len(self.edges) - 1)
        below, above = np.interp(places, self.edges, self.F)
        return np.array([below, 1.0 - above]), self.F[cell] - self.F[cell - 1]

    def mean(self, function: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """Average of a function of weights, its error, and the largest value; NaN of a law that is too narrow."""
        if not self.scores:
            return np.full((3, *function(self.edges[:1]).shape[:-1]), np.nan)
        averages, largest = [], 0.0
        for score in self.scores:
            ends = np.unique(np.clip([*PANELS, *score(self.kinks)], PANELS[0], PANELS[-1]))
            z, share = panel_rule(ends, GaussianCoordinate().density)
            values = function(score.quantile(z))
            averages.append(values @ share)
            largest = np.maximum(largest, values.max(axis=-1))
        return np.array([averages[0], np.abs(averages[1] - averages[0]), largest])
