"""Clipped gradients and signs, as in Marshall, Xiao, Agarwala and Paquette (2024): they help against bursts alone.

N. Marshall, K. L. Xiao, A. Agarwala and E. Paquette, *To clip or not to clip: the dynamics of SGD with gradient
clipping in high-dimensions*, arXiv:2406.11733. Least squares on labels with noise of variance 1, which is Gaussian, or
comes in bursts: +-0.3 in 95 % of samples and +-4.3 in the others. A residual is clipped at 0.5 or replaced by its
sign; inputs are white. Drawn is the error |w - u|^2/(2N) at t = 10 against a constant rate, left with Gaussian noise
and right with bursts; circles are means of 16 runs of SGD at N = 500 with two standard errors.
"""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import meanfield
from meanfield.plotting import COLOURS, LINES, MARKERS, place_legend
from validation.study import Statement, Study
from validation.update_rule.papers.cases import agreement, error, problem, simulated, solved

STOP, CLIP, SMALL, BURSTS = 10.0, 0.5, 0.3, 0.05
LARGE = float(np.sqrt((1.0 - (1.0 - BURSTS) * SMALL**2) / BURSTS))
NOISES = {"gaussian": "Gaussian noise", "bursts": "noise in bursts"}
KINDS = {"plain": "plain", "clipped": "clipped at 0.5", "signed": "sign"}
RATES = {
    "plain": (0.05, 0.1, 0.2, 0.35, 0.6, 1.0),
    "clipped": (0.1, 0.2, 0.4, 0.7, 1.2, 2.0),
    "signed": (0.05, 0.1, 0.2, 0.35, 0.6, 1.0),
}


def noise(burst: Any, up: Any) -> Any:
    """Label noise of either sign, which is large in bursts."""
    return (SMALL + (LARGE - SMALL) * burst) * (2 * up - 1)


def gaussian_plain_step(y: Any, s: Any, eps: Any, rate: float) -> Any:
    """Residual."""
    return rate * (y + eps - s)


def gaussian_clipped_step(y: Any, s: Any, eps: Any, rate: float) -> Any:
    """Residual between two bounds."""
    return rate * min(max(y + eps - s, -CLIP), CLIP)


def gaussian_signed_step(y: Any, s: Any, eps: Any, rate: float) -> Any:
    """Sign of the residual."""
    return rate * np.sign(y + eps - s)


def bursts_plain_step(y: Any, s: Any, burst: Any, up: Any, rate: float) -> Any:
    """Residual."""
    return rate * (y + noise(burst, up) - s)


def bursts_clipped_step(y: Any, s: Any, burst: Any, up: Any, rate: float) -> Any:
    """Residual between two bounds."""
    return rate * min(max(y + noise(burst, up) - s, -CLIP), CLIP)


def bursts_signed_step(y: Any, s: Any, burst: Any, up: Any, rate: float) -> Any:
    """Sign of the residual."""
    return rate * np.sign(y + noise(burst, up) - s)


def half_square(y: Any, s: Any) -> Any:
    """Error on labels without noise."""
    return 0.5 * (y - s) ** 2


def rule(step: Any, *levels: float) -> meanfield.Rule:
    """Rule that bends or jumps where a residual is at some levels, whatever the noise is."""
    sizes = (SMALL, -SMALL, LARGE, -LARGE)
    forms = ["y - s + eps"] if step.__name__.startswith("gaussian") else [f"y - s + {size}" for size in sizes]
    kinks = tuple(f"{form} - {level}" for form in forms for level in levels)
    return meanfield.Rule(step, kinks=kinks, observables={"error": half_square})


gaussian_plain, bursts_plain = rule(gaussian_plain_step), rule(bursts_plain_step)
gaussian_clipped, bursts_clipped = (rule(step, -CLIP, CLIP) for step in (gaussian_clipped_step, bursts_clipped_step))
gaussian_signed, bursts_signed = rule(gaussian_signed_step, 0.0), rule(bursts_signed_step, 0.0)


def problem_of(noise: str, kind: str, rate: float) -> object:
    """Short weights that know nothing."""
    return problem(
        f"clipping:{noise}_{kind}",
        {"rate": rate},
        STOP,
        data={"normals": ["eps"]} if noise == "gaussian" else {"coins": {"burst": BURSTS, "up": 0.5}},
        features=[{"initial_overlap": 0.0}],
        students=[{"initial_norm": 0.1}],
        order_parameters={"tolerance": 1e-3},
        time={"outputs": 3},
    )


def name_of(noise: str, kind: str, rate: float) -> str:
    """Name of a case."""
    return f"{noise}, {kind}, {rate:g}"


def cases(every: int = 1) -> dict[str, object]:
    """Problems of all noises and kinds, with every so manieth rate."""
    return {
        name_of(noise, kind, rate): problem_of(noise, kind, rate)
        for noise in NOISES
        for kind in KINDS
        for rate in RATES[kind][::every]
    }


def theory() -> xr.Dataset:
    """All limits."""
    return solved(cases())


def simulate() -> xr.Dataset:
    """SGD at every other rate."""
    return simulated(cases(2))


def at_the_end(numbers: xr.Dataset, noise: str, kind: str) -> np.ndarray:
    """Errors at the last time by rates."""
    last = error(numbers).isel(time=-1)
    return np.array([float(last.sel(case=name_of(noise, kind, rate))) for rate in RATES[kind]])


def judge(numbers: xr.Dataset) -> list[Statement]:
    """Whether clipping helps."""
    best = {(noise, kind): at_the_end(numbers, noise, kind).min() for noise in NOISES for kind in KINDS}
    said = {noise: ", ".join(f"{KINDS[kind]} {best[noise, kind]:.4f}" for kind in KINDS) for noise in NOISES}
    return [
        Statement(
            "with Gaussian noise clipping does not improve the error at the best of six rates",
            "paper, abstract",
            best["gaussian", "plain"] < min(best["gaussian", kind] for kind in ("clipped", "signed")),
            f"smallest errors: {said['gaussian']}",
        ),
        Statement(
            "in other noisy settings clipping can improve it",
            "paper, abstract",
            best["bursts", "clipped"] < 0.5 * best["bursts", "plain"],
            f"smallest errors with bursts: {said['bursts']}",
        ),
        *agreement(numbers, error),
    ]


def draw(numbers: xr.Dataset) -> Figure:
    """Errors at the end against rates."""
    figure, axes = plt.subplots(1, 2, figsize=(9.0, 3.8), layout="constrained", sharey=True)
    for axis, (noise, said) in zip(axes, NOISES.items(), strict=True):
        for place, (kind, label) in enumerate(KINDS.items()):
            values = at_the_end(numbers, noise, kind)
            axis.plot(RATES[kind], values, color=COLOURS[place], ls=LINES[place], label=label)
            if "sgd_observables" in numbers:
                rates = RATES[kind][::2]
                runs = error(numbers, "sgd_").isel(time=-1).sel(case=[name_of(noise, kind, rate) for rate in rates])
                spread = 2.0 * runs.std("replica", ddof=1) / np.sqrt(runs.sizes["replica"])
                style = {"color": COLOURS[place], "marker": MARKERS[place], "ls": "none", "mfc": "white", "ms": 4}
                axis.errorbar(rates, runs.mean("replica"), spread, **style)
        axis.set(xscale="log", yscale="log", xlabel=r"rate $\tau$", title=said, ylim=(0.02, 1.1))
        place_legend(axis)
    axes[0].set(ylabel="error at t = 10")
    return figure


STUDY = Study(theory, judge, draw, simulate)
