"""Teacher and student on a hidden manifold, with Gaussian-mixture latents, in the high-dimensional limit."""

from meanfield.families.hidden_manifold.family import FAMILY

__all__ = ["FAMILY"]
