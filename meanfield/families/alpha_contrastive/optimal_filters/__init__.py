"""Networks of the best objective: as many filters as the importance asks for, with a certificate."""

from meanfield.families.alpha_contrastive.optimal_filters.solver import find_optimal_filters

__all__ = ["find_optimal_filters"]
