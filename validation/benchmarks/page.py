"""Writes docs/benchmarks.md: the machine, its own limits, and all tables, from the files that the benchmarks wrote."""

from __future__ import annotations

from meanfield.cli import DONE, run
from meanfield.results.provenance import describe_machine
from validation import ROOT
from validation.benchmarks.table import NUMBERS, saved_tables

PAGE = ROOT / "docs" / "benchmarks.md"
ORDER = (
    "machine", "density", "channel_density", "particles", "channels", "hidden_manifold", "alpha_contrastive",
    "latent_tree", "closures", "dynamics", "fixed_points", "stationary", "schedules", "update_rules", "sweep",
    "first_minutes",
)  # fmt: skip

HEAD = """# Benchmarks

Written by `make bench`, which measures everything anew and keeps the numbers in data/runs/benchmarks. `ratio` is what
was measured divided by what it is held against: of a limit the fraction that is reached, of a time how many times as
long.

Machine: {machine}
"""


def section(name: str) -> str:
    """A benchmark on the page."""
    about, tables = saved_tables(NUMBERS / f"{name}.json")
    summary = " ".join(about.split("\n\n")[0].split())
    title = name.capitalize().replace("_", " ")
    return "\n\n".join([f"## {title}", summary, *(table.markdown() for table in tables)]) + "\n"


def main() -> int:
    """Write the page."""
    PAGE.write_text("\n".join([HEAD.format(machine=describe_machine()), *map(section, ORDER)]))
    print(f"wrote {PAGE.relative_to(ROOT)}")
    return DONE


if __name__ == "__main__":
    run(main)
