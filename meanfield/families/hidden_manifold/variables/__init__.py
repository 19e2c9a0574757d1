"""Declarations of the variables of hidden-manifold results; names are the symbols of hidden_manifold.md."""
