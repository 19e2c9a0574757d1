"""Settings of SGD in the problem file of a contrastive problem: kind of step, sizes and records."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from meanfield.ensembles.settings import EnsembleSettings
from meanfield.ingredients.part import Part


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
