"""Thresholds of learning from q = 0, and the augmentation that learns fastest."""
