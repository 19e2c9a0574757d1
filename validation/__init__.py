"""Studies that hold the library against papers, exact solutions, other software, faults and random files.

From the root of a clone `python -m validation contrastive.accuracy` runs one that has a figure and statements, a
`STUDY`; others run as modules, such as `python -m validation.contrastive.demo`.
"""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OUTPUT = ROOT / "data" / "runs"
"""Folder of all numbers that studies write; git does not track it."""
