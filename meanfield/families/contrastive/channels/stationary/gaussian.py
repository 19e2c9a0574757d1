"""Stationary states of any number of channels under a linear prior: Gaussian laws around the fixed points of q and M.

Given u the weights are Gaussian with the mean q^T u and the covariance K = M - q^T q. Perturbations that leave q and M
alone, such as a mean m(u) with E[u m(u)] = 0, decay with the eigenvalues of L - tau phi': by L K + K L^T + Lambda = 0
their real parts are negative wherever there is noise.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from meanfield.families.contrastive.channels.field import velocity
from meanfield.families.contrastive.channels.states.analysis import channel_states, state_variables
from meanfield.families.contrastive.channels.states.field import SmoothField
from meanfield.families.contrastive.channels.states.search import ChannelState
from meanfield.families.contrastive.channels.stationary.motion import SINGULAR, Motion
from meanfield.families.contrastive.problem import Problem
from meanfield.numerics.growth_rates import sorted_rates
from meanfield.results.solved import Solved
from meanfield.several_vectors.densities import gaussian_arrays
from meanfield.typing import FloatArray

OF_THE_OVERLAPS = ("q", "M", "Lambda", "stability", "arrangement", "copies", "region_share")
"""Variables of fixed points that stationary states have as well."""


def gaussian_states(problem: Problem) -> Solved:
    """All stationary states under a linear prior, one of each set of images by symmetries.

    Notes
    -----
    They are those of `meanfield.families.contrastive.channels.states`, which says which of the random starts they
    attract. Source: several_channels.md, section 6.
    """
    points, field = channel_states(problem), SmoothField(problem)
    found = points.arrays
    rows = [_of_a_state(field, q, M) for q, M in zip(found["q"], found["M"], strict=True)]
    arrays = {name: found[name] for name in OF_THE_OVERLAPS}
    arrays |= {name: np.array([row[name] for row in rows]) for name in rows[0]}
    arrays |= gaussian_arrays(problem, found["q"], found["M"], problem.density.feature_nodes)
    return replace(points, kind="stationary", arrays=arrays)


def gaussian_variables(field: SmoothField, state: ChannelState) -> dict[str, Any]:
    """The variables of a stationary state that is a state of the overlaps."""
    found = state_variables(field, state) | {"copies": state.copies}
    return {name: found[name] for name in OF_THE_OVERLAPS if name in found} | _of_a_state(field, state.q, state.M)


def _of_a_state(field: SmoothField, q: FloatArray, M: FloatArray) -> dict[str, Any]:
    problem = field.closure.problem
    tau, d2 = problem.model.rate, problem.model.channels
    force = float(problem.prior.force(np.ones(1))[0])  # of unit weights; phi is linear, so that it is its slope, too
    averages, x = field.closure(q, M), field.packed(q, M)
    n = tau * np.diag(averages.D) + 0.5 * np.diag(averages.Lambda) - tau * force
    motion = Motion.of(averages, q, M, tau, n)
    slope = field.jacobian(x)
    relaxation = sorted_rates(np.linalg.eigvals(_within(motion.L - tau * force * np.eye(d2), M - q.T @ q)))
    rates = sorted_rates(np.concatenate([np.linalg.eigvals(slope), relaxation]))[: field.unknowns]
    of_q, of_M = velocity(averages, q, M, tau)
    compared = field.closure.compared
    others = averages if compared is None else compared(q, M)
    step = np.linalg.lstsq(slope, field.packed(*velocity(others, q, M, tau)), rcond=None)[0]  # Newton's, with these
    balance = -np.einsum("fk,fk->k", q, motion.gain) + tau * force - 0.5 * np.diag(averages.Lambda)
    return {
        "r": np.full(d2, force),
        "multiplier": motion.multipliers(M),
        "multiplier_residual": motion.multipliers(M) - balance,
        "residual": max(float(np.abs(of_q).max()), float(np.abs(of_M).max())),
        "quadrature_error": float(np.abs(step[: q.size]).max()),
        "growth_rate": float(rates[0].real),
        "relaxation_rate": -float(relaxation[0].real) if len(relaxation) else np.inf,
        "eigenvalue_real": rates.real,
        "eigenvalue_imag": rates.imag,
    }


def _within(L: FloatArray, K: FloatArray) -> FloatArray:
    """The matrix L among the directions in which weights have a width: where channels coincide there are fewer."""
    values, vectors = np.linalg.eigh(K)
    V = vectors[:, values > SINGULAR]
    return np.asarray(V.T @ L @ V)
