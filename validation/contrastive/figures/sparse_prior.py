"""Benefit of a sparse prior (l1): similarity of the recovery state against its strength, by the law of u.

An l1 prior draws small weights to 0. Where the feature itself is sparse (u = 0 for most coordinates) these are the
coordinates that only carry noise, and the similarity grows up to some strength; for a Gaussian feature the prior
removes signal as well. At a larger strength the recovery state vanishes: its branch turns. Lines are stationary states
of the density, points are SGD from an informed start.

sigma = x^2, three-point hidden variable with m2 = 1.1, m4 = 6.05, tau/m = 0.01. tau = 2 and m = 200 only make time
pass faster; a single step then moves a weight by 0.05, and SGD has somewhat fewer weights near 0, which are those with
|w| < 0.1, than the limit.
"""

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from scipy.optimize import minimize_scalar

import meanfield
from meanfield.families.contrastive.limit import limit_of
from meanfield.families.contrastive.problem import Problem
from meanfield.mckean_vlasov.stationary.equations import StationaryEquations
from meanfield.mckean_vlasov.stationary.state import State
from meanfield.numerics.continuation import newton
from meanfield.plotting import COLOURS, LINES, MARKERS, share_legend
from validation.study import Statement, Study

LAWS = {
    "Gaussian": {"law": "gaussian"},
    "1 in 5": {"law": "three_point", "fourth_moment": 5.0},
    "1 in 20": {"law": "three_point", "fourth_moment": 20.0},
}
"""Laws of u; of the sparse ones, the part of the coordinates that is not 0."""

STRONGEST = {"Gaussian": 7.0, "1 in 5": 13.1, "1 in 20": 36.5}
"""Strength of the prior just below which the recovery state vanishes: `contrastive.continue_stationary_states`."""

STRENGTHS = 36
"""Number of strengths of the prior for each law; they are closer to each other towards the end, where the branch
turns."""

POINTS = {"Gaussian": (0.0, 3.0, 6.0), "1 in 5": (4.0, 8.0, 12.0), "1 in 20": (12.0, 25.0, 34.0)}
"""Strengths of the prior with which SGD is run."""

LEARNING_RATE, BATCH_SIZE, START = 2.0, 200, 0.85
NEAR_ZERO = 0.1
N, REPLICAS, STOP = 4096, 8, 2.0

STANDARD_ERRORS = 4.0
"""Largest accepted deviation in standard errors. Of nine looks, with seven degrees of freedom, one is farther off by
chance once in 21 runs."""

LARGEST_DIFFERENCE_TIMES_N = 20.0
"""Largest relative difference of SGD at finite N and the limit, times N: steps are large here, and features rare."""


def problem_with(law: str, strength: float) -> Problem:
    """One feature under an l1 prior."""
    data = {
        "model": {"activation": "quadratic", "learning_rate": LEARNING_RATE, "batch_size": BATCH_SIZE},
        "features": [
            {
                "hidden": {"law": "three_point", "second_moment": 1.1, "fourth_moment": 6.05},
                "coordinate": LAWS[law],
                "initial_overlap": START,
            }
        ],
        "prior": {"name": "l1", "strength": float(strength)},
        "time": {"stop": STOP, "outputs": 2},
        "particles": {
            "method": "projected", "dimension": N, "replicas": REPLICAS, "seed": 3, "snapshots": (STOP,)
        },
    }  # fmt: skip
    return Problem.model_validate(data)


def recovery_state(law: str, strength: float, near: float) -> State | None:
    """The stationary state next to an overlap; None if it is gone."""
    equations = StationaryEquations(limit_of(problem_with(law, strength)))
    q = newton(equations, np.array([near]))
    return None if q is None else equations.state(q)


def near_zero(state: State, strength: float) -> tuple[float, float]:
    """Shares of weights near 0 among all, and among those whose feature coordinate is 0 (or next to it)."""
    w = np.linspace(-12.0, 12.0, 24001)
    pull = LEARNING_RATE * strength
    shares = []
    for tilt in state.tilts.tilt:
        exponent = 2.0 / state.coefficients.diffusion * ((0.5 * state.G * w - tilt) * w - pull * np.abs(w))
        P = np.exp(exponent - exponent.max())
        shares.append(P[np.abs(w) < NEAR_ZERO].sum() / P.sum())
    shares = np.array(shares)
    return float(state.tilts.weight @ shares), float(shares[np.argmin(np.abs(state.tilts.tilt))])


def theory() -> xr.Dataset:
    """Similarity and shares along the branch, and the best strength."""
    rows, best = [], []
    for law, strongest in STRONGEST.items():
        near, row = START, []
        for strength in strongest * np.sin(np.linspace(0.0, 0.5 * np.pi, STRENGTHS)):
            state = recovery_state(law, strength, near)
            if state is None:
                break
            near = float(state.q[0])
            row.append([strength, near, *near_zero(state, strength)])
        rows.append(np.vstack([row, np.full((STRENGTHS - len(row), 4), np.nan)]))
        best.append(_best(law, rows[-1]))
    numbers = np.moveaxis(np.array(rows), -1, 0)
    names = {
        "strength": "strength of the prior",
        "similarity": "overlap q of the recovery state",
        "share": "share of weights near 0",
        "share_without": "the same among coordinates without a feature",
    }
    variables = {
        name: (("law", "step"), x, {"long_name": text}) for (name, text), x in zip(names.items(), numbers, strict=True)
    }
    best_strength, best_similarity = np.transpose(best)
    variables["best_strength"] = ("law", best_strength, {"long_name": "strength of the largest similarity"})
    variables["best_similarity"] = ("law", best_similarity, {"long_name": "largest similarity"})
    return xr.Dataset(variables, {"law": list(LAWS)})


