"""Sweeps: many problems at once, with axes over keys of a base problem, on all cores or a cluster, resumable."""

from meanfield.sweep.definition import Sweep, format_sweep, load_sweep, parse_sweep
from meanfield.sweep.merge import describe
from meanfield.sweep.run import run_sweep

__all__ = ["Sweep", "describe", "format_sweep", "load_sweep", "parse_sweep", "run_sweep"]
