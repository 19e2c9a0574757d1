"""Tables 2 and 3 in kind: a residual network with a projector, InfoNCE of whole batches, exact weights, and beta.

The network has a first convolution, two stages of one residual block with 16 and 32 channels, batch normalisation, and
a projector of 32 and 16 nodes. Adam trains it with the learning rate 0.003 on scikit-learn's digits, 128 anchors a
batch, 12 batches an epoch, for 20 epochs. A linear classifier of the 32 features below the projector learns from images
without augmentation, four fifths of all, and is asked about the others. InfoNCE is `nt_xent`, beta as the public code
has it: beta r+/tau is added to that loss, and the sum divided by 1 + beta, so that it is the row beta = 0. How many
negatives the exact loss of the paper has is not printed; here it is two, and InfoNCE with two is beside it. Rows are
compared seed by seed: runs of one seed begin with the same weights. The paper has five seeds, too.
"""

from __future__ import annotations

from argparse import ArgumentParser, RawDescriptionHelpFormatter
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from scipy.stats import t as student

import meanfield
from meanfield.cli import DONE, run
from meanfield.errors import InputError
from meanfield.families.latent_tree.images.problem import ImageProblem
from meanfield.families.latent_tree.images.replicas import has_probe
from meanfield.plotting.style import curve_style
from meanfield.problems.file import format_problem
from meanfield.results.figure_files import save_figure
from meanfield.results.files import save
from validation.pages import markdown_table
from validation.study import OUTPUT, Statement, Study

FOLDER = OUTPUT / "latent_tree"

DIGITS = Path(__file__).with_suffix(".toml")

SEEDS = 5

ROWS: dict[str, dict[str, object]] = {
    "InfoNCE": {},
    "beta = -0.5": {"loss.beta": -0.5},
    "beta = 0.2": {"loss.beta": 0.2},
    "InfoNCE, H = 2": {"loss.kind": "infonce", "loss.negatives": 2},
    "exact, H = 2": {"loss.kind": "exact", "loss.negatives": 2},
    "exact, noise": {"loss.kind": "exact", "loss.negatives": 2, "training.weight_noise": 0.01},
}
"""Losses and training, by the keys that differ from the problem file."""

PRINTED = {
    "InfoNCE": (84.20, 87.57, 87.81),
    "beta = -0.5": (85.17, 88.00, 88.14),
    "beta = 0.2": (82.87, 87.16, 87.29),
    "exact, H = 2": (83.84, 87.49, 87.65),
    "exact, noise": (84.04, 88.23, 88.82),
}
"""Accuracies in percent that tables 2 and 3 print for CIFAR-10, after 100, 300 and 500 epochs."""

SHARES = {"early": 0.2, "middle": 0.6, "late": 1.0}
"""Epochs at which rows are compared, relative to the last: those of the paper are 100, 300 and 500."""


def theory() -> xr.Dataset:
    """What is printed."""
    printed = [PRINTED.get(row, (np.nan,) * len(SHARES)) for row in ROWS]
    return xr.Dataset({"printed": (("row", "when"), printed)}, {"row": list(ROWS), "when": list(SHARES)})


def trained(problem: ImageProblem, seeds: int, folder: Path) -> xr.Dataset:
    """Accuracies of all rows; a row that was interrupted goes on where it was.

    Parameters
    ----------
    problem : ImageProblem
        Of the row `InfoNCE`, with the loss `nt_xent`.
    folder : Path
        Where unfinished rows and those that are done are kept.

    Raises
    ------
    InputError
        If the loss is another, or images have no classes by which rows could be told apart.
    """
    _check(problem)
    folder.mkdir(parents=True, exist_ok=True)
    found = []
    for row, changes in ROWS.items():
        changed = meanfield.with_values(
            problem, {"particles.replicas": seeds, "particles.common_start": False} | changes
        )
        path = folder / f"{row}.nc"
        if not path.exists() or meanfield.load(path).attrs["problem"] != format_problem(changed):
            result = meanfield.simulate_sgd(changed, record=meanfield.Checkpoint(folder / row))
            if result.attrs["status"] != "complete":
                raise SystemExit(f"{row}: {result.attrs['status']}; the same command goes on")
            meanfield.save(result, path)
        accuracy = meanfield.load(path)["probe_accuracy"].values
        print(f"{row}: {' '.join(in_print(100.0 * values) for values in accuracy.T)}", flush=True)
        found.append(accuracy)
    images = len(problem.data.split[0])
    epochs = problem.time.outputs_at * problem.steps_per_time / np.ceil(images / problem.training.batch_size)
    return xr.Dataset(
        {"sgd_accuracy": (("row", "seed", "epoch"), np.array(found))},
        {"row": list(ROWS), "seed": np.arange(seeds), "epoch": epochs},
    )


def _check(problem: ImageProblem) -> None:
    """Refuse what makes no table, before the first row is trained."""
    kind, data = problem.loss.kind, problem.data
    if kind != "nt_xent":
        raise InputError(f"loss.kind = '{kind}': the row InfoNCE, from which the others differ, has 'nt_xent'; take it")
    if data.read.labels is None:
        raise InputError("data.labels is missing: accuracies are of classes; name the file of labels")
    if not has_probe(problem):
        raise InputError(
            f"data.held_out = {data.held_out:g}: no image of {len(data.read)} is held out to measure accuracies; raise "
            "it, such as to 0.2"
        )


def in_print(values: np.ndarray) -> str:
    """Mean and standard deviation as the paper prints them: 83.84(18) is 83.84 +- 0.18."""
    return f"{values.mean():.2f}({100.0 * values.std(ddof=1):.0f})"


