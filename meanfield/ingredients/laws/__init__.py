"""Laws of the hidden variables c, of the feature coordinates u, and of the residual of the initial weights."""

from meanfield.ingredients.laws.coordinate import CoordinateLaw, GaussianCoordinate
from meanfield.ingredients.laws.hidden import HiddenLaw, JointLaw
from meanfield.ingredients.laws.residual import GaussianResidual, ResidualLaw

__all__ = ["CoordinateLaw", "GaussianCoordinate", "GaussianResidual", "HiddenLaw", "JointLaw", "ResidualLaw"]
