"""SGD on a hidden manifold against the order parameters of the limit, case by case.

Runs of plain SGD at N = 1000 start with the overlaps of the limit, and the mean over runs at t = 20 is held against the
ODE of the case itself, and against simpler theories: one Gaussian of mean 0 and variance 1 per latent ("one Gaussian"),
which is what is left of a mixture when latents are standardised, and one Gaussian with the mixture's mean and
covariance ("matched"). Where components are drawn per latent the mixture is gone in the limit; where a whole sample has
one component, scales and means along the teacher are not. A nonlinearity that is not centred leaves all of them: it
needs an average over fields that move within single steps, which another study takes. Batches, label noise and weight
decay, also of a committee machine on plain Gaussian inputs, have theories of their own, which "plain steps" lack.

    python -m validation.hidden_manifold.sgd_against_theory --page docs/hidden_manifold_sgd.md

prints the table, writes the numbers to data/runs/hidden_manifold/sgd_against_theory.nc, and the figure beside this
module.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import meanfield
from meanfield.cli import run
from meanfield.families.hidden_manifold.problem import Problem
from meanfield.plotting import COLOURS
from meanfield.problems.file import problem_from
from validation.pages import markdown_table
from validation.publication import Publication, claim_of, verdicts
from validation.study import Statement

MOST_SIGMAS = 3.5
"""Standard errors within which SGD has to agree with the theory of its case."""

REFUSED = 5.0
"""Standard errors beyond which at least one number refuses a theory."""

NAMES = ("Q11", "Q12", "Q22", "R11", "R12", "R21", "R22", "error")

BASE: dict[str, Any] = {
    "family": "hidden_manifold",
    "inputs": {"nonlinearity": "sign", "aspect_ratio": 0.5},
    "teacher": {"overlap": [[1.0, 0.0], [0.0, 1.0]], "output_weights": [1.0, 1.0]},
    "student": {
        "output_weights": [1.0, 1.0],
        "on_teacher": [[0.3, 0.0], [0.05, 0.25]],
        "elsewhere": [[0.49, 0.0], [0.0, 0.49]],
    },
    "training": {"learning_rate": 0.2, "output_learning_rate": 0.0},
    "time": {"stop": 20.0, "outputs": 11},
}

RELU = {"teacher": {"activation": "relu"}, "student": {"activation": "relu"}}
BOTH_LAYERS = {
    "teacher": {"output_weights": [1.0, 0.8]},
    "student": {"output_weights": [0.5, 0.3]},
    "training": {"output_learning_rate": 0.2},
}
KEYS = {"training": {"batch_size": 4, "label_noise": 0.5, "weight_decay": 0.1, "learning_rate": 0.5}}
COMMITTEE = {
    "inputs": {"nonlinearity": "linear", "aspect_ratio": 1.0, "spectrum": {"law": "atoms", "eigenvalues": [1.0]}}
}
SCALES = [{"weight": 0.5, "scale": 0.4}, {"weight": 0.5, "scale": 1.35647}]


def shifted_sign(u: float) -> float:
    """Sign of u, plus 1: a nonlinearity with a mean."""
    return 2.0 if u > 0 else 0.0


def standardised(means: tuple[float, ...], weights: tuple[float, ...]) -> list[dict[str, float]]:
    """Components of variance 1 with some means, drawn per latent, shifted and scaled to mean 0 and variance 1."""
    mean, square = np.dot(weights, means), np.dot(weights, np.square(means)) + 1.0
    scale = math.sqrt(square - mean**2)
    return [
        {"weight": p, "mean": float((m - mean) / scale), "scale": 1.0 / scale}
        for p, m in zip(weights, means, strict=True)
    ]


def along(first: float, second: float, weight: float) -> list[dict[str, Any]]:
    """Two components with means along the first vector of the teacher."""
    return [{"weight": weight, "mean": [first, 0.0]}, {"weight": 1.0 - weight, "mean": [second, 0.0]}]


def matched(components: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One Gaussian with the covariance of means along the first vector, as nine components of a Gauss-Hermite rule."""
    spread = math.sqrt(sum(c["weight"] * c["mean"][0] ** 2 for c in components))
    x, weight = np.polynomial.hermite_e.hermegauss(9)
    weight /= weight.sum()
    return [{"weight": float(p), "mean": [spread * float(m), 0.0]} for m, p in zip(x, weight, strict=True)]


class Case(NamedTuple):
    """Case of the table.

    Parameters
    ----------
    title : str
    changes : dict
        What differs from `BASE` in SGD.
    theories : dict of str to dict
        What differs from `BASE` in problems whose order parameters SGD is held against, by the name of the theory.
    wrong : tuple of str
        Names of the theories that do not hold.
    """

    title: str
    changes: dict[str, Any]
    theories: dict[str, dict[str, Any]]
    wrong: tuple[str, ...] = ()


def plain(title: str, changes: dict[str, Any]) -> Case:
    """Case of one Gaussian."""
    return Case(title, changes, {"one Gaussian": changes})


