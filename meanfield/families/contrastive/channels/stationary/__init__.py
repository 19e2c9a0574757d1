"""Stationary states of the density of several channels."""
