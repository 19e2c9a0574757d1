"""Stochastic gradient descent of contrastive problems at finite N, in three ways of one law."""
