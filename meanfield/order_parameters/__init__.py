"""The reduced ODEs for the overlaps q, where the prior lets them close."""

from meanfield.order_parameters.trajectory import solve_order_parameters

__all__ = ["solve_order_parameters"]
