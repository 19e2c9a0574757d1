"""Covariance operators, weights of pairs and beta on real images: scikit-learn's digits in the place of CIFAR-10.

The 1797 images of 8 x 8 pixels are too few and too small for a ResNet. A dense ReLU network 64 - 128 - 24 - 16 with
normalised outputs is trained by Adam with the learning rate 0.001 on views that are shifted by a pixel, of other
intensity, and noisy: 12 batches of 128 anchors an epoch, for 100 epochs. A linear classifier of the 24 hidden nodes
stands for the linear probe: it learns from four fifths of the images and is asked about the others. Losses are compared
seed by seed: runs of one seed begin with the same weights and see the same views. The paper does not print how many
negatives the exact loss has; here it is one, and eight. Its accuracies cannot be tested here, its comparisons can.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import t as student

import meanfield
from meanfield.families.latent_tree import images
from meanfield.families.latent_tree.images.operators import draw_population, layer_operators
from meanfield.families.latent_tree.images.problem import ImageProblem
from meanfield.plotting.style import curve_style, marker_style
from meanfield.problems.problem_keys import with_value
from validation.latent_tree.digits_theory import CASES, PLAIN, PROBLEM, STRENGTHS, theory
from validation.rows import Row, measure
from validation.study import OUTPUT, Statement, Study

FOLDER = OUTPUT / "latent_tree"
HERE = Path(__file__).parent
SOURCES = [HERE / "digits.py", HERE / "digits.toml", *Path(images.__file__).parent.rglob("*.py")]
"""What kept numbers were made by: they are of no use when it has changed."""

SEEDS = range(5, 20)
EPOCHS = np.linspace(0.0, 100.0, 11)
EARLY, MIDDLE, LATE = 10.0, 30.0, 100.0
"""Epochs at which losses are compared: the paper has 100, 300 and 500 for thirty times as many images."""

ROWS: dict[str, dict[str, object]] = {
    "InfoNCE": {},
    "exact": {"loss.kind": "exact"},
    "exact, noise": {"loss.kind": "exact", "training.weight_noise": 0.01},
    "InfoNCE, H = 8": {"loss.negatives": 8},
    "exact, H = 8": {"loss.kind": "exact", "loss.negatives": 8},
    "beta = 0": {"loss.kind": "simple", "loss.temperature": 0.1},
    "beta = -0.5": {"loss.kind": "beta", "loss.beta": -0.5},
    "beta = 0.2": {"loss.kind": "beta", "loss.beta": 0.2},
    "InfoNCE, outputs f": {"network.output_normalisation": False},
}
"""Losses and training, by the keys that differ from the problem file."""


def errors_of(seeds: int) -> float:
    """Standard errors beyond which a difference is one: chance is beyond in 1 % of all cases (Student's law)."""
    return float(student.ppf(0.995, seeds - 1))


def problem_of(row: str, seed: int) -> ImageProblem:
    """Problem of a row of the tables."""
    found = PROBLEM
    for key, value in (ROWS[row] | {"network.initial.seed": seed, "particles.seed": seed}).items():
        found = with_value(found, key, value)
    return found


def trained(task: str) -> Row:
    """Accuracies of a network along training, and residues and norms of its operators where these are followed."""
    row, _, seed = task.rpartition(", seed ")
    problem = problem_of(row, int(seed))
    everywhere = with_value(problem, "particles.snapshots", tuple(problem.time.outputs_at))
    result = meanfield.solve(everywhere, "particles", workers=1)
    found: Row = {"accuracy": result["probe_accuracy"].values[0].tolist()}
    if row in OF_OPERATORS:
        population = draw_population(PROBLEM)
        each = [problem.initial_weights.like(vector) for vector in result["layer_weights"].values[0]]
        normalisation = problem.network.normalisation
        shares = [layer_operators(CASES["infonce"], normalisation, weights, population) for weights in each]
        plain = [layer_operators(CASES["simple"], PLAIN, weights, population) for weights in each]
        found["residue"] = [operators["residue"].tolist() for operators in shares]
        found["norm"] = [operators["layer_operator_norm"].tolist() for operators in plain]
    return found


def simulate(seeds: int) -> xr.Dataset:
    """Accuracies of all rows, and residues and operators along training by InfoNCE; networks that are kept stay."""
    kept, newest = FOLDER / "digits.jsonl", max(source.stat().st_mtime for source in SOURCES)
    if kept.exists() and kept.stat().st_mtime < newest:
        kept.unlink()
    chosen = range(SEEDS.start, SEEDS.start + seeds)
    networks = measure(trained, [f"{row}, seed {seed}" for row in ROWS for seed in chosen], [kept])
    along = ("run", "seed", "epoch", "layer")

    def values(name: str, rows: Iterable[str]) -> list[list[object]]:
        return [[networks[f"{row}, seed {seed}"][name] for seed in chosen] for row in rows]

    return xr.Dataset(
        {
            "sgd_accuracy": (("row", "seed", "epoch"), values("accuracy", ROWS)),
            "sgd_residue": (along, values("residue", OF_OPERATORS)),
            "sgd_norm": (along, values("norm", OF_OPERATORS)),
        },
        {"row": list(ROWS), "seed": list(chosen), "epoch": EPOCHS, "run": OF_OPERATORS, "layer": [1, 2, 3]},
    )


OF_OPERATORS = ["InfoNCE", "InfoNCE, outputs f"]
"""Rows whose operators are followed: with and without normalisation of outputs."""


def judge(numbers: xr.Dataset) -> list[Statement]:
    """Statements of the paper, judged by the digits."""
    found = _of_identities(numbers)
    return found if "sgd_accuracy" not in numbers else [*found, *_of_training(numbers), *_of_operators(numbers)]


def _of_identities(numbers: xr.Dataset) -> list[Statement]:
    exact = numbers["identity"].sel(case=["simple", "beta", "exact"])
    residue = numbers["strength_residue"]
    falls = bool((residue.diff("strength") > 0.0).all())
    ends = ", ".join(
        f"layer {int(layer)}: {float(residue.sel(layer=layer)[0]):.2g} to {float(residue.sel(layer=layer)[-1]):.2g}"
        for layer in numbers["layer"]
    )
    return [
        Statement(
            "simple, beta and exact loss: -grad L = 2 OP vec W for every layer (half of it is the paper's branch)",
            "paper, theorem 3, equation 7 and corollary 1",
            float(exact.max()) < 1e-12,
            f"relative difference {float(exact.max()):.1e} at most",
        ),
        Statement(
            "the operator of the simple loss has the eigenvalues of the centred tangent kernel of mean outputs",
            "theory, section 2",
            float(numbers["spectrum"].max()) < 1e-9,
            f"five largest of each layer, relative difference {float(numbers['spectrum'].max()):.1e} at most",
        ),
        Statement(
            "InfoNCE: the residue is a smaller part of the gradient, the weaker the views are",
            "paper, theorem 4",
            falls,
            f"share from {STRENGTHS[0]:g} to {STRENGTHS[-1]:g} of the strength: {ends}",
        ),
    ]


def _of_training(numbers: xr.Dataset) -> list[Statement]:
    def compare(first: str, second: str, epoch: float) -> np.ndarray:
        accuracy = 100.0 * numbers["sgd_accuracy"].sel(epoch=epoch)
        return (accuracy.sel(row=first) - accuracy.sel(row=second)).values

    found = [
        same(f"exact loss and InfoNCE are equally good{words}", "paper, table 2", compare(*rows, LATE))
        for rows, words in (
            (("exact", "InfoNCE"), ", one negative"),
            (("exact, H = 8", "InfoNCE, H = 8"), ", eight negatives"),
        )
    ]
    for epoch, word in ((EARLY, "early"), (LATE, "in the end")):
        text = f"exact loss: noise in the weights helps {word}"
        found.append(better(text, "paper, table 2", compare("exact, noise", "exact", epoch)))
    found.append(
        better("beta = -0.5 is better than 0 early", "paper, table 3", compare("beta = -0.5", "beta = 0", EARLY))
    )
    found.append(same("beta = -0.5 is as good as 0 late", "paper, table 3", compare("beta = -0.5", "beta = 0", LATE)))
    for epoch, word in ((EARLY, "early"), (LATE, "late")):
        text = f"beta = 0.2 is worse than 0 {word}"
        found.append(better(text, "paper, table 3", compare("beta = 0", "beta = 0.2", epoch)))
    return found


def better(text: str, source: str, difference: np.ndarray) -> Statement:
    """A claim that differences, one for each seed, are positive."""
    mean, error = _mean_and_error(difference)
    holds = None if abs(mean) < errors_of(len(difference)) * error else mean > 0.0
    return Statement(text, source, holds, f"{mean:+.1f} +- {error:.1f} points, {len(difference)} seeds")


def same(text: str, source: str, difference: np.ndarray) -> Statement:
    """A claim that differences are chance; it is undecided where chance hides more than the spread of the paper."""
    mean, error = _mean_and_error(difference)
    hidden = errors_of(len(difference)) * error
    holds = False if abs(mean) > hidden else (True if hidden < HIDDEN else None)
    return Statement(text, source, holds, f"{mean:+.1f} +- {error:.1f} points, {len(difference)} seeds")


HIDDEN = 3.0
"""Points that chance may hide where two losses are said to be equally good; the paper's rows differ by up to 1.2."""


def _mean_and_error(values: np.ndarray) -> tuple[float, float]:
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))


