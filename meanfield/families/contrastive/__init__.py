"""Contrastive learning of one neuron in the high-dimensional limit."""

from meanfield.families.contrastive.family import FAMILY

__all__ = ["FAMILY"]
