"""Figure S1 of the paper: laws of sample means of sign, erf and ReLU under standardised mixtures and N(0, 1).

The paper takes them as evidence for its lemma V.3, that functions with small higher derivatives have the same mean
under all laws of equal mean and variance. It is false: the mean of ReLU is E|x|/2, which is 0.5 for x = -1, 1 and 0.399
for N(0, 1). Odd functions have the mean 0 under both laws if the mixture is symmetric, and two standardised components
of equal weight are: there, and for no other reason, the lemma seems to hold. With three components it does not.

What holds is that inputs are functions of U_i, a sum over all latents. If each latent draws its own component, U_i is
normal in the limit, whatever the mixture, and then means of all functions agree, with small derivatives or without.
alpha = 9; samples of 100, from one mixture each; exact means over 1000 mixtures.
"""

import math

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from scipy.special import erf, ndtr

from meanfield.plotting import curve_style
from validation.hidden_manifold.figures.discrepancy import STANDARD_ERRORS, mean_and_error, with_error
from validation.hidden_manifold.figures.laws import STANDARDISED, Samples, draw_means, make_law
from validation.hidden_manifold.figures.mixtures import FloatArray, standardisation
from validation.hidden_manifold.figures.sgd import draw_start
from validation.study import Statement, Study

ALPHA, COMPONENTS, MIXTURES = 9.0, (2, 3, 5), 1000
SAMPLE, REPEATS = 100, 20000
"""Size of a sample, and number of samples whose means are drawn."""

TOLERANCE = 0.01
"""Difference of means below which they are the same; that of ReLU under -1, 1 is ten times as large."""

FUNCTIONS = {
    "sign": np.sign,
    "erf": lambda x: erf(x / math.sqrt(2.0)),
    "ReLU": lambda x: np.maximum(x, 0.0),
}


def exact_means(mean: FloatArray, scale: FloatArray) -> dict[str, FloatArray]:
    """Means of the functions under N(mean, scale^2), in closed form."""
    z = mean / scale
    density = np.exp(-0.5 * z**2) / math.sqrt(2.0 * math.pi)
    return {
        "sign": 2.0 * ndtr(z) - 1.0,
        "erf": erf(mean / np.sqrt(2.0 * (1.0 + scale**2))),
        "ReLU": mean * ndtr(z) + scale * density,
    }


def theory() -> xr.Dataset:
    """Differences of means under mixtures and N(0, 1), by function, m and mixture."""
    rng = np.random.default_rng(0)
    normal = exact_means(np.zeros(1), np.ones(1))
    difference = np.empty((len(FUNCTIONS), len(COMPONENTS), MIXTURES))
    for i, m in enumerate(COMPONENTS):
        mu = ALPHA * rng.uniform(-1.0, 1.0, (m, MIXTURES))
        shift, scale = standardisation(mu)
        found = exact_means((mu - shift) / scale, 1.0 / scale)
        for k, name in enumerate(FUNCTIONS):
            difference[k, i] = found[name].mean(axis=0) - normal[name]
    about = {"long_name": "mean of the function under a standardised mixture less that under N(0, 1)"}
    return xr.Dataset(
        {"difference": (("function", "m", "start"), difference, about)},
        {"function": list(FUNCTIONS), "m": list(COMPONENTS)},
    )


def simulate() -> xr.Dataset:
    """Means of samples of one latent, and means of functions of U_i, D = 500, less those under N(0, 1)."""
    rng = np.random.default_rng(1)
    means = np.empty((len(FUNCTIONS), 1 + len(COMPONENTS), REPEATS))
    U = np.empty((len(FUNCTIONS), len(COMPONENTS), 50))
    start = draw_start(rng, 1, 500, units=1)
    mixtures = {m: draw_means(rng, m, 500) for m in COMPONENTS}
    for i, m in enumerate((1, *COMPONENTS)):
        mu = np.zeros(1) if m == 1 else ALPHA * mixtures[m].number
        shift, scale = standardisation(mu)
        component = rng.integers(m, size=(REPEATS, SAMPLE))
        x = ((mu - shift)[component] + rng.standard_normal((REPEATS, SAMPLE))) / scale
        for k, f in enumerate(FUNCTIONS.values()):
            means[k, i] = f(x).mean(axis=1)
    samples = Samples(start, COMPONENTS, 4000, rng)
    size = np.linalg.norm(start.fields[:, 0])  # U_i has this standard deviation, which is 1 in the limit
    for block in range(U.shape[2]):
        samples.draw(4000)
        for i, m in enumerate(COMPONENTS):
            u = samples.of(make_law(STANDARDISED["coordinate"], start, mixtures[m], ALPHA))[:, 0] / size
            for k, (name, f) in enumerate(FUNCTIONS.items()):
                U[k, i, block] = f(u).mean() - exact_means(np.zeros(1), np.ones(1))[name][0]
    return xr.Dataset(
        {
            "sgd_means": (("function", "law", "repeat"), means),
            "sgd_U": (("function", "m", "block"), U),
        },
        {"law": ["N(0, 1)", *(f"m = {m}" for m in COMPONENTS)]},
    )


def judge(numbers: xr.Dataset) -> list[Statement]:
    """Where lemma V.3 holds, for a latent and for U."""
    found = []
    for m in COMPONENTS:
        for name in FUNCTIONS:
            away = np.sqrt((numbers.difference.sel(function=name, m=m) ** 2).mean("start"))
            text = f"standardised mixtures with m = {m} have the mean of {name} that N(0, 1) has"
            number = f"root mean square difference {float(away):.2g}"
            if m == 2 and name != "ReLU":
                number += ", by symmetry"
            found.append(Statement(text, "paper, lemma V.3, figure S1", float(away) < TOLERANCE, number))
    if "sgd_U" in numbers:
        U = numbers.sgd_U.rename(block="start")
        each = {name: U.sel(function=name).mean("m") for name in FUNCTIONS}
        bounds = [abs(mean) + STANDARD_ERRORS * error for mean, error in map(mean_and_error, each.values())]
        found.append(
            Statement(
                "functions of U_i have the means that N(0, 1) has, for every m, if each latent draws its own component",
                "theory, section 4",
                max(bounds) < TOLERANCE,
                ", ".join(f"{name}: {with_error(values)}" for name, values in each.items()),
            )
        )
    return found


def draw(numbers: xr.Dataset) -> Figure:
    """Histograms of means of samples."""
    figure, axes = plt.subplots(1, 3, figsize=(10.5, 3.2), layout="constrained")
    for axis, name in zip(axes, FUNCTIONS, strict=True):
        values = numbers.sgd_means.sel(function=name)
        edges = np.linspace(float(values.min()), float(values.max()), 60)
        if name == "sign":  # means of signs are multiples of 2/100
            edges = np.arange(-1.01, 1.02, 0.02)
            edges = edges[(edges >= float(values.min()) - 0.02) & (edges <= float(values.max()) + 0.02)]
        for i, law in enumerate(numbers.law.values):
            outline = {"histtype": "step", "lw": 1.4, **curve_style(i - 1)}
            style = outline if i > 0 else {"color": "0.6", "alpha": 0.6}
            axis.hist(values.sel(law=law), edges, density=True, label=law, **style)
        axis.set_title(name)
        axis.set_xlabel("mean over a sample of 100")
    axes[0].set_ylabel("density")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    return figure


STUDY = Study(theory, judge, draw, simulate)
