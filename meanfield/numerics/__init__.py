"""Numerical methods that know no problem."""
