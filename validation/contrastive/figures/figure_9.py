"""Figure 9 of the paper: phase portraits of a Gaussian and a three-point feature, where the second attracts more.

(a) Gaussian, m2 = 1.1, against three-point, m2 = 1, m4 = 5, m6 = 25; (b) the laws of figure 3a. The paper says that
there are four fixed points, that those near (0, 0) and (0.5, 0.5) are unstable, and that the attraction region of
feature 2 is the larger one. In (a) there is a fifth one at every tau/m: the second feature has m2 = 1, so that it
decays from the origin and is separated from its recovery state by a source on its axis. The paper also says that a
random start near the origin chooses in proportion to the regions: close to it the larger second moment decides.
tau = 0.04 and m = 20 (see two_features.py).
"""

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from validation.contrastive.figures.two_features import (
    UNEQUAL,
    count_statement,
    draw_portraits,
    gaussian,
    inner_point,
    labelled,
    listed,
    portrait,
    portrait_named,
    share_of_directions,
    shares,
    squared,
    three_point,
)
from validation.study import Statement, Study

RADII = (0.1, 0.03, 0.01)
"""Radii of random starts: |q| is about sqrt(2/N)."""

CASES = {"a": (gaussian(1.1), three_point(1.0, 5.0)), "b": UNEQUAL}


def theory() -> xr.Dataset:
    """Portraits of both panels."""
    wins = [share_of_directions(CASES["b"], radius) for radius in RADII]
    panels = [labelled(portrait(laws), name) for name, laws in CASES.items()]
    return xr.merge(panels, compat="no_conflicts").assign(
        wins=(("radius",), wins, {"long_name": "part of the directions from which feature 2 is learnt, (b)"}),
        radius=("radius", list(RADII)),
    )


def judge(numbers: xr.Dataset) -> list[Statement]:
    """The paper's statements on both panels."""
    statements = [statement for name in CASES for statement in _on_panel(name, portrait_named(numbers, name))]
    area = shares(portrait_named(numbers, "b"))[1]
    wins = numbers["wins"].values
    words = ", ".join(f"{win:.1%} at |q| = {radius:g}" for win, radius in zip(wins, RADII, strict=True))
    statements.append(
        Statement(
            "from a random start near the origin features are learnt in proportion to their regions, (b)",
            "paper, section S-III-B",
            bool(np.abs(wins[-1] - area) < 0.1),
            f"feature 2 has {area:.1%} of the area, but of the directions {words}",
        )
    )
    return statements


def _on_panel(name: str, result: xr.Dataset) -> list[Statement]:
    paper, Q = "paper, section S-III-B", squared(result)
    origin, inner = int(np.argmin(Q.sum(axis=1))), inner_point(result)
    far = (result["stability"].values == 1) & (Q.max(axis=1) > 0.5)
    first, second = shares(result)
    return [
        count_statement(result, paper, f"({name})"),
        Statement(
            f"the fixed point near (0, 0) is unstable, ({name})",
            paper,
            int(result["stability"][origin]) == -1,
            f"{result['kind'].values[origin]}, growth rate {float(result['growth_rate'][origin]):.4f}",
        ),
        Statement(
            f"the fixed point with both overlaps is unstable, ({name})",
            paper,
            inner is not None and int(result["stability"][inner]) == -1,
            f"{result['kind'].values[inner]} at {listed(Q[[inner]])}, where the paper says near (0.5, 0.5)",
        ),
        Statement(
            f"the fixed points near (1, 0) and (0, 1) are stable, ({name})",
            paper,
            int(far.sum()) == 2 and float(Q[far].min(axis=1).max()) < 1e-9,
            listed(Q[far]),
        ),
        Statement(
            f"the attraction region of feature 2 is larger than that of feature 1, ({name})",
            paper,
            second > first,
            f"{second:.1%} and {first:.1%} of the triangle of (Q1, Q2)",
        ),
    ]


def draw(numbers: xr.Dataset) -> Figure:
    """Portraits of both panels."""
    titles = {name: f"({name}) {first.name}; {second.name}" for name, (first, second) in CASES.items()}
    return draw_portraits({titles[name]: portrait_named(numbers, name) for name in CASES}, columns=2)


STUDY = Study(theory, judge, draw)
