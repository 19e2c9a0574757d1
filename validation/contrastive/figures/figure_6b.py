"""Figure 6b of the paper: which starts retrieve the feature, for three second moments.

The supplement says that from Q = 0.1 only m2 = 1.1 is retrieved and from Q = 0.3 all but m2 = 0.9, so that m2 changes
the attraction regions. Here runs of SGD at N = 5000 are thin lines over the curves of the ODE, and every single run
has to end where the ODE does; the region of Q = 0 ends at the unstable state.
"""

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import meanfield
from meanfield.plotting import LINES, curve_style, place_legend
from validation.contrastive.figures.drift_curves import listed
from validation.contrastive.figures.one_feature import SECOND_MOMENTS, find_states, problem_with
from validation.contrastive.figures.trajectories import RETRIEVED, STARTS, problem_at, trajectories
from validation.study import Statement, Study

PAPER = "paper, section S-III-A"
SAID = {0.1: (1.1,), 0.3: (1.0, 1.1)}
"""Second moments that are retrieved from each start."""

DIMENSION, REPLICAS = 5000, 12


def theory() -> xr.Dataset:
    """Trajectories, and where the region of Q = 0 ends: 1 where every start goes there."""
    boundary = [find_states(problem_with(m2)).boundary for m2 in SECOND_MOMENTS]
    long_name = {"long_name": "starts below this Q go to 0"}
    return trajectories().assign(boundary=("m2", np.nan_to_num(boundary, nan=1.0), long_name))


def simulate() -> xr.Dataset:
    """Single runs."""
    runs = [
        [meanfield.simulate_sgd(problem_at(m2, Q, DIMENSION, REPLICAS, record="replicas")) for Q in STARTS]
        for m2 in SECOND_MOMENTS
    ]
    values = np.array([[run["q"].values[:, :, 0] ** 2 for run in row] for row in runs])
    return xr.Dataset(
        {"sgd_Q": (("m2", "start", "replica", "time"), values, {"long_name": "squared overlap in runs of SGD"})}
    )


def judge(numbers: xr.Dataset) -> list[Statement]:
    """The supplement's statements on the starts."""
    statements = []
    for start, said in SAID.items():
        ends = numbers["ode_Q"].sel(start=start).isel(time=-1)
        retrieved = [m2 for m2 in SECOND_MOMENTS if ends.sel(m2=m2) > RETRIEVED]
        text = f"from Q = {start}, {' and '.join(map(str, said))} of the second moments are retrieved, others are not"
        number = f"Q at the end: {listed(ends)}"
        statements.append(Statement(text, PAPER, tuple(retrieved) == said, number))
    boundary = numbers["boundary"].values
    statements.append(
        Statement(
            "the attraction region of Q = 0 shrinks as m2 grows",
            PAPER,
            bool(np.all(np.diff(boundary) < 0)),
            f"it ends at Q = {listed(boundary)}",
        )
    )
    if "sgd_Q" in numbers:
        ode, sgd = (numbers[name].isel(time=-1) > RETRIEVED for name in ("ode_Q", "sgd_Q"))
        share = float((sgd == ode).mean())
        text = "every run of SGD ends where the ODE does"
        statements.append(Statement(text, "ours", share == 1, f"{share:.0%} of {sgd.size} runs"))
    return statements


def draw(numbers: xr.Dataset) -> Figure:
    """A panel for each start."""
    figure = Figure(figsize=(9, 3.8), layout="constrained")
    time = numbers["time"].values
    panels = figure.subplots(1, 2, sharey=True)
    for axes, start in zip(panels, STARTS, strict=True):
        for i, m2 in enumerate(SECOND_MOMENTS):
            at = numbers.sel(m2=m2, start=start)
            axes.plot(time, at["sgd_Q"].T, color=curve_style(i)["color"], lw=0.5, alpha=0.5)
            axes.plot(time, at["ode_Q"], lw=2, label=f"$m_2 = {m2}$", **curve_style(i))
        boundary = float(numbers["boundary"].sel(m2=1.0))
        axes.axhline(boundary, color=curve_style(1)["color"], lw=1, ls=LINES[4], label="unstable state, $m_2 = 1.0$")
        axes.plot([], [], color="0.3", lw=0.5, label=f"runs of SGD, $N = {DIMENSION}$")
        axes.set(title=f"start at $Q = {start}$", xlabel="time $t = k/N$", xlim=(0, time[-1]), ylim=(-0.02, 1))
    panels[0].set_ylabel("squared overlap $Q(t)$")
    place_legend(panels[1])
    return figure


STUDY = Study(theory, judge, draw, simulate)
