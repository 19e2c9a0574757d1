"""Numbers as text for people."""

import pytest

from meanfield.results.numbers import index_text


@pytest.mark.parametrize(
    ("places", "sizes", "text"),
    [((), (), ""), ((1, 0), (2, 3), "21"), ((0, 0), (3, 12), "1,1"), ((1, 12), (3, 40), "2,13"), ((10,), (11,), "11")],
)
def test_indices_of_entries_are_never_ambiguous(places, sizes, text):
    assert index_text(places, sizes) == text
