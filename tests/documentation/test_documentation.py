"""Every block of code in the documentation runs, and every link, image, module and file that a page names exists."""

import contextlib
import pkgutil
import re
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import pytest

from meanfield.problems.known_families import ENTRY_POINTS
from tests import PACKAGE
from tests.documentation.outputs import assert_same
from tests.documentation.pages import PAGES, ROOT, anchors, blocks, links, outside_code, page_text
from tests.reader import Reader, lay_out

MADE = ("data/runs", "docs/_build")
"""Folders of files that runs and builds make."""

NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
LONG = (
    "docs/how-to/alpha_contrastive.md",
    "docs/how-to/averages.md",
    "docs/how-to/choose_a_tolerance.md",
    "docs/how-to/committee.md",
    "docs/how-to/compare_with_sgd.md",
    "docs/how-to/drawn_mixtures.md",
    "docs/how-to/dynamics.md",
    "docs/how-to/fit.md",
    "docs/how-to/hidden_manifold.md",
    "docs/how-to/hidden_manifold_runs.md",
    "docs/how-to/images.md",
    "docs/how-to/latent_tree.md",
    "docs/how-to/latent_tree_many_nodes.md",
    "docs/how-to/latent_tree_rest.md",
    "docs/how-to/latent_tree_ring.md",
    "docs/how-to/latent_tree_values.md",
    "docs/how-to/online_lasso.md",
    "docs/how-to/own_activation.md",
    "docs/how-to/own_family.md",
    "docs/how-to/own_prior.md",
    "docs/how-to/own_runs.md",
    "docs/how-to/real_data.md",
    "docs/how-to/resume.md",
    "docs/how-to/schedules.md",
    "docs/how-to/several_channels.md",
    "docs/how-to/spectra.md",
    "docs/how-to/starts.md",
    "docs/how-to/stationary_states.md",
    "docs/how-to/sweep.md",
    "docs/how-to/update_rules.md",
    "docs/tutorial.md",
)
"""Pages that take seconds: thousands of runs, portraits and random starts, branches, tight tolerances, whole families.

The contract of families and `tests/families/test_one_bit_ica.py` run what those on families do, tests of laws, images,
functions of users, checkpoints and sweeps what others do, and `tests/test_scripts.py` the scripts of the tutorial.
"""
WITH_CODE = [
    pytest.param(name, marks=pytest.mark.slow) if name in LONG else name
    for name in NAMES
    if any(block.language != "text" for block in blocks((ROOT / name).read_text()))
]


@pytest.mark.parametrize("name", WITH_CODE)
def test_every_block_of_a_page_runs(name, tmp_path, monkeypatch, plain_figures):
    lay_out(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    matplotlib.use("Agg")
    reader = Reader()
    try:
        for block in blocks((ROOT / name).read_text()):
            reader.follow(block)
    finally:
        plt.close("all")


def exists(word):
    """Whether what looks like a module, an object of the library or a file of a clone is one."""
    if re.fullmatch(r"meanfield(\.\w+)+", word):
        with contextlib.suppress(ImportError, AttributeError):
            pkgutil.resolve_name(word)
            return True
        return word in ENTRY_POINTS
    if re.fullmatch(r"(meanfield|solvers|validation|data|tests|docs)/[\w./-]*", word):
        folder = PACKAGE.parent if word.startswith("meanfield/") else ROOT
        return (folder / word).exists() or word.startswith(MADE) or "NAME" in word
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
        ("sh", "pip install 'meanfield-dynamics[nonsense]'", "no such extra"),
        ("sh", "pip install meanfield", "the distribution is called meanfield-dynamics"),
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
        ("q(10) = 0.9298\n", "q(10) = 0.9299\n", True),
        ("q(10) = 0.9298\n", "q(10) = 0.9300\n", False),
        ("q(10) = 0.9298\n", "r(10) = 0.9298\n", False),
        ("q(10) = 0.9298\n", "q(10) = 0.9298, 0.5\n", False),
        ("of order 5e-08\n", "of order 6e-08\n", True),
        ("of order 5e-08\n", "of order 9e-08\n", False),
        ("after 40 points\n", "after 41 points\n", False),
        ("mass 3.3e-14\n", "mass 1.2e-13\n", True),
        ("in 0.18 s, and in < 0.1 s\n", "in 2.5 s, and in 0.24 s\n", True),
        ("in 0.18 s\n", "in 6 s\n", False),
        ("in < 0.1 s\n", "in 12 s\n", False),
        ("17 kB\n", "19 kB\n", True),
        ("17 kB\n", "17 MB\n", False),
        ("first\n...\nlast 1\n", "first\nsecond 2\nthird\nlast 1\n", True),
        ("first\n...\nlast 1\n", "first\nsecond 2\nthird\nlast 2\n", False),
        ("first\n...\nlast 1\n", "second\nlast 1\n", False),
    ],
)
def test_outputs_are_compared_in_words_exactly_and_in_numbers_to_their_digits(expected, shown, same):
    if same:
        assert_same(expected, shown)
    else:
        with pytest.raises(AssertionError, match="the page shows"):
            assert_same(expected, shown)


@pytest.mark.parametrize("between", ["", "\n", "\n\n"])
def test_a_wrong_output_below_a_block_is_noticed(between):
    for printed, wrong in ((2, False), (3, True)):
        code, shown = blocks(f"```python\nprint(1 + 1)\n```\n{between}```text\n{printed}\n```\n")
        assert code.output == shown.text == f"{printed}\n"
        with pytest.raises(AssertionError, match="the page shows 3 for 2") if wrong else contextlib.nullcontext():
            Reader().follow(code)


def test_words_between_a_block_and_text_keep_them_apart():
    first, _ = blocks("```python\nprint(1 + 1)\n```\nA tree:\n```text\na -> b\n```\n")
    assert first.output is None
    second, *_ = blocks("```toml\n[prior]\nstrength = 1.0\n```\n\n```text\nstrength\n```\n")
    with pytest.raises(AssertionError, match="a block of toml prints nothing, and the page shows strength"):
        Reader().follow(second)


def test_most_blocks_that_are_run_have_their_output_beside_them():
    run = [block for page in PAGES for block in blocks(page.read_text()) if block.language in ("python", "sh")]
    assert sum(block.output is not None for block in run) > 60


def test_a_link_that_leads_nowhere_is_noticed():
    text = "[a](no.md) ![b](no.png) [c](https://example.org) `[d](no)` [e](x.md#f) [g](figure_(a).png)"
    assert links(text) == ["no.md", "no.png", "x.md#f", "figure_(a).png"]
    assert not Path("no.md").exists()
