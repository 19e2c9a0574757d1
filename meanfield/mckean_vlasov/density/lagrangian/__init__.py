"""Lagrangian solution of a limit: points of fixed mass that follow the weights (numerics.quantile_frame)."""
