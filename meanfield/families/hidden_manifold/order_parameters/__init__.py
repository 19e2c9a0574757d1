"""Order parameters of hidden-manifold problems, from ODEs in the eigenvalues of the features."""

from meanfield.families.hidden_manifold.order_parameters.trajectory import solve_order_parameters

__all__ = ["solve_order_parameters"]
