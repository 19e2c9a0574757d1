"""Entries of the table of contents for pages that studies write, and for notebooks."""

from __future__ import annotations

from pathlib import Path

DOCS = Path(__file__).parents[1]
STUDIES = (
    "figures",
    "several_channels_study",
    "hidden_manifold_figures",
    "alpha_contrastive_figures",
    "hidden_manifold_sgd",
    "hidden_manifold_averages",
    "hidden_manifold_finite_size",
    "latent_tree_digits",
    "latent_tree_figures",
    "in_time",
    "update_rule_papers",
    "sparse_learning",
    "verdicts",
    "reasons",
    "cost",
    "predictions",
    "benchmarks",
    "regimes",
    "faults",
    "fuzzing",
)
"""Pages written by `make figures`, `make cost`, and so on."""


def page() -> str:
    """Entries for all notebooks, and for all pages that exist."""
    notebooks = [f"notebooks/{path.stem}" for path in sorted((DOCS / "notebooks").glob("*.ipynb"))]
    studies = ["gallery", *(name for name in STUDIES if (DOCS / f"{name}.md").exists())]
    return "\n\n".join([*([toctree("Notebooks", notebooks)] if notebooks else []), toctree("Studies", studies)])


def toctree(caption: str, names: list[str]) -> str:
    """Entries under a caption."""
    return "\n".join(["```{toctree}", ":hidden:", f":caption: {caption}", "", *names, "```"])
