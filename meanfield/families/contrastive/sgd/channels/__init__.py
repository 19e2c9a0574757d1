"""Stochastic gradient descent of several channels at finite N, in three ways of one law."""
