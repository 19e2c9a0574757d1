"""Dynamics of the order parameters as a whole: fixed points, fluctuations, random starts."""
