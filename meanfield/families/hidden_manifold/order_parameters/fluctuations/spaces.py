"""Eigenspaces of the features in the limit: what the weights of a state have in each, per dimension."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from meanfield.families.hidden_manifold.order_parameters.system import State, System
from meanfield.typing import FloatArray


class Spaces(NamedTuple):
    """Spaces with inputs or latents: one for each eigenvalue, and last the inputs that the features do not reach.

    Parameters
    ----------
    rho : ndarray, shape (spaces,)
        Eigenvalues, 0 for the last space.
    inputs : ndarray, shape (spaces,)
        Dimensions divided by N, of inputs; 0 of latents that reach no input.
    latents : ndarray, shape (spaces,)
        Dimensions divided by D, of latents; 0 of the last space.
    """

    rho: FloatArray
    inputs: FloatArray
    latents: FloatArray


def spaces_of(system: System) -> Spaces:
    """Spaces of a system whose nodes are the eigenvalues themselves."""
    reached = np.where(system.rho > 0.0, system.aspect_ratio * system.weight, 0.0)
    rest = max(1.0 - reached.sum(), 0.0)
    return Spaces(
        np.append(system.rho, 0.0),
        np.append(reached, rest if rest > 1e-9 else 0.0),  # none, to rounding
        np.append(system.weight, 0.0),
    )


def grams_of(system: System, spaces: Spaces, state: State) -> FloatArray:
    """Products per dimension of students and teachers in each space, shape (spaces, students + teachers, ...)."""
    K, M, n = system.students, system.teachers, len(system.rho)
    grams = np.zeros((n + 1, K + M, K + M))
    size = np.where(system.rho > 0.0, system.rho, 1.0)[:, None, None]
    grams[:n, :K, :K] = state.sigma / size
    grams[:n, :K, K:] = state.r[..., :M] / np.sqrt(size)
    grams[:n, K:, :K] = grams[:n, :K, K:].swapaxes(1, 2)
    grams[:n, K:, K:] = system.t[:, :M, :M]
    if spaces.inputs[n] > 0.0:
        rest = state.Omega - np.einsum("j,jkl->kl", spaces.inputs[:n], grams[:n, :K, :K])
        grams[n, :K, :K] = rest / spaces.inputs[n]
    return grams
