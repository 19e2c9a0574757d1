"""Names for those who write a family, a method, a stepper, a law or a prior of their own.

They are documented and stable, as those of `meanfield` are: a change is announced a release before, with a warning.
Everything else in the package may move at any time. Each name is imported when it is first used; they are listed in
`extend.pyi`.
"""

from meanfield.process.public_names import public_names

__getattr__, __dir__, __all__ = public_names(__name__, __file__)
