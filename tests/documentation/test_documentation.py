"""Every block of code in the documentation runs, and every link, image, module and file that a page names exists."""

import contextlib
import pkgutil
import re
import sys
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import pytest

from meanfield.problems.known_families import ENTRY_POINTS
from tests.documentation.pages import PAGES, ROOT, anchors, blocks, links, outside_code, page_text
from tests.reader import Reader, assert_same, lay_out

MADE = ("data/runs", "docs/_build")
"""Folders of files that runs and builds make."""

NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
LONG = ("docs/how-to/compare_with_sgd.md", "docs/how-to/dynamics.md", "docs/how-to/stationary_states.md")
"""Pages that take seconds: thousands of runs, portraits and random starts, branches."""
WITH_CODE = [
    pytest.param(name, marks=pytest.mark.slow) if name in LONG else name
    for name in NAMES
    if any(block.language != "text" for block in blocks((ROOT / name).read_text()))
]


@pytest.mark.parametrize("name", WITH_CODE)
def test_every_block_of_a_page_runs(name, tmp_path, monkeypatch):
    lay_out(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    matplotlib.use("Agg")
    known, reader = set(sys.modules), Reader()
    try:
        for block in blocks((ROOT / name).read_text()):
            reader.follow(block)
    finally:
        plt.close("all")
        for module in set(sys.modules) - known:  # those that the page made
            if (getattr(sys.modules[module], "__file__", None) or "").startswith(str(tmp_path)):
                del sys.modules[module]


def exists(word):
    """Whether what looks like a module, an object of the library or a file of a clone is one."""
    if re.fullmatch(r"meanfield(\.\w+)+", word):
        with contextlib.suppress(ImportError, AttributeError):
            pkgutil.resolve_name(word)
            return True
        return word in ENTRY_POINTS
    if re.fullmatch(r"(meanfield|solvers|validation|data|tests|docs)/[\w./-]*", word):
        return (ROOT / word).exists() or word.startswith(MADE) or "NAME" in word
    return True


@pytest.mark.parametrize("name", NAMES)
def test_links_and_images_lead_somewhere(name):
    page = ROOT / name
    labels = set().union(*map(anchors, PAGES))
    lost = []
    for target in links(page_text(page)):
        path, _, anchor = target.partition("#")
        goal = (page.parent / path).resolve() if path else page
        if not (goal.exists() or path in labels) or (anchor and goal.suffix == ".md" and anchor not in anchors(goal)):
            lost.append(target)
    assert lost == []


@pytest.mark.parametrize("name", NAMES)
def test_modules_and_files_that_a_page_names_exist(name):
    words = re.findall(r"`([^`\n]+)`", outside_code((ROOT / name).read_text()))
    assert [word for word in words if not exists(word)] == []


@pytest.mark.parametrize(
    "word", ["meanfield.nonsense", "meanfield.errors.Nonsense", "tests/nonsense.py", "docs/nonsense/"]
)
def test_a_name_of_nothing_is_noticed(word):
    assert not exists(word)


def test_blocks_that_nobody_runs_are_refused():
    for fence in ("ruby", "", "{code-cell} python", "{code-block} ruby"):
        with pytest.raises(ValueError, match="nothing is known about blocks of"):
            blocks(f"text\n\n```{fence}\n1 + 1\n```\n")
    with pytest.raises(ValueError, match="line 2: the block has no end"):
        blocks("text\n```python\n1 + 1\n")
    (inner,) = blocks(":::{note}\n```python\n1 + 1\n```\n:::\n")
    assert (inner.text, inner.begin) == ("1 + 1\n", 2)


@pytest.mark.parametrize(
    ("fence", "text", "message"),
    [
        ("sh", "curl example.org", "nothing is known about the command"),
        ("sh", "make nonsense", "no such target"),
        ("sh", "pip install 'meanfield[nonsense]'", "no such extra"),
        ("sh", "python solvers/nonsense.py", "nothing is known about the command"),
        ("sh", "python solvers/solve_density.py nonsense.toml -o x.nc", "no such problem file"),
        ("sh", "meanfield nonsense", "nothing is known about the command"),
        ("console", "$ python solvers/nonsense.py", "nothing is known about the command"),
        ("console", "$ meanfield nonsense", "nothing is known about the command"),
        ("console", "$ .venv/bin/python -m validation.nonsense", "nothing is known about the command"),
        ("toml", "[model]\nactivation = 'nonsense'", "learning_rate"),
        ("toml", "[prior]\nstrenth = 1.0", "did you mean 'strength'"),
        ("python", "assert False, 'nonsense'", "nonsense"),
    ],
)
def test_a_page_that_is_wrong_is_noticed(fence, text, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (block,) = blocks(f"```{fence}\n{text}\n```\n")
    with pytest.raises(Exception, match=message):
        Reader().follow(block)


@pytest.mark.parametrize(
    ("expected", "shown", "same"),
    [
        ("q(10) = 0.9298\n", "q(10) = 0.9300\n", True),
        ("q(10) = 0.9298\n", "q(10) = 0.9500\n", False),
        ("q(10) = 0.9298\n", "r(10) = 0.9298\n", False),
        ("mass 3.3e-14\n", "mass 1.2e-13\n", True),
        ("first\n...\nlast 1\n", "first\nsecond\nthird\nlast 1\n", True),
        ("first\n...\nlast 1\n", "second\nlast 1\n", False),
    ],
)
def test_outputs_are_compared_in_words_exactly_and_in_numbers_roughly(expected, shown, same):
    if same:
        assert_same(expected, shown)
    else:
        with pytest.raises(AssertionError, match="the page shows"):
            assert_same(expected, shown)


def test_a_link_that_leads_nowhere_is_noticed():
    text = "[a](no.md) ![b](no.png) [c](https://example.org) `[d](no)` [e](x.md#f) [g](figure_(a).png)"
    assert links(text) == ["no.md", "no.png", "x.md#f", "figure_(a).png"]
    assert not Path("no.md").exists()
