"""Prior on the weights as a problem file describes it: a name, a strength, parameters."""

from __future__ import annotations

from pydantic import Field, ValidationInfo, model_validator

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
