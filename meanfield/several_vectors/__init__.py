"""Density of several vectors that train together: of two on cells that move with it, of more by particles."""
