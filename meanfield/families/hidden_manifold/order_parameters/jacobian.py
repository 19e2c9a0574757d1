"""Jacobian of the rates of the order parameters by numbers that can move independently of each other.

A symmetric matrix has as many as it has entries on and above its diagonal: its lower half moves with them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from meanfield.families.hidden_manifold.order_parameters.rates import rates
from meanfield.families.hidden_manifold.order_parameters.system import System
from meanfield.numerics.compiled.separate_calls import call
from meanfield.process import own_numba as numba
from meanfield.typing import FloatArray, IntArray


class Coordinates(NamedTuple):
    """Independent numbers of a state.

    Parameters
    ----------
    place, mirror : ndarray of int, shape (numbers,)
        Where each stands in a state, and where again by symmetry.
    """

    place: IntArray
    mirror: IntArray

    def moved(self, y: FloatArray, x: FloatArray) -> FloatArray:
        """State y with numbers x."""
        y = y.copy()
        y[self.place] = y[self.mirror] = x
        return y


def coordinates_of(system: System) -> Coordinates:
    """Independent numbers of a system, without its second layer where that is not trained."""
    n = len(system.rho)
    K = system.students
    L = system.t.shape[1]
    upper, lower = np.triu_indices(K)
    first = (np.arange(n)[:, None] * K * (L + K) + np.arange(K * L)).ravel()
    matrices = np.append(np.arange(n) * K * (L + K) + K * L, n * K * (L + K))[:, None]
    above, below = (matrices + K * upper + lower).ravel(), (matrices + K * lower + upper).ravel()
    last = n * K * (L + K) + K * K + np.arange(K if system.training[1] > 0.0 else 0)
    return Coordinates(np.concatenate([first, above, last]), np.concatenate([first, below, last]))


def rates_at(system: System, y: FloatArray) -> FloatArray:
    """Rates of change of a state."""
    rate = np.empty(len(y))
    rates(y, system, rate)
    return rate


def jacobian_at(system: System, coordinates: Coordinates, y: FloatArray) -> FloatArray:
    """Derivative of the rates of independent numbers by these, shape (numbers, numbers)."""
    J = np.empty((len(coordinates.place), len(coordinates.place)))
    _jacobian(y, system, coordinates, J)
    return J


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _jacobian(y, system, coordinates, J):  # type: ignore[no-untyped-def]
    """Write the Jacobian, by central differences."""
    ahead = np.empty(y.size)
    behind = np.empty(y.size)
    at = y.copy()
    for column in range(coordinates.place.size):
        j, mirror = coordinates.place[column], coordinates.mirror[column]
        step = 1e-5 * (1.0 + abs(y[j]))  # errors are about 1e-10, and rounding about 1e-11
        at[j] = at[mirror] = y[j] + step
        call(rates, at, system, ahead)
        at[j] = at[mirror] = y[j] - step
        call(rates, at, system, behind)
        at[j] = at[mirror] = y[j]
        for row in range(coordinates.place.size):
            i = coordinates.place[row]
            J[row, column] = (ahead[i] - behind[i]) / (2.0 * step)