def _of_operators(numbers: xr.Dataset) -> list[Statement]:
    own = numbers.sel(run=OF_OPERATORS[0])
    falls = own["sgd_residue"].isel(epoch=-1) - own["sgd_residue"].isel(epoch=0)
    growth = np.log(numbers["sgd_norm"].isel(epoch=-1) / numbers["sgd_norm"].isel(epoch=0))
    found = [
        _by_layer("InfoNCE: the residue shrinks during training", "paper, section 4.1", -falls, "fall of the share"),
        Statement(
            "InfoNCE: covariance operators are the larger part of every gradient throughout, in the mean over seeds",
            "paper, section 4.1",
            bool((numbers["sgd_residue"].mean("seed") < 0.5).all()),
            ", ".join(
                f"share of the residue at most {float(numbers['sgd_residue'].sel(run=run).mean('seed').max()):.2f} in "
                f"runs of '{run}'"
                for run in OF_OPERATORS
            ),
        ),
    ]
    for run, words in zip(OF_OPERATORS, ("though outputs are normalised", "without normalisation"), strict=True):
        text = f"norms of operators grow, {words}"
        source = "paper, figures 13 and 14" if run == OF_OPERATORS[0] else "ours"
        found.append(_by_layer(text, source, growth.sel(run=run), "log of the growth"))
    return found


