"""Prior on the weights as a problem file describes it: a name, a strength, parameters."""

from __future__ import annotations

import numpy as np
from pydantic import Field, ValidationInfo, model_validator

from meanfield.errors import InputError
from meanfield.ingredients.named_functions import NamesFunctions
from meanfield.ingredients.part import NamedNumbers, Parameters
from meanfield.ingredients.priors import PRIORS, Prior, make_prior
from meanfield.typing import FloatArray


class PriorSettings(NamesFunctions):
    """Prior on the weights: SGD subtracts (tau/N) strength phi(w)."""

    name: str = Field(default="none", description=f"one of {', '.join(PRIORS)}, or your own as 'package.module:name'")
    strength: float = Field(default=1.0, ge=0, le=1e250, description="factor of phi, a number >= 0")
    parameters: Parameters = Field(
        default=NamedNumbers(), description="numbers that the prior takes, for instance { width = 0.5 } for smooth_l1"
    )

    @model_validator(mode="after")
    def _prior_exists(self, info: ValidationInfo) -> PriorSettings:
        self.look_up("name", make_prior, info)
        return self

    @property
    def named(self) -> tuple[str, tuple[tuple[str, float], ...]]:
        """See `NamesFunctions.named`."""
        return self.name, tuple(sorted(self.parameters.items()))

    @property
    def functions(self) -> Prior:
        """Prior of unit strength that `name` names.

        Raises
        ------
        InputError
            If it is a user's own and cannot be imported.
        """
        found: Prior = self.found("prior.name", make_prior)
        return found

    def force(self, w: FloatArray) -> FloatArray:
        """Force phi(w), with its strength."""
        return self.strength * self.functions.forces(w)

    def potential_steps(self, w: FloatArray) -> FloatArray:
        """Differences of Phi with its strength between neighbours of increasing w, shape (len(w) - 1,)."""
        return self.strength * self.functions.potential_steps(w)

    def check_pull(self, learning_rate: float, N: int) -> None:
        """Refuse a prior that moves a weight of size 1 past 0 in a single step of SGD, which no limit describes.

        Raises
        ------
        InputError
        """
        step = learning_rate / N * float(abs(self.force(np.ones(1))[0]))
        if step > 1:
            raise InputError(
                f"prior.strength = {self.strength:g} with particles.dimension = {N}: one step of SGD moves a weight of "
                f"size 1 by {step:.3g}, past 0 and out on the other side; raise particles.dimension above "
                f"{step * N:.2g}, or lower prior.strength or model.learning_rate"
            )
