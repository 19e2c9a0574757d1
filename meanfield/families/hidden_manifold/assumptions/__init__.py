"""Which assumption of the conventional theory fails on latents that are a mixture, and by how much."""

from meanfield.families.hidden_manifold.assumptions.report import examine_assumptions

__all__ = ["examine_assumptions"]
