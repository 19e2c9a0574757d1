"""Whether verdicts find a rule that is not the one of SGD: one sign, one factor or the prior is another.

`python -m validation.update_rule.changed_rules` measures it and writes it below the table in docs/verdicts.md.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import xarray as xr

import meanfield
from meanfield.cli import DONE, FAILED, run
from meanfield.comparison import rotations
from meanfield.problems.variable import DIFFERS
from validation.update_rule.random_rules import problem_of
from validation.verdicts import sections, write_section

RULES = ("smooth", "kinked", "noisy", "signal")
EACH, DIMENSION, REPLICAS, FIRST_SEED = 25, 2000, 16, 6000

SOUGHT = 0.95
"""Share that verdicts should find of changed rules whose effect is above chance."""

CHANCE = 4.0
"""Standard errors of the mean of the runs below which a difference may be chance: verdicts on these problems allow 3.5
to 4."""

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
    """

    rule: str
    change: str
    right: bool
    wrong: bool
    effect: float


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


def trial(rule: str, seed: int) -> Changed:
    """One changed rule against SGD of the rule itself."""
    rotations.SEED = seed
    settings = {"order_parameters.tolerance": 1e-4, "particles.replicas": REPLICAS, "particles.seed": seed}
    problem = meanfield.with_values(problem_of(rule, seed, DIMENSION), settings)
    kind, keys = change_of(rule, problem, np.random.default_rng([RULES.index(rule), seed]))
    runs = meanfield.simulate_sgd(problem, workers=1)
    right = meanfield.solve_order_parameters(problem)
    # As if it were a prediction for the problem itself: what attributes say of it is the problem of SGD.
    wrong = meanfield.solve_order_parameters(meanfield.with_values(problem, keys)).assign_attrs(right.attrs)
    verdicts = [meanfield.compare(each, runs).attrs["verdict"] == DIFFERS for each in (right, wrong)]
    return Changed(rule, kind, *verdicts, effect_of(right, wrong, runs))


def effect_of(right: xr.Dataset, wrong: xr.Dataset, runs: xr.Dataset) -> float:
    """Largest difference of two predictions in standard errors of the mean of runs, where these scatter."""
    largest = 0.0
    for name in ("R", "Q", "observables"):
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
    missed = [each for each in found if not each.wrong]
    small = [each for each in found if each.effect < CHANCE]
    same = sum(each.effect < 1e-6 for each in small)
    told = sum(each.wrong for each in found if each.effect >= CHANCE)
    said = (
        ", ".join(f"{each.rule}, {each.change}: {each.effect:.1f}" for each in missed if each.effect >= 1e-6) or "none"
    )
    return (
        f"*Another rule.* Of {len(found)} predictions whose rule has one coefficient of the other sign, or "
        f"{FACTORS[0]} or {FACTORS[1]} times as large, or an l2 prior that is stronger by {STRONGER}, "
        f"**{sum(each.wrong for each in found)}** differ from {REPLICAS} runs of SGD at N = {DIMENSION:,}: "
        f"{', '.join(kinds)}. {len(small)} change nothing by more than {CHANCE:g} standard errors of the mean of the "
        f"runs, which is chance, {same} of them nothing at all, as label noise of the other sign has the same law; of "
        f"the other {len(found) - len(small)} differ {told}. Not found are besides, with the effect in "
        f"standard errors: {said}. Of the predictions of the rules themselves {sum(each.right for each in found)} "
        "differ."
    )


def measure() -> tuple[bool, list[str]]:
    """Whether enough changes are found, and what the page says of them."""
    found = []
    for seed in range(FIRST_SEED, FIRST_SEED + EACH):
        for rule in RULES:
            found.append(trial(rule, seed))
            print(*found[-1], sep="; ", flush=True)
    told = [each.wrong for each in found if each.effect >= CHANCE]
    return sum(told) >= SOUGHT * len(told), [sentences(found)]


def main() -> int:
    """Measure, and write it below the table of the family."""
    right, paragraphs = measure()
    before, table, _ = sections()["update_rule"].rpartition("|")
    write_section("update_rule", [f"{before}{table}".partition("\n\n")[2], *paragraphs])
    return DONE if right else FAILED


if __name__ == "__main__":
    run(main)
