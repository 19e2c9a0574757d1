"""Spectra of features: laws of the eigenvalues rho of F F^T/N."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from meanfield.ingredients.part import Part
from meanfield.ingredients.spectra import Atoms, SpectrumFile


class IndependentFeatures(Part):
    """Spectrum of features with independent entries, the Marchenko-Pastur law of the aspect ratio of the inputs."""

    law: Literal["marchenko_pastur"] = "marchenko_pastur"


Spectrum = Annotated[IndependentFeatures | Atoms | SpectrumFile, Field(discriminator="law")]
