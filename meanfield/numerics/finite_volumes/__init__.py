"""Finite volumes in one dimension: cells, the compiled kernel of an implicit step, and the same step in FiPy."""
