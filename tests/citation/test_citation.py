"""Literature behind results: entries that exist, conditions that are keys, and what a result of each family cites."""

import json
import re

import pytest
import xarray as xr

import meanfield
from meanfield.citation.citation import SOFTWARE, references
from meanfield.problems.examples import example_files
from meanfield.problems.file import format_problem
from meanfield.problems.known_families import families, family_of, find_family

EXAMPLES = example_files() | {"update_rule": find_family("update_rule").example_path}


def keys(text):
    return re.findall(r"^@\w+\{(\w+),$", text, flags=re.MULTILINE)


def test_entries_are_bibtex_and_none_is_forgotten():
    known = references()
    assert keys("\n".join(known.values())) == sorted(known)
    for entry in known.values():
        assert entry.count("{") == entry.count("}")
        assert {"author", "title", "year"} <= set(re.findall(r"^  (\w+) = \{.+\},$", entry, flags=re.MULTILINE))
    declared = {key for family in families() for entries in family.cites.values() for key in entries}
    assert declared | set(SOFTWARE) == set(known)


def result_of(problem, **provenance):
    """What citations read of a result: its attributes."""
    made = {"created": "2031-05-06T07:08:09+00:00", "versions": {"meanfield": "9.8.7"}, "commit": "abc"} | provenance
    attrs = {"method": "particles", "schema_version": 1, "family": family_of(problem).name}
    return xr.Dataset(attrs=attrs | {"problem": format_problem(problem), "provenance": json.dumps(made)})


@pytest.mark.parametrize(
    ("example", "values", "provenance", "cited"),
    [
        ("no_prior", {}, {}, ["meng_wang_2024"]),
        ("no_prior", {}, {"backend": "fipy"}, ["meng_wang_2024", "fipy"]),
        ("no_prior", {}, {"backend": "numba"}, ["meng_wang_2024"]),
        ("committee_machine", {}, {}, ["goldt_2020", "saad_solla_1995"]),
        ("hidden_manifold", {}, {}, ["goldt_2020", "bae_jeong_2024"]),
        ("latent_tree", {}, {}, ["tian_2020"]),
        ("update_rule", {"model.rule": "adatron"}, {}, ["wang_mattingly_lu_2017", "mace_coolen_1998"]),
        ("update_rule", {"model.rule": "ica"}, {}, ["wang_mattingly_lu_2017", "wang_lu_2017"]),
    ],
)
def test_a_result_cites_what_it_rests_on(example, values, provenance, cited):
    problem = meanfield.with_values(meanfield.load_problem(EXAMPLES[example]), values)
    text = meanfield.cite(result_of(problem, **provenance))
    assert keys(text) == [*cited, *SOFTWARE, "meanfield"]
    assert {"  version = {9.8.7},", "  year = {2031},", "  note = {commit abc},"} <= set(text.splitlines())


def test_several_results_cite_each_entry_once():
    result = result_of(meanfield.load_problem(EXAMPLES["no_prior"]))
    assert meanfield.cite(result, result) == meanfield.cite(result)


def test_nothing_to_cite_is_said():
    with pytest.raises(meanfield.InputError, match=r"no result to cite; give one or more"):
        meanfield.cite()
    with pytest.raises(meanfield.InputError, match=r"call meanfield\.load\('run\.nc'\) first"):
        meanfield.cite("run.nc")
