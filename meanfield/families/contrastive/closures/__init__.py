"""Closures: the Gaussian expectations (problem, q) -> drift gain g and diffusion Lambda, which close the limit."""

from meanfield.families.contrastive.closures.closure import Closure

__all__ = ["Closure"]
