"""Run a study: `python -m validation update_rule.papers.soft_committee`; with --help behind it, say what it claims."""

import sys
from argparse import ArgumentParser
from importlib import import_module
from importlib.util import find_spec

from validation.study import Study, run_study

if __name__ == "__main__":
    command = ArgumentParser(prog="python -m validation", description=__doc__)
    command.add_argument("study", metavar="STUDY", help="a module with a STUDY, such as contrastive.figures.figure_2a")
    name = f"validation.{command.parse_args(sys.argv[1:2]).study}"
    package = name.rpartition(".")[0]
    module = import_module(name) if find_spec(package) and find_spec(name) else None
    if module is None or not isinstance(getattr(module, "STUDY", None), Study):
        command.error(f"{name} is no study; give a module with a STUDY, such as contrastive.figures.figure_2a")
    run_study(module, sys.argv[2:])
