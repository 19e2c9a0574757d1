"""Weight decay against global modulation: why filters do not match noise tokens.

The paper says that noise tokens are not learnt because patterns that generators use are preferred from above (global
modulation). Its runs have weight decay besides. Without it the same networks, P = 5 and beta = 5 with ReLU, end at a
lower loss, and match noise tokens nearly as often as a random start does: what removes them from the filters is decay,
in 5000 batches with rate (learning rate) (decay)/(1 - momentum) = 0.001 per batch. Three times as many batches without
decay change little; a start with a tenth of the weights does most of what decay does.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from meanfield.plotting import COLOURS
from validation.alpha_contrastive.figures.figure_4 import NOT_LEARNT, WORKS
from validation.alpha_contrastive.figures.scores import nothing, sgd_runs
from validation.study import Statement, Study

WITH, SLOW = "decay 5e-3", "decay 5e-3, learning rate 0.002"
WITHOUT, LONGER, SMALL = "no decay", "no decay, 3 times as long", "no decay, start / 10"


def judge(numbers: xr.Dataset) -> list[Statement]:
    """Statements on decay and its effect on both scores and on the loss."""
    if "sgd_minus" not in numbers:
        return []
    plus, minus, loss = (numbers[f"sgd_{name}"].mean("seed") for name in ("plus", "minus", "loss"))

    def shown(case: str) -> str:
        return f"chi+ {float(plus.sel(case=case)):.3f}, chi- {float(minus.sel(case=case)):.3f}"

    return [
        Statement(
            "with weight decay patterns are learnt, and noise tokens are not",
            "paper, section 5.1, figures 5 and 9",
            float(plus.sel(case=WITH)) > WORKS and float(minus.sel(case=WITH)) < NOT_LEARNT,
            shown(WITH),
        ),
        Statement(
            "they are learnt with the printed learning rate, 0.002",
            "paper, section 5",
            float(plus.sel(case=SLOW)) > WORKS,
            shown(SLOW),
        ),
        Statement(
            "noise tokens are not learnt because of global modulation: not without weight decay either",
            "paper, section 5.1",
            float(minus.sel(case=WITHOUT)) < NOT_LEARNT,
            shown(WITHOUT),
        ),
        Statement(
            "nor after three times as many batches",
            "paper, section 5.1",
            float(minus.sel(case=LONGER)) < NOT_LEARNT,
            shown(LONGER),
        ),
        Statement(
            "without decay the loss is lower all the same",
            "ours",
            float(loss.sel(case=WITHOUT)) < float(loss.sel(case=WITH)),
            f"{float(loss.sel(case=WITHOUT)):.4f} against {float(loss.sel(case=WITH)):.4f}",
        ),
        Statement(
            "what is left of the start matters: a tenth of it raises chi+ and lowers chi- without decay",
            "ours",
            bool((plus.sel(case=SMALL) > plus.sel(case=WITHOUT)) and (minus.sel(case=SMALL) < minus.sel(case=WITHOUT))),
            shown(SMALL),
        ),
    ]


def draw(numbers: xr.Dataset) -> Figure:
    """Draw the scores chi_+ and chi_- of all cases, each seed a point."""
    figure = Figure(figsize=(7.5, 3.6), layout="constrained")
    axes, cases = figure.subplots(), numbers["case"].values
    for k, (name, label, marker) in enumerate(
        (("sgd_plus", r"$\bar\chi_+$, patterns", "o"), ("sgd_minus", r"$\bar\chi_-$, noise tokens", "s"))
    ):
        for s, seed in enumerate(numbers["seed"].values):
            values, places = (
                numbers[name].sel(seed=seed),
                np.arange(len(cases)) + 0.06 * (s - 0.5 * (numbers.sizes["seed"] - 1)),
            )
            axes.plot(places, values, marker, color=COLOURS[k], label=label if s == 0 else None, markersize=6)
    axes.set_xticks(np.arange(len(cases)), [str(case).replace(", ", ",\n") for case in cases])
    axes.set(ylabel="score", ylim=(-0.03, 1.03))
    axes.grid(alpha=0.3)
    figure.legend(loc="outside upper center", ncols=2)
    return figure


STUDY = Study(nothing, judge, draw, partial(sgd_runs, "decay"))
