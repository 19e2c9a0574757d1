"""Noise that channels share: quadratic outputs decorrelate, ReLU synchronises, and channels of one feature coalesce.

Without a penalty channels are coupled by the samples that they share alone. While nothing is learnt, q = 0, their
overlap follows dM/dt = Lambda_11 (k(M) - M) with the kernel k of one function of Gaussian variables, which has closed
forms: the study integrates that equation by itself, and compares the ODE of the library and SGD as a chain. On a
feature that both have learnt the rate kappa at which 1 - M12 shrinks has a closed form, too.
"""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from scipy.integrate import solve_ivp

import meanfield
from meanfield.families.contrastive.channels.thresholds import collapsed_state
from meanfield.families.contrastive.problem import Problem
from meanfield.plotting import curve_style, marker_style, place_legend
from validation.contrastive.channels.problems import HEAVY, labelled, mean_and_error, several
from validation.study import Statement, Study, within_errors

CASES = {
    "ReLU": {"activation": "relu", "tau": 0.7, "m": 1, "stop": 8.0, "M": 0.0},
    "quadratic": {"activation": "quadratic", "tau": 0.05, "m": 2, "stop": 8.0, "M": 0.8},
}
"""Training without centring and penalty, from overlaps M."""

OUTPUTS = 17
N, REPLICAS = 2000, 200

TAU, BATCH, FIRST, LAST = 0.005, 10, 20.0, 60.0
"""Training of two channels on one feature, and the times between which their approach is measured."""


def unlearnt(case: str, **settings: float) -> Problem:
    own = dict(CASES[case])
    M = own.pop("M")
    return several([HEAVY], np.zeros((1, 2)), M, centering="none", outputs=OUTPUTS, **(own | settings))


def alone(case: str) -> np.ndarray:
    """M12 by the equation with the closed form of the kernel and of Lambda_11, which is (4 tau^2/m) E[f^2]."""
    own = CASES[case]

    def kernel(M: float) -> float:
        if case == "ReLU":  # of max(x, 0): the arc-cosine kernel
            angle = np.arccos(np.clip(M, -1.0, 1.0))
            return float((np.sin(angle) + (np.pi - angle) * M) / np.pi)
        return (9 * M + 6 * M**3) / 15  # of x^3

    square = {"ReLU": 0.5, "quadratic": 4 * 15.0}[case]
    noise = 4 * own["tau"] ** 2 / own["m"] * square
    times = np.linspace(0.0, own["stop"], OUTPUTS)
    found = solve_ivp(
        lambda t, M: noise * (kernel(M[0]) - M), (0.0, own["stop"]), [own["M"]], t_eval=times, rtol=1e-10, atol=1e-12
    )
    return np.asarray(found.y[0])


def together(**settings: float) -> Problem:
    """Two channels on one feature, at its stationary overlap, nearly equal."""
    base = {"centering": "none", "tau": TAU, "m": BATCH}
    state = collapsed_state(several([HEAVY], np.zeros((1, 2)), **base))
    assert state is not None
    q = np.full((1, 2), state.overlap)
    M12 = 1 - 0.1 * (1 - state.overlap**2)
    return several([HEAVY], q, M12, **(base | {"stop": LAST, "outputs": 7} | settings))


def coalescence() -> tuple[float, float]:
    """Kappa by the closed form at the stationary overlap, and from the vector field."""
    problem = together()
    state = collapsed_state(problem)
    assert state is not None
    (m2, m4), Q = HEAVY, state.overlap**2
    m6 = m4**2 / m2
    kappa, nu, beta = m4 - 3, m2 - 1, m6 - 15
    T2 = 1 + Q * nu
    T4 = 3 + 6 * Q * nu + Q**2 * (kappa - 6 * nu)
    T6 = beta * Q**3 + 15 * kappa * Q**2 * (1 - Q) + 45 * nu * Q * (1 - Q) ** 2 + 15
    return 8 * TAU * (3 * T2 - T4) + 16 * TAU**2 / BATCH * (9 * T4 - T6), state.noise_rate


def theory() -> xr.Dataset:
    """M12 of both activations in two ways, and the rate of coalescence in three."""
    run = [meanfield.solve_order_parameters(unlearnt(case))["M"].values[:, 0, 1] for case in CASES]
    near = meanfield.solve_order_parameters(together())
    distance = 1 - near["M"].sel(time=[FIRST, LAST], method="nearest").values[:, 0, 1]
    closed, field = coalescence()
    return labelled(
        {
            "M12": (("case", "output"), run, "overlap of the channels"),
            "alone": (("case", "output"), [alone(case) for case in CASES], "the same by an equation of its own"),
            "kappa": ((), closed, "rate of coalescence, closed form"),
            "kappa_field": ((), field, "the same from the vector field"),
            "kappa_ode": ((), float(np.log(distance[1] / distance[0]) / (LAST - FIRST)), "the same along the ODE"),
        },
        case=list(CASES),
    )


