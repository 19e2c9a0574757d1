"""Order parameters of update rules."""

from meanfield.families.update_rule.order_parameters.trajectory import solve_order_parameters

__all__ = ["solve_order_parameters"]
