"""Update rules of one's own: the limit of any algorithm that sees its data through finitely many fields."""

from meanfield.families.update_rule.family import FAMILY

__all__ = ["FAMILY"]
