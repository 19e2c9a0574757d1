"""Part of a problem that names an activation, and the numbers that it takes."""

from __future__ import annotations

from typing import Self

from pydantic import Field, ValidationInfo, model_validator

from meanfield.ingredients.activations import ACTIVATIONS, Activation, make_activation
from meanfield.ingredients.named_functions import NamesFunctions
from meanfield.ingredients.part import NamedNumbers, Parameters


class NamesActivation(NamesFunctions):
    """The table `[model]` of a problem, as far as it names an activation."""

    activation: str = Field(description=f"one of {', '.join(ACTIVATIONS)}, or your own as 'package.module:name'")
    activation_parameters: Parameters = Field(
        default=NamedNumbers(),
        description="numbers that the activation takes, for instance { slope = 0.1 } for leaky_relu",
    )

    @model_validator(mode="after")
    def _activation_exists(self, info: ValidationInfo) -> Self:
        self.look_up("activation", make_activation, info)
        return self

    @property
    def named(self) -> tuple[str, tuple[tuple[str, float], ...]]:
        """See `NamesFunctions.named`."""
        return self.activation, tuple(sorted(self.activation_parameters.items()))

    @property
    def activation_functions(self) -> Activation:
        """The activation that `activation` names.

        Raises
        ------
        InputError
            If it is a user's own and cannot be imported.
        """
        found: Activation = self.found("model.activation", make_activation)
        return found
