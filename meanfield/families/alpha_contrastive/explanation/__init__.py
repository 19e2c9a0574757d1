"""Problems of contrastive learning with pairwise importance in words."""
