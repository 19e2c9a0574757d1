"""Settings of methods in the problem file: accuracy of the flow, and SGD."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from meanfield.ensembles.settings import ReplicaSettings
from meanfield.ingredients.part import Part


class PopulationSettings(Part):
    """Accuracy of the gradient flow."""

    tolerance: float = Field(
        default=1e-9, ge=1e-12, le=1e-3, description="error of a step of the flow, relative to the weights"
    )


class DensitySettings(Part):
    """Scheme and accuracy of densities of nodes."""

    scheme: Literal["automatic", "finite_volumes", "particles"] = Field(
        default="automatic",
        description="'finite_volumes' for cells that follow nodes with two or three weights, 'particles' for a sample "
        "of nodes with any number; 'automatic' for cells where they serve",
    )
    tolerance: float = Field(
        default=5e-3,
        ge=1e-4,
        le=0.1,
        description="error allowed in Delta, absolute below 1 and relative above, of cells of three weights and of "
        "particles; those of two weights are exact",
    )

    cells: int = Field(
        default=240,
        ge=12,
        le=10**5,
        description="number of cells of the circle for densities of two weights",
    )


class ScoreSettings(Part):
    """Samples that are drawn for the score, which precede the keys that SGD of all families has."""

    score_samples: int = Field(
        default=1000,
        ge=2,
        le=10**7,
        description="number of fresh samples from which correlations are estimated at each output time, as the public "
        "code does",
    )


class ParticleSettings(ReplicaSettings, ScoreSettings):
    """Settings of SGD."""
