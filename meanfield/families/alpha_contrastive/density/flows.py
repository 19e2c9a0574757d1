"""Flow of a density of filters on cells of the circle: velocities, objective and certificate.

The importance sees the density through the distances D_ij alone; for the uniform importance, or mixtures, every filter
moves by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from meanfield.families.alpha_contrastive.critical_points.circle import circle_points
from meanfield.families.alpha_contrastive.density.grid import Grid
from meanfield.families.alpha_contrastive.limit.circle import on_circle, tangential
from meanfield.families.alpha_contrastive.limit.discrete import DiscreteField
from meanfield.families.alpha_contrastive.limit.mixture import MixtureField
from meanfield.families.alpha_contrastive.limit.networks import Network, best_on_circle, network_of, with_importance
from meanfield.typing import BoolArray, FloatArray

BESIDE = 1e-9
"""Angle by which both sides of a face are apart from it, where it is a wall."""


class CoupledFlow:
    """Flow of filters at data of finitely many atoms.

    Parameters
    ----------
    field : DiscreteField
    grid : Grid
    longest : float
        Longest interval of angles on which the field varies no more than once.
    """

    def __init__(self, field: DiscreteField, grid: Grid, longest: float) -> None:
        self.field, self.longest, self._width = field, longest, grid.width
        faces, atoms = grid.edges[:-1], field.atoms
        self._outputs = field.filter.value(on_circle(faces) @ atoms.T)
        slopes = [field.filter.slope(on_circle(faces + step) @ atoms.T) for step in (-BESIDE, BESIDE)]
        self._pushes = np.stack(slopes) * (np.stack([-np.sin(faces), np.cos(faces)], axis=1) @ atoms.T)
        self._inside = field.filter.value(on_circle(grid.nodes) @ atoms.T)
        self._fixed = self._velocity(self.network(np.ones(len(faces)))) if field.pairs.uniform else None

    def network(self, rho: FloatArray) -> Network:
        """Network of the density; weights of cells are normalised, which takes away rounding."""
        return network_of(self.field, self._inside, rho * self._width / (rho @ self._width))

    def _velocity(self, network: Network) -> FloatArray:
        return np.asarray(np.einsum("fi,sfi->sf", self._outputs @ network.laplacian, self._pushes))

    def velocity(self, rho: FloatArray) -> FloatArray:
        """Velocity at the left face of each cell, from the left and from the right, shape (2, cells)."""
        return self._velocity(self.network(rho)) if self._fixed is None else self._fixed

    def summary(self, rho: FloatArray) -> tuple[float, float]:
        """Objective G, and what E_alpha of the best filter is above its average over the density."""
        network = self.network(rho)
        _, energy = best_on_circle(with_importance(self.field, network), self.longest)
        return network.objective, max(float(energy.max(initial=0.0)) - network.mean_energy, 0.0)

    def attracting(self, rho: FloatArray, walls: FloatArray) -> BoolArray:
        """Walls to which the field of a density points from both sides."""
        field = tangential(with_importance(self.field, self.network(rho)))
        return np.asarray((field(walls - BESIDE)[0] > 0.0) & (field(walls + BESIDE)[0] < 0.0))


class MixtureFlow:
    """Flow of filters at a Gaussian mixture, each by itself; see `CoupledFlow`."""

    def __init__(self, field: MixtureField, grid: Grid, longest: float) -> None:
        self._at_faces = np.tile(tangential(field)(grid.edges[:-1])[0], (2, 1))
        self._energies = field.energy(on_circle(grid.nodes))
        self._field, self._longest, self._width = field, longest, grid.width

    @cached_property
    def _best(self) -> float:
        points = circle_points(tangential(self._field), np.empty(0), self._longest)
        return float(self._field.energy(on_circle(np.array([point.angle for point in points]))).max())

    def velocity(self, rho: FloatArray) -> FloatArray:
        """See `CoupledFlow.velocity`."""
        return self._at_faces

    def summary(self, rho: FloatArray) -> tuple[float, float]:
        """See `CoupledFlow.summary`."""
        objective = float(self._energies @ (rho * self._width) / (rho @ self._width))
        return objective, max(self._best - objective, 0.0)

    def attracting(self, rho: FloatArray, walls: FloatArray) -> BoolArray:
        """See `CoupledFlow.attracting`; the mixture has no walls."""
        return np.zeros(len(walls), dtype=bool)


MakeFlow = Callable[[Grid], CoupledFlow | MixtureFlow]
"""Function that returns the flow on a grid."""
