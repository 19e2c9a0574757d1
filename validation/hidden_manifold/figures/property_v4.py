"""The paper's property V.4: under standardised mixtures the fields have the cumulants of one Gaussian up to order 2.

Fields lambda, nu of a ReLU student that was trained to t = 10 with N(0, 1), and of its teacher, on samples of
standardised mixtures with alpha = 9, m = 3 and 5. The paper says that their law is not normal, but shares mean and
covariance with the Gaussian case, (22) to (25), so that averages such as E[g(lambda) g(nu)] agree approximately (26).
If each latent draws its own component the fields are normal in the limit, and share all cumulants. If a sample has one
component they share none: the mean of its component moves all latents together. Components of different scales, a third
case, are among those of [SGD against theories](hidden_manifold_sgd.md).

What is shown is relative to N(0, 1): the size of the means of lambda in units of its deviation, the distance of the
covariance of lambda and nu, and of E[g g], in units of theirs, and the excess kurtosis. 10 starts, N = 1000.
"""

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from meanfield.plotting import COLOURS
from validation.hidden_manifold.figures.discrepancy import above, statement, with_error
from validation.hidden_manifold.figures.laws import GAUSSIAN, STANDARDISED, Samples, make_law
from validation.hidden_manifold.figures.mixtures import FloatArray
from validation.hidden_manifold.figures.runs import AT_ONCE, N, start_of
from validation.hidden_manifold.figures.sgd import RATE, Student, advance, students_of
from validation.hidden_manifold.figures.sweep import READINGS
from validation.study import Statement, Study

STARTS, ALPHA, COMPONENTS = 10, 9.0, (3, 5)
TRAINED, SAMPLES, BLOCK = 10 * N, 16384, 1024
"""Steps of training, samples of each law, and samples at once."""

SMALL_DISCREPANCY = 0.1
"""Relative distance below which cumulants and averages are called the same: samples and finite N leave about 0.03."""

QUANTITIES = {
    "mean": "means",
    "covariance": "covariance",
    "average": "E[g(lambda) g(nu)]",
    "kurtosis": "excess kurtosis",
}


def simulate() -> xr.Dataset:
    """Distances of the fields' cumulants from those under N(0, 1)."""
    laws = [STANDARDISED[law] for law in READINGS]
    found = np.array([[_of_start(seed, name) for name in laws] for seed in range(STARTS)])
    dims = ("start", "law", "m", "quantity")
    return xr.Dataset(
        {"sgd_distance": (dims, found)},
        {"law": laws, "m": list(COMPONENTS), "quantity": list(QUANTITIES)},
    )


def _of_start(seed: int, name: str) -> list[list[float]]:
    """Distances for one start and law, by m and quantity."""
    start, means, rng = start_of(seed)
    training, *testing = rng.spawn(2)
    student = students_of(start)[0]
    samples, gaussian = Samples(start, (), AT_ONCE, training), make_law(GAUSSIAN, start)
    for _ in range(TRAINED // AT_ONCE):
        samples.draw(AT_ONCE)
        advance(samples.of(gaussian), student, start.vt, RATE)
    tests = Samples(start, COMPONENTS, BLOCK, testing[0])
    laws = [gaussian, *(make_law(name, start, means[m], ALPHA) for m in COMPONENTS)]
    rows: list[list[FloatArray]] = [[] for _ in laws]
    for _ in range(SAMPLES // BLOCK):
        tests.draw(BLOCK)
        for row, law in zip(rows, laws, strict=True):
            row.append(fields_of(student, tests.of(law)))
    normal, *others = (np.concatenate(row) for row in rows)
    return [distances(other, normal) for other in others]


def fields_of(student: Student, arguments: FloatArray) -> FloatArray:
    """Fields lambda and nu of samples, shape (samples, students + teachers)."""
    inputs = student.W.shape[1]
    signs = np.where(arguments[:, :inputs] > 0, np.float32(1), np.float32(-1))
    own = signs @ student.W.T.astype(np.float32) / np.sqrt(inputs)
    return np.hstack([own, arguments[:, inputs:]]).astype(float)


def distances(fields: FloatArray, normal: FloatArray) -> list[float]:
    """The quantities of `QUANTITIES`; those of order 2 relative to the ones under N(0, 1)."""
    K = fields.shape[1] // 2
    mean, deviation = fields.mean(axis=0), fields.std(axis=0)
    second, normal_second = np.cov(fields.T), np.cov(normal.T)
    average, normal_average = (
        np.maximum(f[:, :K], 0.0).T @ np.maximum(f[:, K:], 0.0) / len(f) for f in (fields, normal)
    )
    kurtosis = (((fields - mean) / deviation) ** 4).mean(axis=0) - 3.0
    return [
        float(np.linalg.norm(mean) / np.linalg.norm(deviation)),
        float(np.linalg.norm(second - normal_second) / np.linalg.norm(normal_second)),
        float(np.linalg.norm(average - normal_average) / np.linalg.norm(normal_average)),
        float(np.abs(kurtosis).mean()),
    ]


def judge(numbers: xr.Dataset) -> list[Statement]:
    """Which cumulants are shared, in both readings."""
    if "sgd_distance" not in numbers:
        return []
    found = []
    claims = {
        "the fields have the means and the covariance of one Gaussian": (("mean", "covariance"), "paper, property V.4"),
        "averages E[g(lambda) g(nu)] are those of one Gaussian": (("average",), "paper, (26)"),
        "the fields are not normal": (("kurtosis",), "paper, property V.4"),
    }
    for law, said in READINGS.items():
        each = numbers.sgd_distance.sel(law=STANDARDISED[law])
        for text, (quantities, source) in claims.items():
            verdicts = {name: above(each.sel(quantity=name), SMALL_DISCREPANCY) for name in quantities}
            if quantities != ("kurtosis",):
                verdicts = {name: None if large is None else not large for name, large in verdicts.items()}
            shown = {QUANTITIES[name]: with_error(each.sel(quantity=name)) for name in quantities}
            found.append(statement(f"{said}: {text}", source, verdicts, shown))
    return found


def draw(numbers: xr.Dataset) -> Figure:
    """Distances of every start by quantity, reading and m."""
    figure, axis = plt.subplots(figsize=(7.5, 3.6), layout="constrained")
    for i, (law, said) in enumerate(READINGS.items()):
        for j, m in enumerate(COMPONENTS):
            values = numbers.sgd_distance.sel(law=STANDARDISED[law], m=m)
            place = np.arange(len(QUANTITIES)) + 0.16 * (2 * i + j - 1.5)
            x = np.broadcast_to(place, values.shape)
            style = {"color": COLOURS[i], "marker": "os"[j], "ms": 4, "ls": "none", "fillstyle": ("none", "full")[i]}
            axis.plot(x.ravel(), values.values.ravel(), label=f"{said}, m = {m}", **style)
    axis.axhline(SMALL_DISCREPANCY, color="0.4", lw=0.8, ls=":")
    axis.set_yscale("log")
    axis.set_xticks(range(len(QUANTITIES)), [r"means", r"covariance", r"$E[g(\lambda) g(\nu)]$", r"|excess kurtosis|"])
    axis.set_ylabel(r"distance from $\mathcal{N}(0, 1)$")
    axis.grid(axis="y", color="0.92")
    figure.legend(loc="outside lower center", ncols=2, frameon=False)
    return figure


STUDY = Study(xr.Dataset, judge, draw, simulate)
