"""Families of problems; each is a package of its own, and nothing outside it imports it."""
