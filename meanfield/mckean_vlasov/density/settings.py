"""Table `density` of a problem file: the accuracy of a density, or its cells and steps."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from meanfield.ingredients.part import Part, after_fields

DEFAULT_TOLERANCE, DEFAULT_ORDER = 1e-6, 4

PLANE_TOLERANCE = 1e-3
"""Tolerance of the density of two channels if nothing is said: its cells have a dimension more."""

PARTICLE_TOLERANCE, LEAST_PARTICLE_TOLERANCE = 2e-3, 3e-4
"""Tolerance of interacting particles if nothing is said, and the least one: its square is paid for in particles."""

FIXED_KEYS = ("cells", "steps", "order")
"""Keys of the density that fix its cells and steps."""

EULERIAN_KEYS = (*FIXED_KEYS, "half_width")
"""Keys of the density that only the Eulerian scheme has."""


class DensitySettings(Part):
    """Accuracy of the density, or its discretisation; what is left out is chosen from the problem."""

    tolerance: float | None = Field(
        default=None,
        ge=1e-10,
        le=1e-2,
        description=f"error allowed in q and r, {DEFAULT_TOLERANCE:g} if nothing is said; cells, nodes and steps "
        f"follow from it; of particles in q and M, {PARTICLE_TOLERANCE:g} if nothing is said",
    )
    scheme: Literal["lagrangian", "eulerian", "automatic", "finite_volumes", "particles"] | None = Field(
        default=None,
        description="of a single channel 'lagrangian' for points that follow the weights, 'eulerian' for cells that "
        f"stay where they are; if nothing is said, 'eulerian' with any of {', '.join(EULERIAN_KEYS)}, else "
        "'lagrangian'; of several channels 'finite_volumes' for cells that follow the weights of two, 'particles' for "
        "interacting particles of any number, 'automatic', if nothing is said, for cells where they serve",
    )
    cells: int | None = Field(
        default=None, ge=8, le=10**7, multiple_of=2, description="number of cells in w, even, so that w = 0 is an edge"
    )
    half_width: float | None = Field(
        default=None, ge=1e-6, le=1e6, description="the cells cover [-half_width, half_width], for instance 8.0"
    )
    feature_nodes: int | None = Field(
        default=None,
        ge=2,
        le=1000,
        description="quadrature nodes per feature coordinate, for instance 31; discrete laws need none",
    )
    steps: int | None = Field(
        default=None,
        ge=1,
        le=10**12,
        description="time steps up to time.stop, rounded up to a multiple of time.outputs - 1",
    )
    order: Literal[2, 4] | None = Field(
        default=None,
        description=f"order of accuracy with fixed cells and steps, {DEFAULT_ORDER} if nothing is said: 2 is one "
        "solution, 4 extrapolates from a second one with half the cell width and half the time step",
    )

    @model_validator(mode="before")
    @classmethod
    def _one_of_both(cls, data: Any) -> Any:
        """Fill in the default that decides between accuracy and fixed cells, so that a stored problem has it."""
        if not isinstance(data, dict):
            return data
        if data.get("scheme") is None:
            eulerian = any(data.get(key) is not None for key in EULERIAN_KEYS)
            data = {**data, "scheme": "eulerian" if eulerian else "lagrangian"}
        if data["scheme"] == "automatic":
            return data
        if data["scheme"] == "finite_volumes" and all(data.get(key) is None for key in FIXED_KEYS):
            return {"tolerance": PLANE_TOLERANCE} | data
        if data["scheme"] == "particles":
            return data if data.get("tolerance") is not None else data | {"tolerance": PARTICLE_TOLERANCE}
        if all(data.get(key) is None for key in FIXED_KEYS):
            return {"tolerance": DEFAULT_TOLERANCE} | data
        return data if data.get("tolerance") is not None else {"order": DEFAULT_ORDER} | data

    @after_fields
    def _particles_have_a_tolerance_alone(self) -> None:
        if self.scheme != "particles":
            return
        given = [key for key in (*EULERIAN_KEYS, "feature_nodes") if getattr(self, key) is not None]
        if given:
            raise ValueError(
                f"scheme = 'particles' with {', '.join(given)}: particles have neither cells nor nodes, and their "
                f"number follows from the tolerance; remove {' and '.join(given)}"
            )
        if self.tolerance is not None and self.tolerance < LEAST_PARTICLE_TOLERANCE:
            raise ValueError(
                f"tolerance = {self.tolerance:g} with scheme = 'particles': errors fall with the root of the number of "
                f"particles; give {LEAST_PARTICLE_TOLERANCE:g} or more"
            )

    @after_fields
    def _not_both(self) -> None:
        fixed = [f"{key} = {getattr(self, key)}" for key in FIXED_KEYS if getattr(self, key) is not None]
        if fixed and self.tolerance is not None:
            raise ValueError(
                f"tolerance = {self.tolerance:g} with {', '.join(fixed)}: cells and steps follow from the tolerance; "
                "remove one or the other"
            )
        given = [f"{key} = {getattr(self, key)}" for key in EULERIAN_KEYS if getattr(self, key) is not None]
        if given and self.scheme == "lagrangian":
            raise ValueError(
                f"scheme = 'lagrangian' with {', '.join(given)}: its points follow the weights and have no cells; "
                f"remove {' and '.join(entry.split()[0] for entry in given)}, or take scheme = 'eulerian'"
            )
