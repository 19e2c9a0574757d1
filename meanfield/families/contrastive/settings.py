"""Sizes and records of SGD, as a problem file says them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from meanfield.ingredients.part import Part


class ParticleSettings(Part):
    """SGD at finite N."""

    method: Literal["auto", "plain", "projected", "chain"] = Field(
        default="auto",
        description="'plain' is SGD line by line, 'projected' takes one vector of normals per step, 'chain' follows q "
        "alone (linear priors); all have the same law, and 'auto' takes the cheapest that gives what is asked for",
    )
    dimension: int = Field(default=1024, ge=3, le=10**12, description="N, at least the number of features plus 2")
    replicas: int = Field(default=8, ge=1, le=2**32, description="number of independent runs")
    seed: int = Field(default=0, ge=0, description="root of all random streams, a whole number >= 0")
    snapshots: Annotated[tuple[float, ...], Field(strict=False)] | None = Field(
        default=None,
        description="output times at which weights are kept, for instance [0.0, 10.0, 20.0], or [] for none",
    )
    snapshot_precision: Literal["double", "single"] = Field(
        default="double", description="of the weights and features that are kept; 'single' halves the file"
    )
    record: Literal["replicas", "statistics"] = Field(
        default="replicas",
        description="'replicas' keeps q and r of each, 'statistics' their mean, covariance and quantiles",
    )
    escape_overlap: float | None = Field(
        default=None, gt=0, le=1, description="keep the time at which |q| first reached this, for instance 0.5"
    )
