"""Pairs of methods whose verdicts `validation.verdicts` measures: order parameters of random rules against SGD."""

from __future__ import annotations

from functools import partial

from validation.update_rule import changed_rules
from validation.update_rule.random_rules import TABLES, problem_of
from validation.verdicts import Pair, Study

STUDY = Study(
    "Order parameters are judged by R, Q and observables at once, with runs of the chain of overlaps, which is "
    "exactly SGD in law, at N = 4,000. Rules have random coefficients, starts, and batches of one to three samples.",
    {rule: Pair("order_parameters", partial(problem_of, rule, dimension=4000)) for rule in TABLES},
    changed_rules.measure,
)
