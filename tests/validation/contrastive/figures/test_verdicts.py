"""What studies of figures decide is what their page says: on numbers without SGD, and, in the slow suite, with SGD."""

from importlib import import_module

import pytest

from validation.contrastive.figures.page import PAGE
from validation.pages import markdown_table, sections, verdict

SECTIONS = {title.lower().replace(" ", "_"): text for title, text in sections(PAGE).items()}
STUDIES = [name for name in SECTIONS if name != "finite_n_bands"]  # which is all SGD: see test_finite_n_bands.py

TWO_FEATURES = ("figure_3a", "figure_3b", "figure_7", "figure_8", "figure_9")
"""Figures whose theory is drawn without SGD."""

SLOW = (
    *("figure_3a", "figure_4", "figure_6a", "figure_8", "figure_9", "figure_10a", "figure_10b", "figure_11a"),
    *("sparse_prior", "proposition_3", "learnability_with_priors", "condensation"),
)
"""Studies that take seconds. Others look for fixed points and for the effect of noise by the same functions; tests of
learnability and of condensation hold thresholds, shares and their limit laws against closed forms."""


def study(name):
    return import_module(f"validation.contrastive.figures.{name}").STUDY


def check(name, statements, whole):
    """Statements are on the page with their verdicts, and are all of it where there is no more to decide."""
    rows = ((each.text, each.source, verdict(each.source, each.holds)) for each in statements)
    rows = markdown_table((), rows).splitlines()[2:]
    assert rows
    assert [row for row in rows if row not in SECTIONS[name]] == []
    assert not whole or len(rows) == SECTIONS[name].count("\n| ") - 2


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow if n in SLOW else ()) for n in STUDIES])
def test_verdicts(name):
    found = study(name)
    numbers = found.theory()
    check(name, found.judge(numbers), whole=found.simulate is None)
    if name in TWO_FEATURES:
        found.draw(numbers)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [name for name in STUDIES if name.startswith("figure") and name not in TWO_FEATURES] + ["selection"]
)
def test_verdicts_with_sgd(name):
    """With new seeds one of 50 runs has a false alarm, and one of 8 of `selection`, which looks nine times."""
    found = study(name)
    check(name, found.judge(found.numbers()), whole=True)
