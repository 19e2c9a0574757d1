"""Stationary states of the density without time stepping, for any prior."""
