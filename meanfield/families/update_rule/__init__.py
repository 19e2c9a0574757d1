"""Update rules of one's own: the limit of any algorithm that sees its data through finitely many fields."""
