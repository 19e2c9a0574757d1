"""Run all notebooks and store them with their outputs, small: `make notebooks`."""

from __future__ import annotations

import base64
import io
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from PIL import Image

FOLDER = Path(__file__).parent
STYLE = (
    "from matplotlib_inline.backend_inline import set_matplotlib_formats\n"
    "set_matplotlib_formats('png', dpi=60, metadata={'Software': None})"
)
"""First thing that a kernel runs: figures of a page, not of a poster."""

COLOURS = 128
"""Figures have few, and files are a third as large for it."""


def run(path: Path) -> None:
    """Run a notebook from beginning to end, and store what it shows."""
    notebook = nbformat.read(path, as_version=4)
    notebook.cells.insert(0, nbformat.v4.new_code_cell(STYLE))
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(FOLDER)}}).execute()
    del notebook.cells[0]
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    for cell in notebook.cells:
        cell.metadata = {}
        if cell.cell_type == "code":
            cell.execution_count = None
            cell.outputs = [plain(output) for output in cell.outputs if output.get("name") != "stderr"]
    nbformat.write(notebook, path)
    print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")


def plain(output: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Output without counts and metadata, its figure in few colours."""
    if "data" in output:
        output.metadata = {}
        output.data = {kind: smaller(text) if kind == "image/png" else text for kind, text in output.data.items()}
    if "execution_count" in output:
        output.execution_count = None
    return output


def smaller(figure: str) -> str:
    """Figure in few colours; both are PNG in base 64."""
    picture, small = Image.open(io.BytesIO(base64.b64decode(figure))), io.BytesIO()
    picture.convert("RGB").quantize(COLOURS).save(small, format="PNG", optimize=True)
    return base64.b64encode(small.getvalue()).decode()


if __name__ == "__main__":
    for each in sorted(FOLDER.glob("*.ipynb")):
        run(each)
