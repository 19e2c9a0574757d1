"""The citation file agrees with the package and with the page that shows it."""

import re

import meanfield
from meanfield.citation.citation import references
from tests import ROOT

FILE = (ROOT / "CITATION.cff").read_text()
PAGE = " ".join((ROOT / "docs" / "citation.md").read_text().split())
ENTRIES = re.sub("[{}]", "", "".join(references().values())).replace(r"\'e", "é").replace(r"\'a", "á")


def values(key):
    """Values of a key of the file, at any depth."""
    return [value.strip("\"'") for value in re.findall(rf"^[ -]*{key}: (.+)$", FILE, re.MULTILINE)]


def test_the_version_is_that_of_the_package():
    assert values("version") == [meanfield.__version__]
    assert f"version {meanfield.__version__}" in PAGE
    assert f"## {meanfield.__version__}" in (ROOT / "docs" / "changelog.md").read_text()


def test_the_page_and_bibtex_name_every_work_with_its_authors():
    own, *works = values("title")
    assert len(works) == len(values("year")) == len(values("scope")) >= 5
    for word in (own, *works, *values("doi"), *values("value"), *values("year"), *values("family-names")):
        assert word in PAGE, word
        assert word.removeprefix("arXiv:") in ENTRIES or word == own, word


def test_the_file_has_the_keys_that_its_format_requires():
    assert {"cff-version", "message", "title", "authors"} <= set(re.findall(r"^([\w-]+):", FILE, re.MULTILINE))
