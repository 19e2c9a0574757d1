"""Dense networks on images of a user, with the losses of latent trees (latent_tree.md, section 1.2)."""

from meanfield.families.latent_tree.images.family import FAMILY

__all__ = ["FAMILY"]
