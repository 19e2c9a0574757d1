"""Contrastive learning with pairwise importance: filters on the sphere, and networks of two layers on tokens."""

from meanfield.families.alpha_contrastive.family import FAMILY

__all__ = ["FAMILY"]
