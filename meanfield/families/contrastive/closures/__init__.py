"""The Gaussian expectations that close the limit: (problem, q) -> drift gain g and diffusion Lambda."""

from meanfield.families.contrastive.closures.closure import Closure

__all__ = ["Closure"]
