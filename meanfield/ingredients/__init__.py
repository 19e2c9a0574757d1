"""Ingredients that a problem file can name: activations, priors, laws, and functions of a user."""
