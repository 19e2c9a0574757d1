"""The density P_t(w|u): the McKean-Vlasov Fokker-Planck equation by finite volumes."""

from meanfield.density.solver import solve_density

__all__ = ["solve_density"]
