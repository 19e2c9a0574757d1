"""SGD at finite N, the judge of every limit."""

from meanfield.particles.simulation import simulate_sgd

__all__ = ["simulate_sgd"]
