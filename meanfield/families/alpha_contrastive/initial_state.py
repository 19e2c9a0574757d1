"""Start from the weights or the density of a result at one of its times, or from weights in arrays."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
from numpy.random import Generator

from meanfield.errors import InputError
from meanfield.numerics.sphere_cells import SphereCells
from meanfield.results import initial_state
from meanfield.results.initial_state import Moment
from meanfield.typing import FloatArray

if TYPE_CHECKING:
    from meanfield.families.alpha_contrastive.problem import Problem

TURN = 2.0 * np.pi

MOMENTS = ("moment_cos", "moment_sin", "mean", "second_moment", "G")
"""Numbers of a density that one which starts from it is held against."""


class CircleLaw(NamedTuple):
    """Law of filters on the circle that is uniform between edges.

    Parameters
    ----------
    edges : ndarray, shape (cells + 1,)
        Increasing angles of one turn.
    mass : ndarray, shape (cells,)
    """

    edges: FloatArray
    mass: FloatArray

    @classmethod
    def between(cls, filters: FloatArray) -> CircleLaw:
        """Law with the same share between any two neighbours of some filters, shape (filters, 2)."""
        angle = np.sort(np.arctan2(filters[:, 1], filters[:, 0]))
        return cls(np.append(angle, angle[0] + TURN), np.full(len(angle), 1.0 / len(angle)))

    def masses(self, edges: FloatArray) -> FloatArray:
        """Masses between increasing angles in [-3 pi, 3 pi], shape (edges - 1,)."""
        total = np.append(0.0, np.cumsum(self.mass))
        known = np.concatenate([self.edges - TURN, self.edges, self.edges + TURN])
        return np.diff(np.interp(edges, known, np.concatenate([total - 1.0, total, total + 1.0])))

    def sample(self, rng: Generator, count: int) -> FloatArray:
        """Independent filters, shape (count, 2)."""
        angle = np.interp(rng.random(count), np.append(0.0, np.cumsum(self.mass)), self.edges)
        return np.stack([np.cos(angle), np.sin(angle)], axis=1)


class SphereLaw(NamedTuple):
    """Law of filters on the sphere that is uniform in each of `SphereCells`, with masses of shape (polar, azimuth)."""

    mass: FloatArray

    def density(self, w: FloatArray) -> FloatArray:
        """Density at points of the sphere, shape (points,)."""
        cells = SphereCells(len(self.mass))
        return np.asarray((self.mass / cells.area).ravel()[cells.numbers(w)])

    def sample(self, rng: Generator, count: int) -> FloatArray:
        """Independent filters, shape (count, 3)."""
        rows, columns = self.mass.shape
        drawn = np.searchsorted(np.cumsum(self.mass)[:-1], rng.random(count), side="right")
        row, column = np.divmod(np.minimum(drawn, self.mass.size - 1), columns)
        azimuth = -np.pi + TURN * (column + rng.random(count)) / columns
        low, high = np.cos(np.pi * (row + 1) / rows), np.cos(np.pi * row / rows)
        z = low + (high - low) * rng.random(count)
        sine = np.sqrt(1.0 - z * z)
        return np.stack([sine * np.cos(azimuth), sine * np.sin(azimuth), z], axis=1)


class State(NamedTuple):
    """What a file holds of a start.

    Parameters
    ----------
    filters : ndarray, shape (runs, places, filters, coordinates), optional
    top : ndarray, shape (runs, outputs, places * filters), optional
        No outputs for one layer.
    law : CircleLaw or SphereLaw, optional
        Of filters in place of these.
    moments : mapping of str to ndarray
        Moments and objective of that law, and with the suffix `_error` their errors.
    """

    filters: FloatArray | None = None
    top: FloatArray | None = None
    law: CircleLaw | SphereLaw | None = None
    moments: Mapping[str, FloatArray] = {}

    @property
    def runs(self) -> int:
        """See `meanfield.results.initial_state.State.runs`."""
        return 1 if self.filters is None else len(self.filters)

    @property
    def on_circle(self) -> CircleLaw:
        """Law of all filters of one layer and two coordinates."""
        if isinstance(self.law, CircleLaw):
            return self.law
        assert self.filters is not None
        return CircleLaw.between(self.filters.reshape(-1, 2))


class InitialState(initial_state.InitialState):
    """Start of weights from a file: `from` names a result (.nc), or arrays `weights` and, of two layers, `top`."""

    family: ClassVar[str] = "alpha_contrastive"
    arrays: ClassVar[Mapping[str, str]] = {"weights": "w"}
    further_arrays: ClassVar[tuple[str, ...]] = ("top",)
    wanted: ClassVar[str] = "an exact flow, a density, or SGD with particles.record = 'replicas'"

    @property
    def atoms(self) -> State:
        """See `meanfield.results.initial_state.InitialState.atoms`."""
        state: State = super().atoms
        return state

    def of_result(self, moment: Moment) -> State:
        """See `meanfield.results.initial_state.InitialState.of_result`."""
        held = moment.held
        known = {name: held[name].values for each in MOMENTS for name in (each, f"{each}_error") if name in held}
        if "rho" in held:
            left, right = held["angle_bnds"].values.T
            mass = np.maximum(moment.runs_of("rho")[0], 0.0) * (right - left)
            return State(law=CircleLaw(np.append(left, right[-1]), mass / mass.sum()), moments=known)
        if "rho_on_sphere" in held:
            mass = moment.runs_of("rho_on_sphere", "polar", "azimuth")[0]
            mass = mass * SphereCells(len(mass)).area
            return State(law=SphereLaw(mass / mass.sum()), moments=known)
        filters = moment.runs_of("weights", "place", "filter", "coordinate")
        top = moment.runs_of("top", "output", "place", "filter") if "top" in held else None
        return _of_weights(filters, top)

    def of_arrays(self, given: dict[str, FloatArray], path: Path) -> State:
        """See `meanfield.results.initial_state.InitialState.of_arrays`."""
        filters, top = given["weights"], given.get("top")
        wanted = (
            "(filters, coordinates), or (places, filters, coordinates) and (outputs, places, filters) of two layers"
        )
        filters = filters[None] if filters.ndim == 2 else filters
        filters = filters[None] if filters.ndim == 3 else filters
        fits = filters.ndim == 4 and filters.size > 0
        if top is not None and fits:
            top = top[None] if top.ndim == 3 else top
            fits = top.ndim == 4 and top.shape[:1] + top.shape[2:] == filters.shape[:3]
        if not fits:
            shapes = " and ".join(f"{name} of shape {values.shape}" for name, values in given.items())
            raise InputError(f"{path}: {shapes}; give {wanted}, both perhaps with runs in front")
        return _of_weights(filters, top)

    def check_fits(self, problem: Problem) -> None:
        """See `meanfield.results.initial_state.InitialState.check_fits`."""
        state, (places, count, d), model = self.atoms, problem.shape, problem.model
        outputs = model.outputs * (model.layers - 1)
        if state.filters is None or state.top is None:
            found = 2 if isinstance(state.law, CircleLaw) else 3
            if model.layers == 2 or found != d:
                raise ValueError(
                    f"initial.from: has a density of filters with {found} coordinates and one layer, and the problem "
                    f"filters with {d} and model.layers = {model.layers}; make them equal"
                )
            return
        sizes = *state.filters.shape[1:], state.top.shape[1]
        for found, wanted, key in zip(
            sizes, (places, count, d, outputs), ("places of data", "filters.count", "coordinates of data",
            "model.outputs, 0 of one layer"), strict=True
        ):  # fmt: skip
            if found != wanted:
                raise ValueError(f"initial.from: has {found} where the problem has {wanted} ({key}); make them equal")
        if model.unit_filters and not state.filters.any(axis=-1).all():
            raise ValueError("initial.from: has a filter that is 0, which is no direction; change it")


def _of_weights(filters: FloatArray, top: FloatArray | None) -> State:
    runs, places, count, _ = filters.shape
    top = np.zeros((runs, 0, places, count)) if top is None else top
    return State(filters, top.reshape(runs, -1, places * count))
