"""Update rules of one's own: what only this family has."""

from meanfield.process.public_names import public_names

__getattr__, __dir__, __all__ = public_names(__name__, __file__)