def _by_layer(text: str, source: str, values: xr.DataArray, what: str) -> Statement:
    """A claim that something is positive in every layer."""
    pairs = [_mean_and_error(values.sel(layer=layer).values) for layer in values["layer"]]
    errors = errors_of(values.sizes["seed"])
    if all(mean > errors * error for mean, error in pairs):
        holds: bool | None = True
    else:
        holds = False if any(mean < -errors * error for mean, error in pairs) else None
    return Statement(text, source, holds, f"{what}: " + ", ".join(f"{m:+.2f} +- {e:.2f}" for m, e in pairs))


def draw(numbers: xr.Dataset) -> Figure:
    """Accuracies, differences, residues and norms."""
    figure = Figure(figsize=(10.0, 7.6), layout="constrained")
    accuracies, differences, residue, norms = figure.subplots(2, 2).ravel()
    _draw_accuracies(numbers, accuracies)
    _draw_differences(numbers, differences)
    for panel, name, words in (
        (residue, "sgd_residue", "residue, share of the gradient"),
        (norms, "sgd_norm", r"$\Vert OP_l\Vert_F$ of the simple loss"),
    ):
        for i, run in enumerate(OF_OPERATORS):
            for j, layer in enumerate(numbers["layer"].values):
                values = numbers[name].sel(run=run, layer=layer).mean("seed")
                label = f"layer {layer}, {'normalised' if i == 0 else 'outputs f'}"
                panel.plot(numbers["epoch"], values, label=label, **curve_style(3 * i + j))
        panel.set(xlabel="epoch", ylabel=words)
        panel.set_yscale("log")
        panel.legend(fontsize="x-small", ncol=2)
    return figure


def _draw_accuracies(numbers: xr.Dataset, axes: Axes) -> None:
    for i, row in enumerate(ROWS):
        axes.plot(numbers["epoch"], numbers["sgd_accuracy"].sel(row=row).mean("seed"), label=row, **curve_style(i))
    axes.set(xlabel="epoch", ylabel="accuracy of the linear probe")
    axes.legend(fontsize="x-small", ncol=3, loc="upper center", bbox_to_anchor=(0.5, -0.16))


PAIRS = {
    "exact - InfoNCE": ("exact", "InfoNCE"),
    "the same, H = 8": ("exact, H = 8", "InfoNCE, H = 8"),
    "noise - none": ("exact, noise", "exact"),
    "beta: -0.5 - 0": ("beta = -0.5", "beta = 0"),
    "beta: 0.2 - 0": ("beta = 0.2", "beta = 0"),
}
"""Pairs of rows that are compared seed by seed."""


def _draw_differences(numbers: xr.Dataset, axes: Axes) -> None:
    errors = errors_of(numbers.sizes["seed"])
    for i, epoch in enumerate((EARLY, MIDDLE, LATE)):
        accuracy = 100.0 * numbers["sgd_accuracy"].sel(epoch=epoch)
        pairs = [
            _mean_and_error((accuracy.sel(row=first) - accuracy.sel(row=second)).values)
            for first, second in PAIRS.values()
        ]
        mean, error = np.transpose(pairs)
        places = np.arange(len(PAIRS)) + 0.2 * (i - 1)
        axes.errorbar(places, mean, errors * error, label=f"epoch {epoch:g}", **marker_style(i))
    axes.axhline(0.0, color="0.6", lw=0.8)
    axes.set(ylabel=f"difference in points, {errors:.2g} standard errors")
    axes.set_xticks(np.arange(len(PAIRS)), [words.replace(", ", ",\n") for words in PAIRS], rotation=20, fontsize=8)
    axes.legend(fontsize="x-small", loc="upper left")


STUDY = Study(theory, judge, draw, simulate, folder=FOLDER, seeds=len(SEEDS))
