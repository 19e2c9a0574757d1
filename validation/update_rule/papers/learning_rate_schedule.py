"""The best schedule of a learning rate, in the spirit of Mignacco and Mori (2025).

F. Mignacco and F. Mori, *A statistical physics framework for optimal learning*, arXiv:2507.07907, find protocols by
optimal control of the equations of order parameters. For a linear perceptron on labels y + sigma eps the error e = |w
- u|^2/N alone decides, with de/dt = -tau (2 - tau) e + tau^2 sigma^2, so that the best rate at each time is tau = e/(e
+ sigma^2): near 1 while the error is that of ignorance, and then 1/t. Left, the schedule, and the best table of eight
rates that a search finds, which knows nothing of this; right, errors of both and of three constant rates, of which
0.128 is the best.
"""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from scipy.integrate import cumulative_trapezoid, solve_ivp, trapezoid
from scipy.optimize import minimize

import meanfield
from meanfield.plotting import COLOURS, place_legend
from validation.study import Statement, Study
from validation.update_rule.papers.cases import agreement, draw_cases, error, problem, simulated, solved

SIGMA, STOP = 1.0, 20.0
CONSTANT = (0.05, 0.128, 0.5)
TABLE = np.append(0.0, np.geomspace(0.5, STOP, 7))
NAMES = {f"constant {rate:g}": rf"$\tau = {rate:g}$" for rate in CONSTANT} | {
    "table": "best table",
    "best": "best rate",
}


def step(y: Any, s: Any, eps: Any, rate: float) -> Any:
    """Residual of a label with noise."""
    return rate * (y + SIGMA * eps - s)


def square(y: Any, s: Any) -> Any:
    """Error on labels without noise."""
    return (y - s) ** 2


linear = meanfield.Rule(step, observables={"error": square})


def best_rate(t: np.ndarray) -> np.ndarray:
    """Rate e/(e + sigma^2) along its own path, e' = -e^2/(e + sigma^2) from e = 2."""

    def velocity(t: float, e: np.ndarray) -> np.ndarray:
        return -(e**2) / (e + SIGMA**2)

    e = solve_ivp(velocity, (0.0, STOP), [2.0], t_eval=t, rtol=1e-10, atol=1e-12).y[0]
    return e / (e + SIGMA**2)


def final(rates: np.ndarray) -> float:
    """Error at the end for a table of rates, by integrals of the linear equation for e, smooth in the rates."""
    t = np.interp(np.linspace(0.0, len(TABLE) - 1.0, 10_001), np.arange(len(TABLE)), TABLE)
    rate = np.interp(t, TABLE, rates)
    decay = cumulative_trapezoid(rate * (2.0 - rate), t, initial=0.0)
    return float(2.0 * np.exp(-decay[-1]) + trapezoid((rate * SIGMA) ** 2 * np.exp(decay - decay[-1]), t))


def best_table(nodes: int) -> np.ndarray:
    """Rates, all alike or one at each node, with the smallest error at the end."""

    def loss(x: np.ndarray) -> float:
        return float(np.log(final(np.exp(np.broadcast_to(x, len(TABLE))))))

    found = minimize(loss, np.full(nodes, -2.0), method="L-BFGS-B", jac="3-point", options={"ftol": 1e-13})
    assert found.success, found.message
    return np.asarray(np.exp(found.x))


def problem_of(rate: object) -> object:
    """Weights of length 1 that know nothing, with a number or a schedule for the rate."""
    data, features = {"normals": ["eps"]}, [{"initial_overlap": 0.0}]
    return problem("learning_rate_schedule:linear", {"rate": rate}, STOP, data=data, features=features)


def schedules() -> dict[str, object]:
    """Rates as a problem has them."""
    times = np.append(0.0, np.geomspace(0.02, STOP, 120))
    found: dict[str, object] = {f"constant {rate:g}": rate for rate in CONSTANT}
    found["table"] = {"times": TABLE.tolist(), "values": best_table(len(TABLE)).tolist()}
    return found | {"best": {"times": times.tolist(), "values": best_rate(times).tolist()}}


def theory() -> xr.Dataset:
    """Limits of all schedules."""
    found = schedules()
    numbers = solved({name: problem_of(rate) for name, rate in found.items()})
    table = found["table"]
    assert isinstance(table, dict)
    return numbers.assign(table_rate=("node", table["values"]), table_time=("node", table["times"]))


def simulate() -> xr.Dataset:
    """SGD of what is shown in time."""
    return simulated({name: problem_of(rate) for name, rate in schedules().items()})


def judge(numbers: xr.Dataset) -> list[Statement]:
    """Whether the schedule is the best."""
    last = {name: float(error(numbers).sel(case=name).isel(time=-1)) for name in NAMES}
    e, constant = last["best"], best_table(1)[0]
    of_constant = final(np.full(len(TABLE), constant))
    implicit = abs(np.log(e / 2.0) - SIGMA**2 / e + SIGMA**2 / 2.0 + STOP)  # the equation for e, integrated
    return [
        Statement(
            "the best constant rate and the best table of eight rates do not end below tau = e/(e + sigma^2)",
            "by hand",
            e < min(of_constant, last["table"]),
            f"error {e:.5f}, with the best table {last['table']:.5f}, with the best constant, {constant:.3f}, "
            f"{of_constant:.5f}",
        ),
        Statement(
            "its error obeys log(e/2) - sigma^2/e + sigma^2/2 = -t",
            "by hand",
            implicit < 2e-3,
            f"off by {implicit:.0e}",
        ),
        *agreement(numbers, error),
    ]


def draw(numbers: xr.Dataset) -> Figure:
    """Schedules and errors."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.8), layout="constrained")
    t = np.linspace(0.0, STOP, 400)
    left.plot(numbers.table_time, numbers.table_rate, "o--", color=COLOURS[3], ms=4, mfc="white", label="best table")
    left.plot(t, best_rate(t), color=COLOURS[4], label=r"best rate, $e/(e + \sigma^2)$")
    left.set(xlabel="time t = k/N", ylabel=r"learning rate $\tau$", ylim=(0, 0.9))
    place_legend(left)
    draw_cases(right, numbers, error, NAMES)
    right.set(yscale="log", xlabel="time t = k/N", ylabel=r"error $|w - u|^2/N$")
    place_legend(right)
    return figure


STUDY = Study(theory, judge, draw, simulate)
