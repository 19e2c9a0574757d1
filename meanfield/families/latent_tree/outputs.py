"""Outputs of a network: its last layer, or the direction of that."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from meanfield.ingredients.part import FieldError, Part
from meanfield.networks.normalisation import Normalisation


class NormalisesOutputs(Part):
    """Part of a problem that says whether outputs are normalised."""

    output_normalisation: bool = Field(default=False, description="whether outputs are f/(|f| + epsilon), or f itself")
    epsilon: float = Field(default=0.0, ge=0, le=1e3, description="of the normalisation; the public code has 1e-4")

    @model_validator(mode="after")
    def _epsilon_belongs_to_it(self) -> Self:
        if self.epsilon and not self.output_normalisation:
            raise FieldError("epsilon", "belongs to output_normalisation = true; set that, or remove epsilon")
        return self

    @property
    def remedy(self) -> str:
        """Remedy where SGD blows up; under some losses outputs that are not normalised grow without bound."""
        slower = "lower training.learning_rate"
        if self.output_normalisation:
            return slower
        return f"set network.output_normalisation = true, take a shorter time.stop, or {slower}"

    @property
    def normalisation(self) -> Normalisation:
        """Outputs as a function of the last layer."""
        return Normalisation(self.output_normalisation, self.epsilon)
