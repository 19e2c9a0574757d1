"""Studies of contrastive learning with pairwise importance."""
