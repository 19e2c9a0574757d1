"""Studies that hold the library against papers, exact solutions, other software, faults and random files.

From the root of a clone `python -m validation contrastive.accuracy` runs one that has a figure and statements, a
`STUDY`; others run as modules, such as `python -m validation.contrastive.demo`.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OUTPUT = ROOT / "data" / "runs"
"""Folder of all numbers that studies write; git does not track it."""

if sys.argv[0] == "-m" and "-m" in sys.orig_argv:  # Python looks for the module that it is about to start
    name = sys.orig_argv[sys.orig_argv.index("-m") + 1]
    path = ROOT.joinpath(*name.split(".")).with_suffix(".py")
    if path.is_file() and "__main__" not in path.read_text(encoding="utf-8"):
        sys.exit(f"{name} does nothing by itself; give: python -m validation {name.removeprefix('validation.')}")
