"""Settings in the problem file of a contrastive problem: the penalty of several channels, and how SGD is run."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from meanfield.ensembles.settings import EnsembleSettings
from meanfield.ingredients.named_functions import NamesFunctions
from meanfield.ingredients.part import NamedValues, Parameters, Part
from meanfield.ingredients.penalties import PENALTIES, Penalty, make_penalty
from meanfield.ingredients.schedules.key import OrSchedule


class DecorrelationSettings(NamesFunctions):
    """Penalty strength sum psi(C_kj) on the covariances C of the outputs of each two channels k and j."""

    function_key: ClassVar[str] = "decorrelation.penalty"
    parameters_key: ClassVar[str] = "parameters"
    make: ClassVar[Any] = make_penalty

    penalty: str = Field(
        default="square", description=f"psi, one of {', '.join(PENALTIES)}, or your own as 'package.module:name'"
    )
    strength: Annotated[float, Field(ge=0, le=1e6), OrSchedule()] = Field(
        description="lambda, the factor of psi, a number >= 0, for instance 0.05, or a schedule"
    )
    parameters: Parameters = Field(
        default=NamedValues(),
        description="numbers that the penalty takes, for instance { width = 0.1 } for smooth_absolute",
    )

    @property
    def functions(self) -> Penalty:
        """The penalty that `penalty` names.

        Raises
        ------
        InputError
            If it is a user's own and cannot be imported.
        """
        found: Penalty = self.found()
        return found


class StepSettings(Part):
    """Kind of step, which precedes the keys that SGD of all families has."""

    method: Literal["auto", "plain", "projected", "chain"] = Field(
        default="auto",
        description="'plain' is SGD line by line, 'projected' takes one vector of normals per step, 'chain' follows q "
        "alone (linear priors); all have the same law, and 'auto' takes the cheapest that gives what is asked for",
    )


class ParticleSettings(EnsembleSettings, StepSettings):
    """Settings of SGD at finite N."""

    dimension: int = Field(default=1024, ge=3, le=10**12, description="N, at least the number of features plus 2")
    record: Literal["replicas", "statistics"] = Field(
        default="replicas",
        description="'replicas' keeps q and r of each, 'statistics' their mean, covariance and quantiles",
    )
    escape_overlap: float | None = Field(
        default=None, gt=0, le=1, description="keep the time at which |q| first reached this, for instance 0.5"
    )
