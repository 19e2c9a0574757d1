"""What is measured of schedules and phases: a row of numbers for a flow, a density, or a pair of a limit and SGD."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

import meanfield
from meanfield.comparison import rotations
from meanfield.typing import FloatArray
from validation.in_time import cases, references
from validation.in_time.cases import Case
from validation.rows import Row

ALLOWED = 1e-8
"""Largest difference from SciPy."""

FACTOR = 1.2
"""What is larger in a wrong limit, relative to the right one."""

POWER = 1.5
"""Least effect of a change, in units of what chance allows, of which the verdict is asked."""

FIRST_PAIR = 1000
"""Seeds from here on are those of pairs, on which no flow was tried."""


class Kind(NamedTuple):
    """Problems of one kind.

    Parameters
    ----------
    title : str
    method : str
        The limit in time.
    case : callable
        Seed to a case.
    reference : callable
        Case to what SciPy finds.
    trained : tuple of str
        What a wrong limit is judged by: what training moves, and no number says by itself.
    """

    title: str
    method: str
    case: Callable[[int], Case]
    reference: Callable[[Case], FloatArray]
    trained: tuple[str, ...]
    noise: tuple[str, ...] = ()
    """Keys of numbers that the limit does not depend on: it is not solved again for them."""


LINEAR = ("prior.strength",)
"""Key under a linear prior, which leaves overlaps as they are."""

MOMENTS = ("moment_cos", "moment_sin", "G")

KINDS = {
    "one_channel": Kind("contrastive", "order_parameters", cases.one_channel, references.one_channel, ("q",), LINEAR),
    "two_channels": Kind(
        "contrastive, two channels", "order_parameters", cases.two_channels, references.two_channels, ("q", "M"), LINEAR
    ),
    "hidden_manifold": Kind(
        "hidden_manifold", "order_parameters", cases.hidden_manifold, references.hidden_manifold, ("Q", "R", "v")
    ),
    "alpha_contrastive": Kind(
        "alpha_contrastive",
        "population",
        cases.alpha_contrastive,
        references.alpha_contrastive,
        MOMENTS,
        ("training.learning_rate", "training.weight_decay"),
    ),
    "latent_tree": Kind(
        "latent_tree",
        "population",
        cases.latent_tree,
        references.latent_tree,
        ("selectivity",),
        ("training.learning_rate", "training.batch_size"),
    ),
    "update_rule": Kind("update_rule", "order_parameters", cases.update_rule, references.update_rule, ("R", "Q")),
}

WITH_PRIORS = ("one_channel", "two_channels")
"""Kinds with a linear prior, of which densities have the overlaps of the order parameters."""


def flow(i: int) -> Row:
    """Largest difference of a flow from SciPy; evenly over the kinds.

    It is NaN where a node slides along the surface on which its gate opens: the velocity jumps there from one side to
    the other, so that steps of SciPy do not end.
    """
    name, kind = list(KINDS.items())[i % len(KINDS)]
    case = kind.case(i // len(KINDS))
    found = meanfield.solve(case.problem, kind.method)
    slides = json.loads(found.attrs["provenance"]).get("slides", 0)
    away = np.nan if slides else float(np.abs(references.numbers_of(found) - kind.reference(case)).max())
    return {"flow_kind": name, "flow_phases": len(case.stops), "flow_difference": away}


def density(i: int) -> Row:
    """Difference of a density from order parameters, by the stated errors; evenly over kinds with priors."""
    kind = KINDS[name := WITH_PRIORS[i % len(WITH_PRIORS)]]
    problem = kind.case(i // len(WITH_PRIORS)).problem
    found, limit = meanfield.solve(problem, "density"), meanfield.solve(problem, kind.method)
    ratios = [np.abs(found[held] - limit[held]) / (found[f"{held}_error"] + ALLOWED) for held in kind.trained]
    return {"density_kind": name, "density_ratio": max(float(each.max()) for each in ratios)}


def changes(kind: Kind, case: Case, right: xr.Dataset, report: xr.Dataset) -> Iterator[tuple[str, float, xr.Dataset]]:
    """Keys in random order, effects of a fifth more, and limits that are wrong in what training moves.

    An effect is the largest change of the limit in units of what chance allows to its difference from the runs.
    """
    known = list(case.numbers())
    names = [name for name in kind.trained if np.isfinite(report.get(f"{name}_chance", np.nan))]
    allowed = {name: report[f"{name}_chance"] * report[f"{name}_standard_error"] for name in names}
    for place in np.random.default_rng(case.base.particles.seed).permutation(len(known)):
        phase, key = known[int(place)]
        if key in kind.noise:
            yield key, 0.0, right
            continue
        other = meanfield.solve(case.larger(phase, key, FACTOR).problem, kind.method)
        effect = max(float((np.abs(other[name] - right[name]) / allowed[name]).max()) for name in names)
        yield key, effect, right.assign({name: right[name].copy(data=other[name]) for name in kind.trained})


def pair(i: int) -> Row:
    """Verdicts on a true pair of a limit and SGD and on a wrong limit, and the changes that were tried."""
    name, kind = list(KINDS.items())[i % len(KINDS)]
    case = kind.case(FIRST_PAIR + i // len(KINDS))
    rotations.SEED = i
    runs, right = meanfield.solve(case.problem, "particles"), meanfield.solve(case.problem, kind.method)
    report = meanfield.compare(right, runs)
    told = {"pair_kind": name, "p_value": float(report["p_value"][0]), "verdict": report.attrs["verdict"]}
    changed: Row = {"changed_key": "", "changed_effect": np.nan, "changed_verdict": ""}
    tried = []
    for key, effect, wrong in changes(kind, case, right, report.isel(pair=0)):
        tried.append({"tried_kind": name, "tried_key": key, "tried_effect": effect})
        if effect >= POWER:
            verdict = meanfield.compare(wrong, runs).attrs["verdict"]
            changed = {"changed_key": key, "changed_effect": effect, "changed_verdict": verdict}
            break
    return told | changed | {"tried": tried}


def again(i: int) -> Row:
    """Verdict of a true pair with other random numbers of SGD."""
    name, kind = list(KINDS.items())[i % len(KINDS)]
    case = kind.case(seed := FIRST_PAIR + i // len(KINDS))
    rotations.SEED = 1000 + i
    problem = meanfield.with_value(case.problem, "particles.seed", 100_000 + case.base.particles.seed)
    report = meanfield.compare(meanfield.solve(problem, kind.method), meanfield.solve(problem, "particles"))
    told = {"again_p": float(report["p_value"][0]), "again_verdict": report.attrs["verdict"]}
    return {"again_kind": name, "again_seed": seed} | told


TASKS: dict[str, Callable[[int], Row]] = {"pair": pair, "again": again, "flow": flow, "density": density}


def do(task: str) -> Row:
    """Row of a task, such as `flow 7`."""
    name, number = task.split()
    return _rounded(TASKS[name](int(number)))


def _rounded(value: Any) -> Any:
    """What a row holds, with numbers of six digits, so that files of rows are small."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {key: _rounded(each) for key, each in value.items()}
    return [_rounded(each) for each in value] if isinstance(value, list) else value
