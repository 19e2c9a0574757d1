"""Escape from the symmetric plateau, on which students that start at random stay alike in the limit."""

from meanfield.families.hidden_manifold.escape.solver import predict_escape

__all__ = ["predict_escape"]
