"""Whether verdicts find a rule that is not the one of SGD: one sign, one factor or the prior is another.

Changes that leave the limit as it is, such as label noise of the other sign, are no changes of the law and are drawn
anew; predictions alone decide that, and no run of SGD. `python -m validation.update_rule.changed_rules` measures it and
writes it below the table in docs/verdicts.md.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

import meanfield
from meanfield.cli import DONE, FAILED, run
from meanfield.comparison import rotations
from meanfield.problems.variable import DIFFERS
from validation.pages import sections
from validation.update_rule.random_rules import problem_of
from validation.verdicts import PAGE, write_section

RULES = ("smooth", "kinked", "noisy", "signal")
EACH, DIMENSION, REPLICAS, FIRST_SEED = 25, 2000, 64, 8000

SOUGHT = 0.95
"""Share that verdicts should find of changed rules."""

MEASURED = ("R", "Q", "observables")

FACTORS, STRONGER = (0.9, 1.1), 0.05


class Changed(NamedTuple):
    """A pair whose prediction has another rule.

    Parameters
    ----------
    rule, change : str
        What it is, in words.
    right, wrong : bool
        Whether the prediction of SGD's own rule differs, and that of the changed one.
    effect : float
        Largest difference of both predictions in standard errors of the mean of the runs.
    alike : int
        Number of changes that were drawn before and left the limit as it is.
    """

    rule: str
    change: str
    right: bool
    wrong: bool
    effect: float
    alike: int


def change_of(rule: str, problem: Any, rng: np.random.Generator) -> tuple[str, dict[str, Any]]:
    """A change of a problem in words, and the keys that it sets; a linear prior does nothing on the sphere."""
    numbers = problem.model.rule_parameters
    kind = str(rng.choice(["sign", "factor"] if rule == "signal" else ["sign", "factor", "prior"]))
    if kind == "prior":
        strength = problem.prior.strength if problem.prior.name == "l2" else 0.0
        return kind, {"prior": {"name": "l2", "strength": strength + STRONGER}}
    name = str(rng.choice([each for each in numbers if each != "rate" or kind == "factor"]))
    factor = -1.0 if kind == "sign" else float(rng.choice(FACTORS))
    return kind, {f"model.rule_parameters.{name}": factor * float(numbers[name])}


def trial(seed: int, rule: str) -> Changed:
    """One changed rule against SGD of the rule itself."""
    rotations.SEED = seed
    settings = {"order_parameters.tolerance": 1e-4, "particles.replicas": REPLICAS, "particles.seed": seed}
    problem = meanfield.with_values(problem_of(rule, seed, DIMENSION), settings)
    rng, right, alike = np.random.default_rng([RULES.index(rule), seed]), meanfield.solve_order_parameters(problem), 0
    while True:
        kind, keys = change_of(rule, problem, rng)
        wrong = meanfield.solve_order_parameters(meanfield.with_values(problem, keys))
        if is_another(right, wrong):
            break
        alike += 1
    runs = meanfield.simulate_sgd(problem, workers=1)
    # As if it were a prediction for the problem itself: what attributes say of it is the problem of SGD.
    pair = right, wrong.assign_attrs(right.attrs)
    verdicts = [meanfield.compare(each, runs).attrs["verdict"] == DIFFERS for each in pair]
    found = Changed(rule, kind, *verdicts, effect_of(right, wrong, runs), alike)
    print(*found, sep="; ", flush=True)
    return found


def is_another(right: xr.Dataset, wrong: xr.Dataset) -> bool:
    """Whether two predictions differ anywhere by more than their stated errors."""
    return any(
        bool((abs(wrong[name] - right[name]) > right[f"{name}_error"] + wrong[f"{name}_error"]).any())
        for name in MEASURED
        if name in right
    )


def effect_of(right: xr.Dataset, wrong: xr.Dataset, runs: xr.Dataset) -> float:
    """Largest difference of two predictions in standard errors of the mean of runs, where these scatter."""
    largest = 0.0
    for name in MEASURED:
        if name in runs:
            spread = runs[name].std("replica", ddof=1) / np.sqrt(REPLICAS)
            largest = max(largest, float((abs(wrong[name] - right[name]) / spread.where(spread > 1e-9)).max()))
    return largest


def sentences(found: list[Changed]) -> str:
    """What was found, for the page."""
    kinds = []
    for kind in ("sign", "factor", "prior"):
        those = [each for each in found if each.change == kind]
        kinds.append(f"{sum(each.wrong for each in those)} of {len(those)} with another {kind}")
    missed = ", ".join(f"{each.rule}, {each.change}: {each.effect:.1f}" for each in found if not each.wrong) or "none"
    alike = sum(each.alike for each in found)
    return (
        f"*Another rule.* Of {len(found)} predictions whose rule has one coefficient of the other sign, or "
        f"{FACTORS[0]} or {FACTORS[1]} times as large, or an l2 prior that is stronger by {STRONGER}, "
        f"**{sum(each.wrong for each in found)}** differ from {REPLICAS} runs of SGD at N = {DIMENSION:,}: "
        f"{', '.join(kinds)}. Not found are, with the effect in standard errors of the mean of the runs: {missed}. "
        f"{len(found) + alike} changes were drawn; {alike} of them change the limit by less than its stated error, as "
        "label noise of the other sign has the same law, and count for nothing. Of the predictions of the rules "
        f"themselves {sum(each.right for each in found)} differ."
    )


def measure() -> tuple[bool, list[str]]:
    """Whether enough changes are found, and what the page says of them."""
    with ProcessPoolExecutor() as pool:
        found = list(pool.map(trial, *zip(*product(range(FIRST_SEED, FIRST_SEED + EACH), RULES), strict=True)))
    return sum(each.wrong for each in found) >= SOUGHT * len(found), [sentences(found)]


def main() -> int:
    """Measure, and write it below the table of the family."""
    right, paragraphs = measure()
    before, table, _ = sections(PAGE)["update_rule"].rpartition("|")
    write_section("update_rule", [f"{before}{table}".partition("\n\n")[2], *paragraphs])
    return DONE if right else FAILED


if __name__ == "__main__":
    run(main)
