"""Laws of the data: points, Gaussian mixtures, latent categories and sums, tokens in places, and images."""

from typing import Annotated

from pydantic import Field

from meanfield.families.alpha_contrastive.laws.conditional import Conditional
from meanfield.families.alpha_contrastive.laws.discrete import DiscreteLaw, LatentCategorical, LatentSummation, Points
from meanfield.families.alpha_contrastive.laws.images import Images
from meanfield.families.alpha_contrastive.laws.mixture import GaussianMixture
from meanfield.families.alpha_contrastive.laws.tokens import Tokens

DataLaw = Annotated[
    Points | GaussianMixture | LatentCategorical | LatentSummation | Tokens | Images | Conditional,
    Field(discriminator="law"),
]

__all__ = [
    "Conditional",
    "DataLaw",
    "DiscreteLaw",
    "GaussianMixture",
    "Images",
    "LatentCategorical",
    "LatentSummation",
    "Points",
    "Tokens",
]
