"""The Gaussian expectations that close the limit: (problem, q) -> drift gain g and diffusion Lambda."""

from meanfield.closures.closure import Closure

__all__ = ["Closure"]