def simulate() -> xr.Dataset:
    """The chain from the same starts."""
    found = []
    for seed, case in enumerate(CASES):
        chain = meanfield.simulate_sgd(
            unlearnt(case, dimension=N, replicas=REPLICAS, seed=seed, method="chain"), workers=1
        )
        found.append(mean_and_error(chain["M"].values[:, :, 0, 1]))
    near = meanfield.simulate_sgd(together(dimension=N, replicas=REPLICAS // 10, seed=9, method="chain"), workers=1)
    distance = 1 - near["M"].sel(time=[FIRST, LAST], method="nearest").values[:, :, 0, 1]
    rate, error = mean_and_error(np.log(distance[:, 1] / distance[:, 0]) / (LAST - FIRST))
    mean, errors = np.swapaxes(found, 0, 1)
    return labelled(
        {
            "sgd": (("case", "output"), mean, "mean overlap of the channels in SGD"),
            "sgd_error": (("case", "output"), errors, "its standard error"),
            "sgd_kappa": ((), rate, "mean rate of coalescence in SGD"),
            "sgd_kappa_error": ((), error, "its standard error"),
        }
    )


def judge(numbers: xr.Dataset) -> list[Statement]:
    """Statements on shared noise."""
    ours, found = "theory, section 6", []
    relu, quadratic = (numbers["M12"].sel(case=case).values for case in CASES)
    off = float(np.abs(numbers["M12"] - numbers["alone"]).max())
    times = np.linspace(0.0, CASES["ReLU"]["stop"], OUTPUTS)
    values = f"M12(2) = {relu[times == 2.0][0]:.5f}, M12(4) = {relu[times == 4.0][0]:.5f}"
    found.append(
        Statement("ReLU channels synchronise though they learn nothing", ours, np.all(np.diff(relu) > 0), values)
    )
    values = f"M12 from {quadratic[0]:.2f} to {quadratic[-1]:.4f}"
    found.append(Statement("quadratic channels decorrelate", ours, np.all(np.diff(quadratic) < 0), values))
    found.append(
        Statement("the ODE is the equation with the kernel in closed form", ours, off < 1e-8, f"off by {off:.1e}")
    )
    kappa, field, ode = (float(numbers[name]) for name in ("kappa", "kappa_field", "kappa_ode"))
    text = "1 - M12 shrinks on a common feature at the rate of the closed form, in the vector field and along the ODE"
    close = abs(field / kappa - 1) < 1e-3 and abs(ode / kappa - 1) < 1e-2
    found.append(Statement(text, ours, close and kappa < 0, f"{kappa:.5f}, {field:.5f}, {ode:.5f}"))
    if "sgd" in numbers:
        away = (np.abs(numbers["sgd"] - numbers["M12"]) / numbers["sgd_error"]).isel(output=slice(1, None))
        found.append(within_errors(f"SGD at N = {N} follows the ODE of M12", "theory, section 4", away, 4.0))
        rate, error = float(numbers["sgd_kappa"]), float(numbers["sgd_kappa_error"])
        number = f"{rate:.5f}({error:.5f}) against {kappa:.5f}"
        found.append(
            Statement(
                f"channels coalesce in SGD at N = {N}, at this rate within 10 %",
                ours,
                abs(rate / kappa - 1) < 0.1,
                number,
            )
        )
    return found


def draw(numbers: xr.Dataset) -> Figure:
    """M12 against time."""
    figure = Figure(figsize=(6.0, 4.0), layout="constrained")
    axes = figure.subplots()
    for place, case in enumerate(CASES):
        own, times = numbers.sel(case=case), np.linspace(0.0, CASES[case]["stop"], OUTPUTS)
        axes.plot(times, own["M12"], label=f"{case}, ODE", **curve_style(place))
        style = marker_style(place) | {"markersize": 4}
        axes.errorbar(times, own["sgd"], 2 * own["sgd_error"], label=f"{case}, SGD, N = {N}", **style)
    axes.set(xlabel="time $t = k/N$", ylabel="overlap of the channels $M_{12}$")
    place_legend(axes)
    return figure


STUDY = Study(theory, judge, draw, simulate, must_hold=True)
