"""Limits of many nodes per latent: the density of nodes, kernels at the start, and lucky nodes."""
