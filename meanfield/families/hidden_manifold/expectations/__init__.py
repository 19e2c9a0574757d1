"""Expectations over Gaussian fields that drive the order parameters (hidden_manifold.md, section 3)."""
