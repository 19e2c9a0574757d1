"""Provenance of results: what tells one version of the code from another."""

import meanfield
from meanfield.results.provenance import digest_of_sources


def test_a_report_of_a_fault_begins_with_versions_machine_and_folder():
    lines = meanfield.about().splitlines()
    assert lines[0].startswith(f"meanfield {meanfield.__version__}, commit ")
    assert all(name in lines[1] for name in ("python", "numpy", "numba", "xarray"))
    assert "cores" in lines[2]
    assert "meanfield-" in lines[3]


def test_a_changed_source_of_the_same_length_is_another_version_unless_it_only_shows_results(tmp_path):
    for room in ("density", "plotting"):
        (tmp_path / room).mkdir()
        (tmp_path / room / "module.py").write_text("X = 1\n")
    before = digest_of_sources(tmp_path)
    for room, changes in (("plotting", False), ("density", True)):
        (tmp_path / room / "module.py").write_text("X = 2\n")
        digest_of_sources.cache_clear()
        assert (digest_of_sources(tmp_path) != before) == changes