def mixture(title: str, changes: dict[str, Any], components: list[dict[str, Any]], *wrong: str) -> Case:
    """Case of a mixture with one component per sample."""
    own = merged(changes, {"inputs": {"components": components}})
    theories = {"mixture": own, "one Gaussian": changes}
    if "matched" in wrong:
        theories["matched"] = merged(changes, {"inputs": {"components": matched(components)}})
    return Case(title, own, theories, wrong)


def batches(title: str, changes: dict[str, Any]) -> Case:
    """Case of one Gaussian with batches, label noise and weight decay."""
    own, faster = merged(changes, KEYS), {"training": {"learning_rate": KEYS["training"]["learning_rate"]}}
    return Case(title, own, {"one Gaussian": own, "plain steps": merged(changes, faster)}, ("plain steps",))


def per_latent(title: str, components: list[dict[str, float]]) -> Case:
    """Case of a mixture with one component per latent: one Gaussian in the limit."""
    return Case(title, {"inputs": {"components_drawn": "coordinate", "components": components}}, {"one Gaussian": {}})


def merged(*changes: dict[str, Any]) -> dict[str, Any]:
    """Tables laid over each other."""
    result: dict[str, Any] = {}
    for change in changes:
        for key, value in change.items():
            nested = isinstance(value, dict) and key in result
            result[key] = merged(result[key], value) if nested else value
    return result


def cases() -> dict[str, Case]:
    """All cases by short names."""
    erf_inputs, relu_inputs = ({"inputs": {"nonlinearity": name}} for name in ("scaled_erf", "relu"))
    tanh_inputs = {"inputs": {"nonlinearity": "tanh"}}
    one, aside = "one Gaussian", [{"weight": 0.3, "mean_elsewhere": 2.0}, {"weight": 0.7, "mean_elsewhere": 0.857}]
    first, opposite = along(2.0, -6 / 7, 0.3), along(3.0, -3.0, 0.5)
    own = f"{Path(__file__).parent.parent.name}.{Path(__file__).parent.name}.{Path(__file__).stem}:shifted_sign"
    return {
        "erf": plain("erf units, sign inputs", {}),
        "erf_both": plain("erf units and inputs, both layers", merged(erf_inputs, BOTH_LAYERS)),
        "relu_both": plain("ReLU units, tanh inputs, both layers", merged(RELU, tanh_inputs, BOTH_LAYERS)),
        "relu_inputs": plain("erf units, centred ReLU inputs", relu_inputs),
        "per_latent": per_latent("mixture per latent, means -7 and 6", standardised((-7.0, 6.0), (0.3, 0.7))),
        "aside": mixture("means aligned with nothing", {}, aside),
        "scales": mixture("scales .4 and 1.36", {}, SCALES, one),
        "scales_erf": mixture("scales, erf inputs", erf_inputs, SCALES, one),
        "scales_relu": mixture("scales, ReLU units", RELU, SCALES, one),
        "means": mixture("means 2 and -.86 along a teacher", {}, first, one),
        "opposite": mixture("means 3 and -3 along a teacher", {}, opposite, one, "matched"),
        "batches": batches("batches, noise, decay, both layers", merged(erf_inputs, BOTH_LAYERS)),
        "committee": batches("committee machine, batches, noise, decay", COMMITTEE),
        "uncentred": Case(
            "sign + 1, not centred", {"inputs": {"nonlinearity": own, "centered": False}}, {one: {}}, (one,)
        ),
    }


def problem_of(changes: dict[str, Any], particles: dict[str, Any] | None = None) -> Problem:
    """Problem with some changes of `BASE`."""
    data = merged(BASE, changes, {"particles": {"method": "plain"} | (particles or {})})
    problem: Problem = problem_from(data)
    return problem


def numbers(result: xr.Dataset) -> np.ndarray:
    """The numbers of `NAMES` at all times, shape (..., times, names)."""
    Q, R = result.Q.values, result.R.values
    columns = [Q[..., i, j] for i, j in ((0, 0), (0, 1), (1, 1))] + [R[..., i, j] for i in (0, 1) for j in (0, 1)]
    return np.stack([*columns, result.generalisation_error.values], axis=-1)


def measure(dimension: int, replicas: int, seed: int) -> xr.Dataset:
    """Means and standard errors of SGD, and the numbers of all theories."""
    chosen = cases()
    theories = sorted({name for case in chosen.values() for name in case.theories})
    shape = (len(chosen), BASE["time"]["outputs"], len(NAMES))
    mean, deviation = np.empty(shape), np.empty(shape)
    predicted = np.full((len(chosen), len(theories), *shape[1:]), np.nan)
    for i, case in enumerate(chosen.values()):
        particles = {"dimension": dimension, "replicas": replicas, "seed": seed + i, "snapshots": []}
        runs = numbers(meanfield.solve(problem_of(case.changes, particles), "particles"))
        mean[i], deviation[i] = runs.mean(axis=0), runs.std(axis=0, ddof=1) / math.sqrt(replicas)
        for name, changes in case.theories.items():
            solved = meanfield.solve(problem_of(changes), "order_parameters")
            predicted[i, theories.index(name)] = numbers(solved)
    dims = ("case", "time", "number")
    times = np.linspace(0.0, BASE["time"]["stop"], shape[1])
    long_names = {
        "mean": "mean over runs of SGD",
        "standard_error": "its standard error",
        "theory": "the same by a theory",
    }
    data = xr.Dataset(
        {
            "mean": (dims, mean),
            "standard_error": (dims, deviation),
            "theory": ((dims[0], "model", *dims[1:]), predicted),
        },
        {"case": list(chosen), "model": theories, "time": times, "number": list(NAMES)},
        {"N": dimension, "replicas": replicas},
    )
    for name, text in long_names.items():
        data[name].attrs["long_name"] = text
    return data


