"""Make the pictures of the pages again, by the code that stands on the pages.

`first.png` of `tutorial.md` becomes `tutorial_first.png` here, and so on. In the root of a clone, after `make test`:
PYTHONPATH=. .venv/bin/python docs/images/make.py
"""

import os
import re
import tempfile
from pathlib import Path

import matplotlib as mpl
from PIL import Image

from tests.documentation.pages import PAGES, ROOT, blocks
from tests.reader import Reader, lay_out

HERE = Path(__file__).resolve().parent

COLOURS = 128
"""Figures have few, and files are a third as large for it."""


def make(page: Path, names: set[str]) -> None:
    """Follow a page in an empty folder, and keep its pictures."""
    with tempfile.TemporaryDirectory() as folder:
        lay_out(Path(folder))
        os.chdir(folder)
        reader = Reader()
        for block in blocks(page.read_text()):
            reader.follow(block)
        for name in sorted(names):
            picture = Image.open(name.removeprefix(f"{page.stem}_")).convert("RGB").quantize(COLOURS)
            picture.save(HERE / name, optimize=True)
            print(f"{name}: {(HERE / name).stat().st_size // 1000} kB")
        os.chdir(ROOT)


def main() -> None:
    """All pages that show pictures of this folder."""
    mpl.use("Agg")
    for page in PAGES:
        names = set(re.findall(r"images/(\w+\.png)\)", page.read_text()))
        if names:
            make(page, names)


if __name__ == "__main__":
    main()
