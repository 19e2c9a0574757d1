"""Recognition of condensation in a density: the weights beyond the critical one, and the norm that they carry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from meanfield.mckean_vlasov.cells import edges_of
from meanfield.mckean_vlasov.condensation.pull import critical_weight, stiffness
from meanfield.mckean_vlasov.condensation.threshold import critical_diffusion, held_norm
from meanfield.mckean_vlasov.limit import Limit
from meanfield.typing import FloatArray


@dataclass(frozen=True)
class Condensate:
    """Weights that run away, at all output times; NaN where none do, or that were not reached.

    Parameters
    ----------
    critical_weight : ndarray, shape (outputs,)
        w_c, beyond which weights run away.
    weights : ndarray, shape (outputs,)
        P(|w| > w_c).
    norm : ndarray, shape (outputs,)
        The part of E[w^2] beyond w_c.
    onset, last : int
        The first output from which on weights run away until the last one that was reached, and this last one.
    """

    critical_weight: FloatArray
    weights: FloatArray
    norm: FloatArray
    onset: int
    last: int

    def arrays(self) -> dict[str, FloatArray]:
        """The variables of the Dataset."""
        return {
            "critical_weight": self.critical_weight,
            "runaway_weights": self.weights,
            "runaway_norm": self.norm,
        }


def condensate(limit: Limit, arrays: Mapping[str, FloatArray]) -> Condensate | None:
    """Weights that run away, from the variables of a density; None where none do at the end.

    They do where Lambda is below Lambda_c, so that no stationary density without tilt has unit norm, and the multiplier
    of the norm, less the prior's l2 part, is positive.

    Parameters
    ----------
    limit : Limit
        Limit that was solved.
    arrays : mapping of str to ndarray
        `q`, `g`, `Lambda`, `r`, `norm`, `P`, `u_weight` and `w_bnds` of the result; NaN where it was not reached.

    Notes
    -----
    The tilt u.g of single weights is left out of w_c. Source: theory.md, section 6.
    """
    prior, pull = limit.prior.functions, limit.learning_rate * limit.prior.strength
    reached = np.flatnonzero(np.isfinite(arrays["r"]))
    if not len(reached) or held_norm(limit.prior, limit.learning_rate, float(arrays["Lambda"][reached[-1]])) >= 1.0:
        return None
    below = arrays["Lambda"] < critical_diffusion(limit.prior, limit.learning_rate)
    G = np.sum(arrays["q"] * arrays["g"], axis=1) + limit.learning_rate * arrays["r"] - 0.5 * arrays["Lambda"]
    critical = critical_weight(prior, G / pull - stiffness(prior))
    critical = np.where(below & np.isfinite(critical), critical, np.nan)
    last = int(reached[-1])
    if np.isnan(critical[last]):
        return None
    onset = max(np.flatnonzero(np.isnan(critical[:last])), default=-1) + 1
    edges = edges_of(arrays)
    inside = np.array(
        [
            _inside(edges, arrays["u_weight"] @ P, w) if np.isfinite(w) else (np.nan, np.nan)
            for P, w in zip(arrays["P"], critical, strict=True)
        ]
    )
    weights, norm = np.clip(np.stack([1.0 - inside[:, 0], arrays["norm"] - inside[:, 1]]), 0.0, None)
    return Condensate(critical, weights, norm, int(onset), last)


def _inside(edges: FloatArray, density: FloatArray, critical: float) -> tuple[float, float]:
    """Probability and second moment of |w| < critical, with a constant density in each cell."""
    cut = np.clip(edges, -critical, critical)
    return float(density @ np.diff(cut)), float(density @ np.diff(cut**3)) / 3.0
