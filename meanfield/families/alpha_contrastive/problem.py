"""Problems of contrastive learning with pairwise importance. Frozen objects that know no method.

All quantities are dimensionless; time is t = eta k for SGD step k (alpha_contrastive.md, section 3).
"""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field, model_validator

from meanfield.families.alpha_contrastive.filters import Filters, FourierStart, GivenStart
from meanfield.families.alpha_contrastive.importance import Importance
from meanfield.families.alpha_contrastive.laws import DataLaw, Tokens
from meanfield.families.alpha_contrastive.settings import DensitySettings, SearchSettings, Training
from meanfield.ingredients.activation_part import NamesActivation
from meanfield.problems.base import BaseProblem, Time


class Model(NamesActivation):
    """Network that is trained."""

    layers: Literal[1, 2] = Field(default=1, description="1 for filters on the sphere, 2 for filters with a top layer")


class FlowTime(Time):
    """End of a run, and its output times."""

    stop: float = Field(
        default=2.0, ge=1e-9, le=1e6, description="last time t = eta k after k steps of size eta, for instance 2.0"
    )
    outputs: int = Field(
        default=21, ge=2, le=10**5, description="number of evenly spaced output times, both ends included"
    )


class Problem(BaseProblem):
    """Problem of contrastive learning with pairwise importance, with the settings of the methods."""

    settings: ClassVar[frozenset[str]] = frozenset({"density", "critical_points"})

    model: Model
    importance: Importance = Importance()
    data: DataLaw = Field(description="law of the data, a table with law = ...")
    filters: Filters = Filters()
    time: FlowTime = FlowTime()
    training: Training = Training()
    critical_points: SearchSettings = SearchSettings()
    density: DensitySettings = DensitySettings()

    @model_validator(mode="after")
    def _layers_fit_the_data(self) -> Problem:
        tokens = isinstance(self.data, Tokens)
        if tokens != (self.model.layers == 2):
            needed, law = (2, "tokens") if tokens else (1, self.data.law)
            raise ValueError(
                f"model.layers = {self.model.layers}, but data.law = '{law}' is for {needed} layer(s); change one"
            )
        return self

    @model_validator(mode="after")
    def _start_fits_the_data(self) -> Problem:
        start = self.filters.start
        d = self.data.vocabulary if isinstance(self.data, Tokens) else self.data.dimension
        if isinstance(start, FourierStart) and (d != 2 or self.model.layers == 2):
            raise ValueError(
                f"filters.start.law = 'fourier' is a density on the circle, but data have {d} coordinates; take "
                "'uniform', 'random' or 'points'"
            )
        if isinstance(start, GivenStart) and len(start.values[0]) != d:
            raise ValueError(
                f"filters.start.values has rows of {len(start.values[0])} number(s), but data have {d} coordinates; "
                "give as many"
            )
        return self

    @property
    def fixed_dims(self) -> dict[str, int]:
        """See `BaseProblem.fixed_dims`."""
        return {} if isinstance(self.data, Tokens) else {"coordinate": self.data.dimension}

    @property
    def labels(self) -> dict[str, float]:
        """See `BaseProblem.labels`."""
        return {"learning_rate": self.training.learning_rate, "batch_size": self.training.batch_size}
