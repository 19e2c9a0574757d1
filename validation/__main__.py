"""Run a study or a benchmark: `python -m validation contrastive.accuracy`; --help behind it says what it claims."""

import sys
from argparse import ArgumentParser
from importlib import import_module
from importlib.util import find_spec

from validation.benchmarks.table import run_benchmark
from validation.study import Study, run_study

if __name__ == "__main__":
    command = ArgumentParser(prog="python -m validation", description=__doc__)
    command.add_argument("name", metavar="NAME", help="a module with a STUDY, or one of benchmarks with tables")
    name = f"validation.{command.parse_args(sys.argv[1:2]).name}"
    module = import_module(name) if find_spec(name.rpartition(".")[0]) and find_spec(name) else None
    if module is not None and isinstance(getattr(module, "STUDY", None), Study):
        run_study(module, sys.argv[2:])
    elif module is not None and module.__package__ == "validation.benchmarks" and hasattr(module, "tables"):
        run_benchmark(module, sys.argv[2:])
    else:
        command.error(f"{name} is no study and no benchmark; give one, such as contrastive.figures.figure_2a")
