"""Settings of methods in the problem file: accuracy of the order parameters, and SGD."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from meanfield.ensembles.settings import EnsembleSettings
from meanfield.ingredients.part import Part


class OrderParameterSettings(Part):
    """Accuracy of the order parameters."""

    tolerance: float = Field(
        default=1e-6,
        ge=1e-12,
        le=1e-2,
        description="error allowed in Q, R and the generalisation error; nodes of the spectrum and time steps follow",
    )
    averaging_tolerance: float = Field(
        default=2e-3,
        ge=1e-5,
        le=0.1,
        description="three standard errors allowed in them where inputs have a mean, whose field is averaged over by "
        "sampling",
    )


class StepSettings(Part):
    """Kind of step, which precedes the keys that SGD of all families has."""

    method: Literal["auto", "plain", "chain"] = Field(
        default="auto",
        description="'plain' is SGD line by line, 'chain' follows the Gram matrices alone, for spectra of few "
        "eigenvalues; 'auto' takes the cheapest that gives what is asked for",
    )


class ParticleSettings(EnsembleSettings, StepSettings):
    """Settings of SGD at finite N."""

    dimension: int = Field(default=1000, ge=2, le=10**12, description="N, the number of inputs of the student")
    column_lengths: Literal["equal", "random"] = Field(
        default="equal",
        description="'equal' columns of F have the length sqrt(D), as the limit assumes; 'random' lengths are those "
        "that were drawn, with other results for an f that is not odd",
    )
