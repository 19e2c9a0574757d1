"""Deep ReLU networks shaped like a tree of latents, trained by contrastive losses on samples of that tree."""

from meanfield.families.latent_tree.family import FAMILY

__all__ = ["FAMILY"]
