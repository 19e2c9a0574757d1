"""The density P_t(w|u) of a contrastive problem."""

from meanfield.families.contrastive.density.solver import solve_density, solve_joint_density

__all__ = ["solve_density", "solve_joint_density"]
