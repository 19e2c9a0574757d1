"""What a schedule of the learning rate does to the final overlap, and to which feature is learnt.

The best constant rate for a run until t = 60 is a compromise: the overlap grows faster at a larger rate, and the noise
of sampling holds it down at the end. The best cosine and the best of all tables of eight rates, linear in between, are
searched directly, and SGD confirms them at N = 100,000. Each leaves less than half of what the best constant rate
leaves. The best table is a warm-up, although nothing is unstable at the start: the rate rises with the overlap until
noise counts, and falls then faster than a cosine. Which of two features is learnt hardly depends on any of it.
"""

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from scipy.interpolate import CubicSpline
from scipy.optimize import brentq

import meanfield
from meanfield.families.contrastive.closures import Closure
from meanfield.plotting import COLOURS, MARKERS, place_legend
from meanfield.typing import FloatArray
from validation import OUTPUT
from validation.rate_search import KINDS, Search
from validation.study import Statement, Study

STOP = 60.0
START = 0.3
"""q(0) of one feature."""

REPLICAS, DIMENSION = 16, 100_000

TEXT = """
title = "The best schedule"
model = {{ activation = "quadratic", learning_rate = 0.1, batch_size = 4 }}
time = {{ stop = {stop}, outputs = 81 }}
particles = {{ dimension = {dimension}, replicas = {replicas}, method = "chain" }}
"""
FEATURE = """
[[features]]
hidden = {{ law = "three_point", second_moment = 1.1, fourth_moment = {fourth} }}
coordinate = {{ law = "rademacher" }}
initial_overlap = {start}
"""


def problem_of(starts: tuple[float, ...] = (START,), fourths: tuple[float, ...] = (6.05,)) -> meanfield.Problem:
    """Problem with one feature or two, at a rate that is replaced."""
    features = (FEATURE.format(fourth=fourth, start=start) for fourth, start in zip(fourths, starts, strict=True))
    head = TEXT.format(stop=STOP, dimension=DIMENSION, replicas=REPLICAS)
    return meanfield.parse_problem(head + "".join(features))


def search() -> Search:
    """Search for the largest final overlap, with splines through the averages at rate 1."""
    closure = Closure(meanfield.with_value(problem_of(), "model.learning_rate", 1.0))
    q = np.linspace(0.0, 0.999, 400)
    values = [closure(np.array([each])) for each in q]
    gain, diffusion = CubicSpline(q, [g[0] for g, _ in values]), CubicSpline(q, [noise for _, noise in values])

    def velocity(rate: float, q: FloatArray) -> FloatArray:
        g, noise = rate * gain(q), rate**2 * diffusion(q)
        return np.asarray(q * (q * g - 0.5 * noise) - g)

    return Search(velocity, np.array([START]), STOP, lambda q: float(np.log1p(-q[0])), 0.1)


def tied_start(schedule: object) -> float:
    """Overlap with the second feature, q_1(0) = 0.3, from which both features are equally learnt at the end."""

    def lead(second: float) -> float:
        problem = problem_of((0.3, second), (6.05, 5.0))
        solved = meanfield.solve_order_parameters(meanfield.with_value(problem, "model.learning_rate", schedule))
        first, other = solved["q"].values[-1]
        return float(first - other)

    return float(brentq(lead, 0.25, 0.7, xtol=1e-5))


def theory() -> xr.Dataset:
    """Best schedules of each kind, their overlaps by the library, and starts at which two features tie."""
    searched = search()
    best = searched.best()
    schedules = {kind: searched.schedule(kind, x) for kind, x in best.items()}
    solved = [
        meanfield.solve_order_parameters(meanfield.with_value(problem_of(), "model.learning_rate", each))
        for each in schedules.values()
    ]
    time = solved[0]["time"].values
    rates = [[searched.rate_at(kind, x, t) for t in time] for kind, x in best.items()]
    early = searched.rate_at("table", best["table"], 0.0)
    others = {"constant at the table's first rate": early, "half of that": 0.5 * early}
    ties = [tied_start(each) for each in (*schedules.values(), *others.values())]
    return xr.Dataset(
        {
            "rate": (("kind", "time"), rates, {"long_name": "learning rate"}),
            "q": (("kind", "time"), [each["q"].values[:, 0] for each in solved], {"long_name": "overlap"}),
            "searched": (
                "kind",
                [searched.end(kind, x)[0] for kind, x in best.items()],
                {"long_name": "q(60), search"},
            ),
            "tie": ("tried", ties, {"long_name": "second start from which both features are learnt equally"}),
        },
        {"kind": list(KINDS), "time": time, "tried": [*KINDS, *others]},
    )


