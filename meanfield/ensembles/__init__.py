"""Ensembles of replicas of stochastic gradient descent, for any family."""
