"""Laws of the hidden variables c, of the feature coordinates u, and of the initial weights' residual."""

from meanfield.laws.coordinate import CoordinateLaw, GaussianCoordinate
from meanfield.laws.hidden import HiddenLaw
from meanfield.laws.joint import JointLaw
from meanfield.laws.residual import GaussianResidual, ResidualLaw

__all__ = ["CoordinateLaw", "GaussianCoordinate", "GaussianResidual", "HiddenLaw", "JointLaw", "ResidualLaw"]