def away(data: xr.Dataset) -> xr.DataArray:
    """Differences of SGD and theories at the end, in standard errors."""
    end = data.isel(time=-1)
    return (end["mean"] - end.theory) / end.standard_error


def judge(data: xr.Dataset) -> list[Statement]:
    """Statements on each theory."""
    found, differences = [], away(data)
    for name, case in cases().items():
        for theory in case.theories:
            distance = np.abs(differences.sel(case=name, model=theory))
            worst = f"off by {float(distance.max()):.1f} standard errors at most ({distance.idxmax().values!s})"
            if theory in case.wrong:
                text, holds = f"{case.title}: SGD refuses the theory '{theory}'", float(distance.max()) > REFUSED
            else:
                text, holds = (
                    f"{case.title}: SGD agrees with the theory '{theory}'",
                    float(distance.max()) < MOST_SIGMAS,
                )
            mixed = case.wrong and "plain steps" not in case.wrong
            found.append(Statement(text, "theory, section 4" if mixed else "theory, section 2", holds, worst))
    return found


def table(data: xr.Dataset) -> str:
    """Values of theories, and differences of SGD with standard errors in the last digit, at the end."""
    end, rows = data.isel(time=-1), []
    shown = ("Q11", "R11", "R12", "error")
    for name, case in cases().items():
        for theory in case.theories:
            cells = []
            for number in shown:
                here = end.sel(case=name, number=number)
                value = float(here.theory.sel(model=theory))
                difference, error = float(here["mean"]) - value, float(here.standard_error)
                cells.append(f"{value:.4f}: {difference:+.4f}({round(1e4 * error)})")
            rows.append([case.title, theory, *cells, "refused" if theory in case.wrong else "agrees"])
    return markdown_table(["SGD", "theory", *shown, "expected"], rows)


def draw(data: xr.Dataset) -> Figure:
    """Differences in standard errors, a row for each case, and a panel for each of four numbers."""
    shown, chosen = ("Q11", "R11", "R12", "error"), cases()
    figure, axes = plt.subplots(1, len(shown), sharey=True, figsize=(11.5, 4.6), layout="constrained")
    differences, colour = away(data), dict(zip(data.model.values.tolist(), COLOURS[1:], strict=False))
    colour |= {"one Gaussian": COLOURS[0], "mixture": COLOURS[2]}
    marker = {"one Gaussian": "o", "mixture": "s", "matched": "^", "plain steps": "v"}
    rows = np.arange(len(chosen))[::-1]
    for axis, number in zip(axes, shown, strict=True):
        axis.axvspan(-MOST_SIGMAS, MOST_SIGMAS, color="0.9")
        for theory in data.model.values.tolist():
            values = differences.sel(model=theory, number=number).values
            style = {"color": colour[theory], "marker": marker[theory], "linestyle": "none", "fillstyle": "none"}
            axis.plot(values, rows, label=theory, **style)
        axis.set_xscale("symlog", linthresh=5.0)
        axis.set_xticks([-100, -10, 0, 10, 100], ["-100", "-10", "0", "10", "100"])
        axis.set_title(
            {"Q11": "$Q_{11}$", "R11": "$R_{11}$", "R12": "$R_{12}$", "error": "generalisation error"}[number]
        )
        axis.grid(axis="y", color="0.9")
    axes[0].set_yticks(rows, [case.title for case in chosen.values()])
    figure.supxlabel(f"SGD - theory at t = 20, in standard errors of SGD; grey: up to {MOST_SIGMAS}")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=4, frameon=False)
    return figure


def page(data: xr.Dataset, statements: list[Statement]) -> str:
    """The page of the site."""
    return f"""# SGD on a hidden manifold

Written by `python -m validation.hidden_manifold.sgd_against_theory --page docs/hidden_manifold_sgd.md`.

{claim_of(Path(__file__))}

![SGD against theories](../validation/hidden_manifold/sgd_against_theory.png)

Of {data.attrs["replicas"]} runs at N = {data.attrs["N"]}, at t = 20: the value of the theory, and SGD - theory with its
standard error in units of the last digit. Means over runs are off by O(1/N) besides.

{table(data)}

{verdicts(statements)}
"""


PUBLICATION = Publication(Path(__file__), "SGD on a hidden manifold against theories", draw, table, page)


def main() -> int:
    """Run, judge, print; write numbers, figure and page."""
    return PUBLICATION.measured(measure, judge, dimension=1000)


if __name__ == "__main__":
    run(main)