def _best(law: str, row: np.ndarray) -> tuple[float, float]:
    """The best strength, between neighbours of the best on the branch."""
    top = int(np.nanargmax(row[:, 1]))
    if top == 0:
        return 0.0, float(row[0, 1])
    found = minimize_scalar(
        lambda s: -recovery_state(law, s, row[top, 1]).q[0],
        bounds=(row[top - 1, 0], row[top + 1, 0]), method="bounded", options={"xatol": 1e-3},
    )  # fmt: skip
    return float(found.x), float(-found.fun)


def simulate() -> xr.Dataset:
    """Similarity and share of weights near 0 in SGD."""
    rows = [[_measured(problem_with(law, s)) for s in POINTS[law]] for law in LAWS]
    q, q_error, share = np.moveaxis(np.array(rows), -1, 0)
    dims = ("law", "point")
    return xr.Dataset(
        {
            "sgd_strength": (dims, [POINTS[law] for law in LAWS], {"long_name": "strength of the prior"}),
            "sgd_q": (dims, q, {"long_name": "overlap q in SGD, mean over replicas"}),
            "sgd_q_error": (dims, q_error, {"long_name": "its standard error"}),
            "sgd_share": (dims, share, {"long_name": "share of weights near 0 in SGD"}),
        }
    )


def _measured(problem: Problem) -> tuple[float, float, float]:
    run = meanfield.simulate_sgd(problem)
    q = run["q"].values[:, -1, 0]
    share = float((np.abs(run["weights"].values[:, -1]) < NEAR_ZERO).mean())
    return float(q.mean()), float(q.std(ddof=1) / np.sqrt(len(q))), share


def judge(numbers: xr.Dataset) -> list[Statement]:
    """Whether the prior helps, for which features, and how much of it is best."""
    statements = []
    for law, helps in (("Gaussian", False), ("1 in 5", True), ("1 in 20", True)):
        at = numbers.sel(law=law)
        without, best, strength = (float(x) for x in (at["similarity"][0], at["best_similarity"], at["best_strength"]))
        text = "raises the similarity of a sparse feature" if helps else "does no good to a Gaussian feature"
        number = f"q = {without:.4f} without, at best {best:.4f} at strength {strength:.1f}"
        statements.append(Statement(f"l1 {text} (u: {law})", "ours", (best > without + 1e-4) == helps, number))
    sparse = numbers.sel(law="1 in 20")
    top = int(np.nanargmax(sparse["similarity"].values))
    statements.append(
        Statement(
            "the best strength is not the one with most weights near 0",
            "ours",
            bool(sparse["share"].max() > sparse["share"][top] + 1e-3),
            f"{float(sparse['share'][top]):.2f} of the weights at the best strength, up to "
            f"{float(sparse['share'].max()):.2f} beyond (u: 1 in 20)",
        )
    )
    return statements + ([_against_sgd(numbers)] if "sgd_q" in numbers else [])


def _against_sgd(numbers: xr.Dataset) -> Statement:
    off = np.array([np.abs(numbers["sgd_q"][i] - _predicted(numbers, i)) for i in range(len(LAWS))])
    error = numbers["sgd_q_error"].values
    return Statement(
        "SGD stays at these similarities",
        "ours",
        bool((off < STANDARD_ERRORS * error + LARGEST_DIFFERENCE_TIMES_N / N).all()),
        f"off by {off.max():.4f} at most, standard errors up to {error.max():.4f}, N = {N}",
    )


def _predicted(numbers: xr.Dataset, law: int) -> np.ndarray:
    at = numbers.isel(law=law)
    return np.interp(at["sgd_strength"], at["strength"], at["similarity"])


def draw(numbers: xr.Dataset) -> Figure:
    """Similarity and share near 0 against the strength, and against each other."""
    figure = Figure(figsize=(10, 3.8), layout="constrained")
    first, second, third = figure.subplots(1, 3)
    for i, (law, colour) in enumerate(zip(LAWS, COLOURS, strict=False)):
        at = numbers.isel(law=i)
        label = f"$u$ {law}" if law == "Gaussian" else f"$u \\neq 0$ for {law}"
        line = {"color": colour, "linestyle": LINES[i], "label": label}
        first.plot(at["strength"], at["similarity"], **line)
        first.plot(at["best_strength"], at["best_similarity"], "*", color=colour, ms=11, mec="black", mew=0.6)
        second.plot(at["strength"], at["share"], **line)
        third.plot(at["share"], at["similarity"], **line)
        if "sgd_q" in numbers:
            style = {"fmt": MARKERS[i], "color": colour, "ms": 5, "capsize": 3, "mfc": "white", "zorder": 3}
            first.errorbar(at["sgd_strength"], at["sgd_q"], 2 * at["sgd_q_error"], **style)
            second.plot(at["sgd_strength"], at["sgd_share"], MARKERS[i], color=colour, ms=5, mfc="white")
            third.errorbar(at["sgd_share"], at["sgd_q"], 2 * at["sgd_q_error"], **style)
    first.plot([], [], "o", color="0.3", mfc="white", label="SGD, two standard errors")
    first.plot([], [], "*", color="0.6", ms=11, mec="black", mew=0.6, label="best strength")
    first.set(xlabel="strength of l1", ylabel="similarity $q$")
    second.set(xlabel="strength of l1", ylabel=f"share of weights with $|w| < {NEAR_ZERO}$", ylim=(0, 1))
    third.set(xlabel=f"share of weights with $|w| < {NEAR_ZERO}$", ylabel="similarity $q$", xlim=(0, 1))
    share_legend(figure)
    return figure


STUDY = Study(theory, judge, draw, simulate)
