"""Contrastive learning: the demo, its accuracy, cost and finite-size errors, and real data."""
