"""Laws of the data: weighted points, Gaussian mixtures, latent categories and sums, and tokens in places."""

from typing import Annotated

from pydantic import Field

from meanfield.families.alpha_contrastive.data.discrete import DiscreteLaw, LatentCategorical, LatentSummation, Points
from meanfield.families.alpha_contrastive.data.mixture import GaussianMixture
from meanfield.families.alpha_contrastive.data.tokens import Tokens

DataLaw = Annotated[Points | GaussianMixture | LatentCategorical | LatentSummation | Tokens, Field(discriminator="law")]

__all__ = ["DataLaw", "DiscreteLaw", "GaussianMixture", "LatentCategorical", "LatentSummation", "Points", "Tokens"]
