"""Problems of contrastive learning with pairwise importance. Frozen objects that know no method.

All quantities are dimensionless; time is t = eta k for SGD step k (alpha_contrastive.md, section 3).
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from meanfield.families.alpha_contrastive.filters import Filters, FourierStart, GivenStart
from meanfield.families.alpha_contrastive.importance import Importance
from meanfield.families.alpha_contrastive.initial_state import InitialState
from meanfield.families.alpha_contrastive.laws import Conditional, DataLaw, Images, Tokens
from meanfield.families.alpha_contrastive.settings import (
    DensitySettings,
    Model,
    ParticleSettings,
    PopulationSettings,
    SearchSettings,
    Training,
)
from meanfield.ingredients.part import after_fields
from meanfield.problems.base import Time
from meanfield.problems.clock import ClockedProblem
from meanfield.problems.phases import pieces_of
from meanfield.results.initial_state import check_start


class FlowTime(Time):
    """End of a run, and its output times."""

    stop: float = Field(
        default=2.0, ge=1e-9, le=1e6, description="last time t = eta k after k steps of size eta, for instance 2.0"
    )
    outputs: int = Field(default=21, ge=2, le=10**5, description="number of output times, both ends included")


class Problem(ClockedProblem):
    """Problem of contrastive learning with pairwise importance, with the settings of the methods."""

    settings: ClassVar[frozenset[str]] = frozenset({"density", "critical_points", "population", "particles"})
    seed_key: ClassVar[str | None] = "particles.seed"
    keys_of_start: ClassVar[tuple[str, ...]] = ("filters.start",)

    in_phases: ClassVar[tuple[str, ...]] = ("model.activation", "importance", "data", "training")

    model: Model
    importance: Importance = Importance()
    data: DataLaw = Field(description="law of the data, a table with law = ...")
    filters: Filters = Filters()
    initial: InitialState | None = Field(
        default=None, description="a file from which the weights start, such as { from = 'density.nc', time = 2.0 }"
    )
    time: FlowTime = FlowTime()
    training: Training = Training()
    critical_points: SearchSettings = SearchSettings()
    density: DensitySettings = DensitySettings()
    population: PopulationSettings = PopulationSettings()
    particles: ParticleSettings = ParticleSettings()

    @after_fields
    def _layers_fit_the_data(self) -> None:
        if isinstance(self.data, Tokens | Images | Conditional) and self.model.layers == 1:
            views = ", or take 'points' with data.sample" * isinstance(self.data, Conditional)
            raise ValueError(f"model.layers = 1, but data.law = '{self.data.law}' is for 2 layers; change one{views}")

    @after_fields
    def _start_fits_the_data(self) -> None:
        start, d = self.filters.start, self.shape[2]
        if isinstance(start, FourierStart) and (d != 2 or self.model.layers == 2):
            raise ValueError(
                f"filters.start.law = 'fourier' is a density on the circle, but data have {d} coordinates; take "
                "'uniform', 'random' or 'points'"
            )
        if isinstance(start, GivenStart):
            self._check_given(start)
        check_start(self)

    def _check_given(self, start: GivenStart) -> None:
        places, filters, d = self.shape
        if len(start.values[0]) != d:
            raise ValueError(
                f"filters.start.values has rows of {len(start.values[0])} number(s), but data have {d} coordinates; "
                "give as many"
            )
        if len(start.values) != places * filters:
            each = f" in each of {places} places" if self.model.layers == 2 else ""
            raise ValueError(
                f"filters.count = {filters}{each}, but filters.start.values has {len(start.values)} row(s); "
                "change one of the two"
            )
        if (start.top is None) == (self.model.layers == 2):
            raise ValueError(
                "filters.start.top is missing; add it"
                if start.top is None
                else "filters.start.top is for two layers; remove it"
            )
        if start.top is not None and len(start.top) != self.model.outputs:
            raise ValueError(
                f"filters.start.top has {len(start.top)} row(s), but model.outputs = {self.model.outputs}; change one"
            )

    @after_fields
    def _filters_stay_filters(self) -> None:
        for number, piece in enumerate(pieces_of(self)):
            if piece.problem.shape != self.shape:
                places, _, d = piece.problem.shape
                raise ValueError(
                    f"phases[{number}].set: data have {d} coordinates in {places} place(s), and filters of "
                    f"{self.shape[2]} coordinates in {self.shape[0]} place(s) go on; give data of the same shape"
                )

    @after_fields
    def _steps_can_be_counted(self) -> None:
        if self.trusted:  # schedules of a result are not opened
            per_time = self.steps_per_time
            rate = f"training.learning_rate = {1.0 / per_time:g}"
            self.particles.check_steps(self.time, per_time, rate, "lower the first or raise the second")

    @property
    def shape(self) -> tuple[int, int, int]:
        """Numbers of places, filters of each place, and coordinates of each filter; one layer is a single place."""
        data, count = self.data, self.filters.count
        if isinstance(data, Tokens):
            return data.places, count, data.vocabulary
        return data.places if isinstance(data, Images | Conditional) else 1, count, data.dimension

    @property
    def fixed_dims(self) -> dict[str, int]:
        """See `meanfield.Problem.fixed_dims`."""
        return {"coordinate": self.shape[2]}
