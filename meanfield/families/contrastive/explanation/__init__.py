"""Wording, warnings and predicted costs of contrastive problems."""