def judge(numbers: xr.Dataset) -> list[Statement]:
    """Statements of the paper, judged by the runs."""
    if "sgd_accuracy" not in numbers:
        return []
    at = {when: at_share(numbers, when) for when in SHARES}

    def gain(first: str, second: str, when: str) -> np.ndarray:
        return 100.0 * (at[when].sel(row=first) - at[when].sel(row=second)).values

    return [
        same("exact loss and InfoNCE with as many negatives are equally good", 2, gain(*PAIRS["exact"], "late")),
        better("exact loss: noise in the weights helps in the end", 2, gain(*PAIRS["noise"], "late")),
        better("beta = -0.5 is better than InfoNCE early", 3, gain("beta = -0.5", "InfoNCE", "early")),
        same("beta = -0.5 is as good as InfoNCE late", 3, gain("beta = -0.5", "InfoNCE", "late")),
        better("beta = 0.2 is worse than InfoNCE early", 3, gain("InfoNCE", "beta = 0.2", "early")),
        better("beta = 0.2 is worse than InfoNCE late", 3, gain("InfoNCE", "beta = 0.2", "late")),
    ]


PAIRS = {"exact": ("exact, H = 2", "InfoNCE, H = 2"), "noise": ("exact, noise", "exact, H = 2")}
"""Rows of table 2 that are compared."""


def at_share(numbers: xr.Dataset, when: str) -> xr.DataArray:
    """Accuracies at an epoch of `SHARES`, the nearest one that was kept."""
    return numbers["sgd_accuracy"].sel(epoch=SHARES[when] * float(numbers["epoch"][-1]), method="nearest")


def better(text: str, table: int, difference: np.ndarray) -> Statement:
    """A claim that differences, one for each seed, are positive."""
    mean, error = mean_and_error(difference)
    return Statement(text, f"paper, table {table}", None if abs(mean) < error else mean > 0.0, in_points(difference))


def same(text: str, table: int, difference: np.ndarray) -> Statement:
    """A claim that differences are chance; it is undecided where chance hides more than the paper's rows differ by."""
    mean, error = mean_and_error(difference)
    holds = False if abs(mean) > error else (True if error < 1.2 else None)  # the largest difference in table 2
    return Statement(text, f"paper, table {table}", holds, in_points(difference))


def in_points(difference: np.ndarray) -> str:
    """Mean difference with its standard error."""
    error = difference.std(ddof=1) / np.sqrt(len(difference))
    return f"{difference.mean():+.2f} +- {error:.2f} points, {len(difference)} seeds"


def mean_and_error(values: np.ndarray) -> tuple[float, float]:
    """Mean, and what chance exceeds in 1 % of all cases (Student's law)."""
    count = len(values)
    return float(values.mean()), float(student.ppf(0.995, count - 1) * values.std(ddof=1) / np.sqrt(count))


def draw(numbers: xr.Dataset) -> Figure:
    """Accuracies along training, and differences from InfoNCE beside those in print."""
    figure = Figure(figsize=(10.0, 3.8), layout="constrained")
    curves, differences = figure.subplots(1, 2)
    for i, row in enumerate(ROWS):
        values = 100.0 * numbers["sgd_accuracy"].sel(row=row)
        curves.plot(numbers["epoch"], values.mean("seed"), label=row, **curve_style(i))
    curves.set(xlabel="epoch", ylabel="accuracy of the linear probe, %")
    curves.legend(fontsize="x-small", ncol=2)
    for i, when in enumerate(SHARES):
        accuracy = 100.0 * at_share(numbers, when)
        for j, row in enumerate(list(ROWS)[1:]):
            gain = (accuracy.sel(row=row) - accuracy.sel(row="InfoNCE")).values
            place, error = j + 0.25 * (i - 1), gain.std(ddof=1) / np.sqrt(len(gain))
            label = when if j == 0 else None
            differences.errorbar(place, gain.mean(), error, fmt="o", color=curve_style(i)["color"], label=label)
            printed = numbers["printed"].sel(when=when)
            differences.plot(place, printed.sel(row=row) - printed.sel(row="InfoNCE"), "kx", ms=5)
    differences.axhline(0.0, color="0.6", lw=0.8)
    differences.set(ylabel="points above InfoNCE; crosses: print, CIFAR-10")
    differences.set_xticks(range(len(ROWS) - 1), list(ROWS)[1:], rotation=20, fontsize=8)
    differences.legend(fontsize="x-small")
    return figure


def table(numbers: xr.Dataset) -> str:
    """Accuracies in percent, mean and standard deviation over seeds, as in print."""
    epochs = [f"epoch {float(at_share(numbers, when)['epoch']):g}" for when in SHARES]
    cells = [[in_print(100.0 * at_share(numbers, when).sel(row=row).values) for when in SHARES] for row in ROWS]
    return markdown_table(["accuracy, %", *epochs], [[row, *values] for row, values in zip(ROWS, cells, strict=True)])


def simulate() -> xr.Dataset:
    """The runs on digits."""
    return trained(meanfield.load_problem(DIGITS), SEEDS, FOLDER / "convolutions")


STUDY = Study(theory, judge, draw, simulate, folder=FOLDER)


def main() -> int:
    """Tables of a problem file of a user."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("problem", type=Path, help="problem file of the row InfoNCE, with the loss nt_xent")
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"runs of each row, two or more (default {SEEDS})")
    given = parser.parse_args()
    problem, out = meanfield.load_problem(given.problem), given.problem.with_suffix("")
    numbers = xr.merge([theory(), trained(problem, given.seeds, out)])
    save_figure(draw(numbers), out.with_suffix(".png"))
    save(numbers, out.with_suffix(".nc"))
    print(table(numbers), *judge(numbers), sep="\n")
    return DONE


if __name__ == "__main__":
    run(main)
