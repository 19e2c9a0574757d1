"""A generative adversarial network of one layer, as in Wang, Hu and Lu (2019): noise that is too strong, or too weak.

C. Wang, H. Hu and Y. M. Lu, *A solvable high-dimensional model of GAN*, Advances in Neural Information Processing
Systems 32 (2019). Real samples are noise of variance eta with a signal of variance D = 3 along a feature, those of the
generator V have the same along V. The discriminator w takes a step of rate tau = 0.2 along real samples and against
generated ones, V one of rate tau' = 0.1 along w, and both go back to the sphere, which is the paper's strong penalty.
Left, the overlap of generator and feature in time, with SGD at N = 4,000. Starts of 0.1 are small at finite N, and runs
that go round lose their common phase: with 64 runs at eta = 1 the mean of SGD is 9.3, 7.1, 6.0 and 3.1 standard errors
off at t = 33 for N = 1,000, 4,000, 16,000 and 64,000, and at eta = 4.2 by 0.011, 0.004 and 0.001 too large at t = 100
for the first three. Right, late overlaps (t from 1000 to
1200) against eta, from equations in closed form. Where eta^2 > tau' D/(2 tau^2) overlaps with w vanish in the end,
below they go round for ever, or stay, at 0.9 and less (dotted lines). Where eta^2 > D/tau, w does not grow.
"""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from scipy.integrate import solve_ivp

import meanfield
from meanfield.plotting import place_legend
from validation.study import Statement, Study
from validation.update_rule.papers.cases import address, agreement, draw_cases, simulated, solved

SIGNAL, RATE, SLOW, STOP = 3.0, 0.2, 0.1, 40.0
START = (0.1, 0.2, 0.1)
CASES = {4.2: "too strong", 2.2: "in between", 1.0: "too weak"}
NOISES = np.round(np.arange(0.8, 4.8, 0.1), 3)
WEAKEST, STRONGEST = np.sqrt(SLOW * SIGNAL / 2.0) / RATE, np.sqrt(SIGNAL / RATE)


def real(w: Any, rate: float) -> Any:
    """Step of the discriminator along a real sample."""
    return rate * w


def fake(w: Any, rate: float) -> Any:
    """Step against a generated one."""
    return -rate * w


def teach(w: Any, c: Any, slow: float) -> Any:
    """Step of the generator along the discriminator."""
    return slow * w * c


def problem_of(noise: float) -> object:
    """Three draws a step, with noise of one variance."""
    law = {"law": "gaussian", "second_moment": SIGNAL}
    generator, by_feature, by_generator = START
    draws = [
        {"along": "u", "gain": {"w": address("adversarial:real")}, "noise": noise},
        {"along": "V", "gain": {"w": address("adversarial:fake")}, "noise": noise},
        {"along": "V", "move": {"V": {"w": address("adversarial:teach")}}, "noise": noise},
    ]
    return meanfield.Problem(
        family="update_rule",
        model={"rule_parameters": {"rate": RATE, "slow": SLOW}, "constraint": "sphere"},
        groups=[{"name": "w"}, {"name": "V"}],
        students=[{"group": "w"}, {"group": "V", "initial_overlap": [by_generator], "hidden": law}],
        features=[{"hidden": law, "initial_overlap": [by_feature, generator]}],
        draws=draws,
        time={"stop": STOP, "outputs": 41},
    )


def velocity(x: np.ndarray, noise: float) -> list[float]:
    """Rates of the overlaps of generator and feature, P, and of w with both, q and r, by hand."""
    P, q, r = x
    one, two = SIGNAL * q, SIGNAL * r
    back = one * q - two * r + 0.5 * RATE * noise * (one * q + two * r + 2.0 * noise)
    return [
        SLOW * (q * two - P * r * two),
        RATE * (one - P * two - q * back),
        RATE * (P * one - two - r * back) + SLOW * two * (1.0 - r * r),
    ]