def simulate() -> xr.Dataset:
    """Overlaps of SGD under the schedules of the theory."""
    numbers = theory()
    runs = []
    for kind in KINDS:
        rates = numbers["rate"].sel(kind=kind).values
        table = {"times": numbers["time"].values.tolist(), "values": rates.tolist()}
        sgd = meanfield.simulate_sgd(meanfield.with_value(problem_of(), "model.learning_rate", table))
        runs.append(sgd["q"].values[..., 0])
    return xr.Dataset({"sgd_q": (("kind", "replica", "time"), runs, {"long_name": "overlap of SGD"})})


def judge(numbers: xr.Dataset) -> list[Statement]:
    """What the final overlaps and the ties say."""
    left = 1.0 - numbers["q"].isel(time=-1)
    constant, cosine, table = left.values.tolist()
    gap = float(np.abs(numbers["searched"] - numbers["q"].isel(time=-1)).max())
    ties = numbers["tie"].values
    statements = [
        Statement(
            "the best cosine leaves less than half of what the best constant rate leaves, the best table still less",
            "ours", table < cosine < 0.5 * constant, f"1 - q(60) = {constant:.5f}, {cosine:.5f}, {table:.5f}",
        ),
        Statement(
            "a search that shares no code with the library finds the same overlaps", "ours", gap < 1e-6, f"{gap:.1g}"
        ),
        Statement(
            "the start from which two features are learnt equally moves by less than 2 % with the schedule",
            "ours", np.ptp(ties) < 0.02 * ties.mean(), f"ties from {ties.min():.4f} to {ties.max():.4f}",
        ),
    ]  # fmt: skip
    if "sgd_q" in numbers:
        at_end = numbers["sgd_q"].isel(time=-1)
        away = np.abs(at_end.mean("replica") - numbers["q"].isel(time=-1)) / (at_end.std("replica") / REPLICAS**0.5)
        statements.append(
            Statement(
                "SGD with N = 100,000 ends at these overlaps", "ours", bool((away < 4.0).all()),
                f"off by {float(away.max()):.1f} standard errors at most",
            )
        )  # fmt: skip
    return statements


def draw(numbers: xr.Dataset) -> Figure:
    """Schedules, and what is left of the overlap under them."""
    figure = Figure(figsize=(9.4, 3.8), layout="constrained")
    rates, overlaps = figure.subplots(1, 2)
    for k, kind in enumerate(KINDS):
        row = numbers.sel(kind=kind)
        rates.plot(row["time"], row["rate"], color=COLOURS[k], label=f"best {kind}")
        overlaps.semilogy(row["time"], 1.0 - row["q"], color=COLOURS[k], label=f"best {kind}")
        if "sgd_q" in numbers:
            mean = 1.0 - row["sgd_q"].mean("replica")
            overlaps.plot(row["time"][::5], mean[::5], MARKERS[k], color=COLOURS[k], ms=4, mfc="none")
    overlaps.plot([], [], "o", color="0.3", ms=4, mfc="none", label=f"SGD, $N = 10^5$, {REPLICAS} runs")
    rates.set(xlabel="time $t$", ylabel=r"learning rate $\tau$", title="schedules")
    overlaps.set(xlabel="time $t$", ylabel="$1 - q$", title="what is left of the overlap", ylim=(0.01, 1.0))
    for axes in (rates, overlaps):
        place_legend(axes)
    return figure


STUDY = Study(theory, judge, draw, simulate, must_hold=True, folder=OUTPUT)
