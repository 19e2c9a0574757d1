"""Declarations of the variables of results, one module for each method."""
