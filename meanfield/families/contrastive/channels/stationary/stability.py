"""Stability of stationary laws of two channels: the spectrum of the linearised density equation on cells.

A perturbation p of the law obeys dp/dt = G p + sum_y (dG/dy P) y[p] with the unknowns y[p] = (q, M_12) that it brings
about, and multipliers of the norms such that E[w_k^2] stays 1. It has no mass at any u. Eigenvalues are those nearest
to a positive shift, by Arnoldi's method on the inverse: a sparse system for each node, bordered by 2 d1 + 3 columns.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigs

from meanfield.families.contrastive.channels.stationary.equations import PlaneEquations, PlaneState, functions_of
from meanfield.numerics.growth_rates import ComplexArray, sorted_rates
from meanfield.typing import FloatArray


class Spectrum(NamedTuple):
    """Leading rates of perturbations in which the overlaps take part, and the slowest relaxation at fixed overlaps."""

    eigenvalues: ComplexArray
    gap: float


def spectrum(equations: PlaneEquations, state: PlaneState, expected: float = 0.0) -> Spectrum:
    """Rates of small perturbations of a state.

    Parameters
    ----------
    expected : float
        About the largest growth rate. Where overlaps grow much faster than laws relax, it is not next to the shift.

    Notes
    -----
    Where nodes are mirrored, perturbations that are not leave the overlaps alone and decay like laws at fixed overlaps.
    """
    shift = 0.25 * float(np.trace(state.averages.Lambda))  # the order of the rates of relaxation
    found = _next_to(equations, state, shift)
    if expected <= shift:
        return found
    faster = _next_to(equations, state, 1.2 * expected)  # Gaussian laws tell rates to a fifth or so
    rates, slower = faster.eigenvalues, found.eigenvalues
    missed = rates[rates.real > slower[0].real + 1e-6 * abs(slower[0])]  # by more than the tolerance of both
    return found._replace(eigenvalues=np.concatenate([missed, slower])[: len(slower)])


def _next_to(equations: PlaneEquations, state: PlaneState, shift: float) -> Spectrum:
    """Rates nearest to a shift."""
    count, nodes = state.laws[0].P.size, len(state.laws)
    factors = [law.shifted(shift) for law in state.laws]
    masses = np.array([law.P for law in state.laws])

    def relaxed(right: FloatArray) -> FloatArray:
        """(G - shift)^-1 at each node, of columns without mass, shape (nodes, cells, columns)."""
        found = np.array([factor.solve(each) for factor, each in zip(factors, right, strict=True)])
        return np.asarray(found - masses[:, :, None] * found.sum(axis=1, keepdims=True))

    moments = np.array([functions_of(law.w) for law in state.laws])
    of_q = np.einsum("n,nf,nkc->fknc", state.u_weight, state.u, moments[:, :2]).reshape(-1, nodes, count)
    of_M = np.moveaxis(state.u_weight[:, None, None] * moments[:, 2:], 1, 0)
    functionals = np.concatenate([of_q, of_M])  # of all unknowns in their order, the norms in the places of n
    slopes = equations.coefficient_slopes(state)
    border = np.array([law.changes().T @ slope for law, slope in zip(state.laws, slopes, strict=True)])
    inverse = relaxed(border)
    matrix = np.einsum("ync,ncz->yz", functionals, inverse)
    known = 2 * equations.features + 1
    matrix[:known, :known] += np.eye(known)

    def solved(right: FloatArray) -> FloatArray:
        alone = relaxed(right.reshape(nodes, count, 1))
        amounts = np.linalg.solve(matrix, np.einsum("ync,nc->y", functionals, alone[:, :, 0]))
        return np.asarray((alone[:, :, 0] - inverse @ amounts).ravel())

    coupled = _nearest(solved, shift, masses, known + 2)
    free = _nearest(lambda right: relaxed(right.reshape(nodes, count, 1)).ravel(), shift, masses, 2)
    return Spectrum(coupled, -float(free[0].real))


def _nearest(inverse, shift: float, masses: FloatArray, count: int) -> ComplexArray:  # type: ignore[no-untyped-def]
    """Eigenvalues next to the shift of an operator, by its inverse there."""
    start = masses * np.random.default_rng(0).normal(size=masses.shape)
    start -= masses * start.sum(axis=1, keepdims=True)
    operator = LinearOperator((masses.size, masses.size), matvec=inverse, dtype=float)
    found = eigs(operator, count, v0=inverse(start.ravel()), return_eigenvectors=False, tol=1e-8)
    return sorted_rates(shift + 1.0 / found)
