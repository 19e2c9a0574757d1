"""Pages of the documentation as their readers see them: blocks of code, links and headings."""

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from pathlib import Path

from tests import ROOT

PAGES = [
    page
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    if not {"_build", "generated"} & set(page.relative_to(ROOT).parts)
]

FENCE = re.compile(r" *(`{3,}|~{3,}|:{3,})(.*)")
CODE = ("python", "sh", "toml", "text", "console")
PROSE = ("note", "tip", "warning", "important", "seealso", "admonition", "dropdown", "container")
"""Directives with Markdown inside."""
DRAWN = ("math", "toctree", "eval-rst", "figure", "image")
"""Directives without code of ours."""


@dataclass(frozen=True)
class Block:
    """A block of code with the lines on which it begins and ends, and the output that the page shows below it."""

    language: str
    text: str
    begin: int
    end: int
    caption: str | None = None
    output: str | None = None


def blocks(text: str) -> list[Block]:
    """All blocks of code on a page.

    Raises
    ------
    ValueError
        If there is a block of which nothing is known: what is not run must not look as if it were.
    """
    lines = text.splitlines()
    found = list(_blocks(lines, 0, len(lines)))
    for index, (block, after) in enumerate(pairwise(found)):
        between = lines[block.end + 1 : after.begin - 1]  # between the two fences
        if after.language == "text" and block.language != "text" and not "".join(between).strip():
            found[index] = replace(block, output=after.text)
    return found


def _blocks(lines: list[str], begin: int, end: int) -> Iterator[Block]:
    """Blocks between two lines."""
    at = begin
    while at < end:
        fence = FENCE.fullmatch(lines[at])
        at += 1
        if fence is None:
            continue
        marks, said = fence[1], fence[2].strip()
        close = next(line for line in range(at, end + 1) if line == end or re.fullmatch(f" *{marks} *", lines[line]))
        if close == end:
            raise ValueError(f"line {at}: the block has no end")
        yield from _block(said, lines, at, close)
        at = close + 1


def _block(said: str, lines: list[str], begin: int, end: int) -> Iterator[Block]:
    """What a fenced block holds."""
    name, language, caption = said, said, None
    if named := re.fullmatch(r"(\w+) +(\S+\.\w+)", said):  # "toml first.toml", where no directives are known
        language, caption = named.groups()
    if directive := re.fullmatch(r"\{([\w:-]+)\}\s*(.*)", said):
        name, language = directive.groups()
    if directive and name in PROSE:
        yield from _blocks(lines, begin, end)
    elif directive and name in DRAWN:
        return
    elif (directive and name != "code-block") or language not in CODE:
        raise ValueError(f"line {begin}: nothing is known about blocks of '{said}'")
    else:
        inside, options = lines[begin:end], {}
        while directive and inside and (option := re.fullmatch(r":(\w+): *(.*)", inside[0])):
            options[option[1]] = option[2]
            inside = inside[1:]
        code = "\n".join(inside).strip("\n") + "\n"
        yield Block(language, code, begin, end, options.get("caption", caption))


def outside_code(text: str) -> str:
    """A page without its blocks of code."""
    lines = text.splitlines()
    for block in blocks(text):
        lines[block.begin : block.end] = [""] * (block.end - block.begin)
    return "\n".join(lines)


def links(text: str) -> list[str]:
    """Targets of all links and images on a page that are no addresses on the web."""
    words = re.sub(r"`[^`\n]+`", "``", outside_code(text))
    found = re.findall(r"\]\(<?([^()\s>]*(?:\([^()\s]*\))?[^()\s>]*)>?(?: +\"[^\"]*\")?\)", words)
    return [target for target in found if not re.match(r"[a-z]+:", target)]


@cache
def page_text(page: Path) -> str:
    """A page with what is generated for it."""
    if (folder := str(ROOT / "docs" / "_extensions")) not in sys.path:
        sys.path.append(folder)
    from generated import filled

    return filled(page.read_text())


@cache
def anchors(page: Path) -> set[str]:
    """Where links into a page can lead: its headings, and names of its own."""
    text = page_text(page)
    headings = re.findall(r"^#+ +(.+?) *$", outside_code(text).replace("`", ""), re.MULTILINE)
    return {slug(heading) for heading in headings} | set(re.findall(r"^\(([\w-]+)\)=$", text, re.MULTILINE))


def slug(heading: str) -> str:
    """The anchor of a heading."""
    words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("\\", "").lower()
    return re.sub(r"[^\w\- ]", "", words).strip().replace(" ", "-")
