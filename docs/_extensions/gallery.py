"""The gallery: cards of examples, by family and by paper, and of studies, from their figures and docstrings."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import NamedTuple

from examples import FAMILIES, Example, paths, read
from pieces import first_sentence

ROOT = Path(__file__).parents[2]

OTHERS = {
    "contrastive/demo": "The demo",
    "contrastive/finite_size": "How SGD approaches the limit",
    "contrastive/accuracy": "Accuracy of the density",
    "contrastive/cost": "Cost of the density",
    "contrastive/verdicts": "How often verdicts are right",
    "contrastive/digits": "Hidden variables from real data",
    "contrastive/schedules": "What a schedule does",
    "own_runs/reasons": "What own runs break",
    "in_time/all_families": "Schedules and phases of all families",
    "hidden_manifold/schedules": "What a schedule leaves of an error",
    "hidden_manifold/sgd_against_theory": "SGD on a hidden manifold",
    "hidden_manifold/averaged_theory": "Inputs with a mean",
    "hidden_manifold/finite_size": "Hidden manifolds at finite N",
    "latent_tree/digits": "Contrastive losses on real images",
    "latent_tree/convolutions": "Convolutional networks on real images",
    "benchmarks/channels": "Speed of several channels",
    "benchmarks/hidden_manifold": "Speed on hidden manifolds",
}
"""Studies in validation/ with a figure of the same name beside them."""

PAGES = {
    "contrastive/cost": "cost.md",
    "contrastive/verdicts": "verdicts.md",
    "own_runs/reasons": "reasons.md",
    "in_time/all_families": "in_time.md",
    "hidden_manifold/sgd_against_theory": "hidden_manifold_sgd.md",
    "hidden_manifold/averaged_theory": "hidden_manifold_averages.md",
    "hidden_manifold/finite_size": "hidden_manifold_finite_size.md",
    "latent_tree/digits": "latent_tree_digits.md",
    "latent_tree/convolutions": "latent_tree_digits.md",
    "benchmarks/channels": "benchmarks.md",
    "benchmarks/hidden_manifold": "benchmarks.md",
}
"""Those that have a page of their own; the others are described in the gallery itself."""


class Card(NamedTuple):
    """A study in short."""

    title: str
    link: str
    image: str
    claim: str
    verdict: str = ""


def examples() -> list[str]:
    """Cards of examples by family, and their names by paper."""
    found = {path: read(path.read_text(encoding="utf-8")) for path in paths()}
    parts = []
    for family, title in FAMILIES.items():
        chosen = [example_card(path, made) for path, made in found.items() if path.parent.name == family]
        parts.append(f"## {title}\n\n{grid(chosen)}")
    lines = []
    for paper in sorted({paper for made in found.values() for paper in made.papers}):
        links = [link(path, made) for path, made in found.items() if paper in made.papers]
        lines.append(f"- {paper} {', '.join(links)}")
    return [*parts, "## Examples by paper\n\n" + "\n".join(lines)]


def link(path: Path, example: Example) -> str:
    """Link to the page of an example."""
    return f"[{example.title}](examples/{path.parent.name}/{path.name})"


def example_card(path: Path, example: Example) -> Card:
    """The card of an example: its figure, its title and what one sees."""
    place = f"examples/{path.parent.name}/{path.stem}"
    return Card(example.title, f"{place}.py", f"{place}.png", first_sentence(example.text))


def page() -> str:
    """Cards of all examples and studies, then the descriptions that have no page of their own."""
    ours = [described(name, title) for name, title in OTHERS.items() if name not in PAGES]
    figures = cards("figures.md", "errata.md")
    paper = [card for card in figures if card.title.startswith("Figure ")]
    further = [card for card in figures if card not in paper]
    channels = cards("several_channels_study.md", "errata.md")
    manifolds = cards("hidden_manifold_figures.md", "errata/bae_jeong_2024.md")
    importances = cards("alpha_contrastive_figures.md", "errata/tian_2022.md")
    trees = cards("latent_tree_figures.md", "errata/tian_2020.md")
    rules = cards("update_rule_papers.md", "errata.md")
    sparse = cards("sparse_learning.md", "errata.md")
    return "\n\n".join(
        [
            *examples(),
            f"## The figures of the paper\n\n{grid(paper)}",
            f"## Further studies\n\n{grid(further)}",
            f"## Several channels\n\n{grid(channels)}",
            f"## The figures of a paper on hidden manifolds\n\n{grid(manifolds)}",
            f"## The figures of a paper on pairs with an importance\n\n{grid(importances)}",
            f"## The figures of a paper on latent trees\n\n{grid(trees)}",
            f"## Published results from a rule\n\n{grid(rules)}",
            f"## Sparse learning\n\n{grid(sparse)}",
            f"## The software against references\n\n{grid([other_card(name) for name in OTHERS])}",
            *ours,
        ]
    )


def cards(page: str, errata: str) -> list[Card]:
    """Cards of the studies on a page of docs, whose errata are on another."""
    _, *sections = re.split(r"^## ", (ROOT / "docs" / page).read_text(), flags=re.MULTILINE)
    return [figure_card(text, page, errata) for text in sections]


def figure_card(text: str, page: str, errata: str) -> Card:
    """The card of a section of a page: its claim, and what its numbers decide."""
    title, _, body = text.partition("\n")
    claim, _, decided = body.strip().partition("![")
    image = re.search(r"\]\((.+?)\)", decided)
    assert image is not None, title
    said = re.sub(r"^(Figure|Table) \w+ of the paper: ", "", first_sentence(claim))
    said = said[0].upper() + said[1:] if said[:2].isalpha() else said
    return Card(title, f"{page}#{slug(title)}", image[1], said, verdict(decided, errata))


def verdict(decided: str, errata: str) -> str:
    """What a table of statements decides of the paper, and of the software."""
    confirmed, contradicted, undecided, holds, fails = (
        decided.count(f"| {word} |") for word in ("confirmed", "**contradicted**", "undecided", "holds", "**fails**")
    )
    of_the_paper = f"Of the paper's statements {confirmed} are confirmed"
    of_the_paper += f", {contradicted} contradicted ([errata]({errata}))." if contradicted else "."
    ours = f"Of ours {holds} hold, {fails} fail." if fails else "Ours hold."
    open_ones = f"{undecided} undecided." if undecided else ""
    parts = {of_the_paper: confirmed or contradicted, ours: holds or fails, open_ones: undecided}
    return " ".join(part for part, said in parts.items() if said)


def other_card(name: str) -> Card:
    """The card of a study that is none of the paper's figures."""
    link = PAGES.get(name, f"#{slug(OTHERS[name])}")
    return Card(OTHERS[name], link, f"../validation/{name}.png", first_sentence(docstring(name)))


def described(name: str, title: str) -> str:
    """What the script of a study says, with its figure."""
    return f"## {title}\n\n{docstring(name)}\n\n![{title}](../validation/{name}.png)"


def docstring(name: str) -> str:
    """What a script says of itself."""
    return ast.get_docstring(ast.parse((ROOT / "validation" / f"{name}.py").read_text())) or ""


def grid(cards: list[Card]) -> str:
    """Cards side by side."""
    return "\n".join(["::::{container} cards", *map(shown, cards), "::::"])


def shown(card: Card) -> str:
    """A picture that leads to the study, its title and its claim."""
    verdict = f" *{card.verdict}*" if card.verdict else ""
    picture = f"[![{card.title}]({card.image})]({card.link})"
    return f":::{{container}} card\n{picture}\n\n**[{card.title}]({card.link})**\\\n{card.claim}{verdict}\n:::"


def slug(title: str) -> str:
    """The anchor of a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
