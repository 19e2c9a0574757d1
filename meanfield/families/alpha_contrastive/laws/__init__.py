"""Laws of the data: weighted points, Gaussian mixtures, latent categories and sums, and tokens in places."""

from typing import Annotated

from pydantic import Field

from meanfield.families.alpha_contrastive.laws.discrete import DiscreteLaw, LatentCategorical, LatentSummation, Points
from meanfield.families.alpha_contrastive.laws.mixture import GaussianMixture
from meanfield.families.alpha_contrastive.laws.tokens import Tokens

DataLaw = Annotated[Points | GaussianMixture | LatentCategorical | LatentSummation | Tokens, Field(discriminator="law")]

__all__ = ["DataLaw", "DiscreteLaw", "GaussianMixture", "LatentCategorical", "LatentSummation", "Points", "Tokens"]
