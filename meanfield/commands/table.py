"""Table of the commands of `meanfield`, as data, so that listing them imports none."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from types import ModuleType
from typing import NamedTuple


class Command(NamedTuple):
    """A module with a docstring for `--help`, `add_arguments(parser)` and `run(arguments)`, and a line about it."""

    module: str
    title: str

    def load(self) -> ModuleType:
        """Import the module of the command; it imports heavy packages no sooner than it is run."""
        return importlib.import_module(self.module)


COMMANDS: Mapping[str, Command] = {
    "validate": Command("meanfield.commands.validate", "explain a problem file in words, with the cost of each method"),
    "density": Command("meanfield.commands.density", "density of weights and features as it evolves, for any prior"),
    "order-parameters": Command("meanfield.commands.order_parameters", "overlaps from the reduced ODEs"),
    "sgd": Command("meanfield.commands.sgd", "stochastic gradient descent at finite N, in replicas over all cores"),
    "stationary": Command("meanfield.commands.stationary", "stationary states of the density, and their branches"),
    "dynamics": Command("meanfield.commands.dynamics", "fixed points of the reduced ODEs, and what each attracts"),
    "solve": Command("meanfield.commands.solve", "solve a problem of any family by a method of that family"),
    "compare": Command("meanfield.commands.compare", "compare results: a table, a report, a figure, an animation"),
    "report": Command("meanfield.commands.report", "put results on one HTML page that needs no other file"),
    "sweep": Command("meanfield.commands.sweep", "solve many problems at once, on all cores or a Dask cluster"),
    "example": Command("meanfield.commands.example", "list problem files and sweep files to begin with, or print one"),
    "completion": Command("meanfield.commands.completion", "have a shell complete commands, options and files"),
}
"""Commands by name, in the order in which a newcomer needs them."""