def followed(noise: float, times: np.ndarray) -> np.ndarray:
    """P, q and r at some times, by hand; shape (3, times)."""
    options = {"method": "LSODA", "rtol": 1e-9, "atol": 1e-12}
    return solve_ivp(lambda t, x: velocity(x, noise), (0.0, times[-1]), START, t_eval=times, **options).y


def generator(numbers: xr.Dataset, prefix: str = "") -> xr.DataArray:
    """Overlap of generator and feature."""
    return numbers[f"{prefix}R"].isel(student=1, feature=0, drop=True)


def theory() -> xr.Dataset:
    """Limits of three strengths of noise, and late overlaps of many."""
    late = np.linspace(1000.0, 1200.0, 201)
    paths = np.array([followed(noise, late)[:2] for noise in NOISES])
    ends = {"least": paths.min(axis=2), "largest": paths.max(axis=2)}
    late_ones = {name: (("noise", "overlap"), values) for name, values in ends.items()}
    return solved({noise: problem_of(noise) for noise in CASES}).assign(late_ones).assign_coords(noise=NOISES)


def simulate() -> xr.Dataset:
    """SGD of what is shown in time."""
    return simulated({noise: problem_of(noise) for noise in CASES}, 4000)


def judge(numbers: xr.Dataset) -> list[Statement]:
    """Whether noise may be too strong and too weak, and where it is."""
    times, P = numbers["time"].values, generator(numbers)
    off = max(float(abs(P.sel(case=noise) - followed(noise, times)[0]).max()) for noise in CASES)
    least, largest = numbers["least"], numbers["largest"]
    swing = (largest - least).isel(overlap=1)
    final = least.isel(overlap=0)
    between = [noise for noise in NOISES if WEAKEST + 0.05 < noise < STRONGEST - 0.05]
    strong = [noise for noise in NOISES if noise > STRONGEST + 0.1]
    return [
        Statement("the limit solves the equations in closed form", "by hand", off < 1e-4, f"off by {off:.0e}"),
        Statement(
            "noise that is too strong leads to failure of feature recovery",
            "paper",
            float(final.sel(noise=strong).max()) < 0.15,
            f"the generator keeps an overlap of {float(final.sel(noise=strong).max()):.2f} at most, of 0.1 at the "
            f"start, for eta > {STRONGEST:.2f} = (D/tau)^(1/2)",
        ),
        Statement(
            "noise that is too weak causes oscillation",
            "paper",
            float(swing.sel(noise=1.0)) > 1.0,
            f"at eta = 1 the overlap of discriminator and feature swings by {float(swing.sel(noise=1.0)):.2f} for ever",
        ),
        Statement(
            "in between the generator learns, and the discriminator forgets",
            "by hand",
            float(final.sel(noise=between).min()) > START[0] and float(swing.sel(noise=between).max()) < 0.01,
            f"from eta = {between[0]:g} to {between[-1]:g} overlaps of {float(final.sel(noise=between).max()):.2f} to "
            f"{float(final.sel(noise=between).min()):.2f} stay",
        ),
        *agreement(numbers, generator),
    ]


def draw(numbers: xr.Dataset) -> Figure:
    """The generator in time, and late overlaps."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.8), layout="constrained")
    draw_cases(left, numbers, generator, {noise: rf"$\eta = {noise:g}$, {said}" for noise, said in CASES.items()})
    left.set(xlabel="time t = k/N", ylabel="overlap of generator and feature", ylim=(-0.05, 1))
    place_legend(left)
    names = ("generator and feature", "discriminator and feature")
    for place, name in enumerate(names):
        ends = numbers["least"].isel(overlap=place), numbers["largest"].isel(overlap=place)
        right.fill_between(NOISES, *ends, color=f"C{place}", alpha=0.3, lw=1.2, label=name)
    for edge in (WEAKEST, STRONGEST):
        right.axvline(edge, color="0.6", lw=0.8, ls=":")
    right.set(xlabel=r"variance $\eta$ of the noise", ylabel="late overlaps, from least to largest", ylim=(-1, 1))
    place_legend(right)
    return figure


STUDY = Study(theory, judge, draw, simulate)
