"""Fluctuations of the order parameters over runs of SGD, to leading order 1/sqrt(N)."""
