"""Writes docs/benchmarks.md: the machine, its own limits, and all tables, from the files that the benchmarks wrote.

Sections whose file is not there stay as they are on the page, so that one benchmark can be measured anew.
"""

from __future__ import annotations

from meanfield.cli import DONE, run
from meanfield.results.provenance import describe_machine
from validation import ROOT
from validation.benchmarks.table import NUMBERS, saved_tables
from validation.pages import sections

PAGE = ROOT / "docs" / "benchmarks.md"
ORDER = (
    "machine", "density", "channel_density", "particles", "channels", "hidden_manifold", "alpha_contrastive",
    "latent_tree", "closures", "dynamics", "fixed_points", "stationary", "schedules", "recorder", "update_rules",
    "sweep", "first_minutes",
)  # fmt: skip

HEAD = """# Benchmarks

Written by `make bench`, which measures everything anew and keeps the numbers in data/runs/benchmarks. `ratio` is what
was measured divided by what it is held against: of a limit the fraction that is reached, of a time how many times as
long.

Machine: {machine}
"""


def section(name: str) -> str:
    """A benchmark as a section of the page; empty if it was never measured."""
    title = name.capitalize().replace("_", " ")
    if not (NUMBERS / f"{name}.json").exists():
        return sections(PAGE).get(title, "")
    about, tables = saved_tables(NUMBERS / f"{name}.json")
    summary = " ".join(about.split("\n\n")[0].split())
    return "\n\n".join([f"## {title}", summary, *(table.markdown() for table in tables)])


def main() -> int:
    """Write the page."""
    found = filter(None, map(section, ORDER))
    PAGE.write_text("\n\n".join([HEAD.format(machine=describe_machine()).rstrip(), *found]) + "\n")
    print(f"wrote {PAGE.relative_to(ROOT)}")
    return DONE


if __name__ == "__main__":
    run(main)
