"""Order parameters of contrastive learning: the reduced ODEs, and the fluctuations of SGD about them."""

from meanfield.families.contrastive.order_parameters.field import VectorField
from meanfield.families.contrastive.order_parameters.trajectory import solve_order_parameters

__all__ = ["VectorField", "solve_order_parameters"]
