"""Two tasks, one after the other, as in Lee, Goldt and Saxe (2021): similar tasks interfere most if not too similar.

S. Lee, S. Goldt and A. Saxe, *Continual learning in the teacher-student setup: impact of task similarity*, Proceedings
of the 38th International Conference on Machine Learning (2021). Two units, which are squares here so that averages have
closed forms, learn from a teacher of one unit until t = 60, and from another one from then on, with heads of their own
for each task. The overlap V of both teachers is how similar the features of the tasks are. Left, the error on the first
task, whose heads rest after the switch; right, errors on both tasks after the first and after both: lines are closed
forms, marks limits. SGD is at N = 2000.
"""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from scipy.integrate import solve_ivp

import meanfield
from meanfield.plotting import COLOURS, MARKERS, place_legend
from validation.study import Statement, Study
from validation.update_rule.papers.cases import address, agreement, draw_cases, error, problem, simulated, solved

RATE, SWITCH, STOP = 0.1, 60.0, 120.0
SHOWN = (0.0, 0.7, 1.0)
SIMILARITIES = (0.0, 0.2, 0.4, 0.6, 0.7, 0.8, 0.9, 1.0)
R, NORM = np.array([[0.5, 0.1], [0.1, 0.5]]), 0.6
HEADS = {"p1": 0.8, "p2": 0.3, "q1": 0.4, "q2": 0.6}
"""Heads of the first task and of the second at the start."""


def missed(y: Any, s: Any, V: float, second: float, heads: Any) -> Any:
    """What the student misses of the answer of the present task."""
    return ((1 - second) * y[0] + second * (V * y[0] + np.sqrt(1 - V * V) * y[1])) ** 2 - np.sum(heads * s * s)


def step(y: Any, s: Any, V: float, second: float, p1: float, p2: float, q1: float, q2: float) -> Any:
    """Gradient of the squared error of the present task."""
    heads = (1 - second) * np.array([p1, p2]) + second * np.array([q1, q2])
    return RATE * missed(y, s, V, second, heads) * heads * 2 * s


def p1_step(y: Any, s: Any, V: float, second: float, p1: float, p2: float) -> Any:
    """The first head of the first task."""
    return (1 - second) * RATE * missed(y, s, V, 0.0, np.array([p1, p2])) * s[0] ** 2


def p2_step(y: Any, s: Any, V: float, second: float, p1: float, p2: float) -> Any:
    """The second head of the first task."""
    return (1 - second) * RATE * missed(y, s, V, 0.0, np.array([p1, p2])) * s[1] ** 2


def q1_step(y: Any, s: Any, V: float, second: float, q1: float, q2: float) -> Any:
    """The first head of the second task."""
    return second * RATE * missed(y, s, V, 1.0, np.array([q1, q2])) * s[0] ** 2


def q2_step(y: Any, s: Any, V: float, second: float, q1: float, q2: float) -> Any:
    """The second head of the second task."""
    return second * RATE * missed(y, s, V, 1.0, np.array([q1, q2])) * s[1] ** 2


def first_error(y: Any, s: Any, V: float, p1: float, p2: float) -> Any:
    """Error on the first task."""
    return 0.5 * missed(y, s, V, 0.0, np.array([p1, p2])) ** 2


def second_error(y: Any, s: Any, V: float, q1: float, q2: float) -> Any:
    """Error on the second task."""
    return 0.5 * missed(y, s, V, 1.0, np.array([q1, q2])) ** 2


two_tasks = meanfield.Rule(step, observables={"first": first_error, "second": second_error})


def problem_of(similarity: float) -> object:
    """Both tasks, one in each phase."""
    key = "model.rule_parameters.second"
    return problem(
        "continual_learning:two_tasks",
        {"V": similarity, "second": 0.0},
        STOP,
        features=[{"initial_overlap": column.tolist()} for column in R.T],
        students=[{"initial_norm": NORM}] * 2,
        side={name: {"start": v, "step": address(f"continual_learning:{name}_step")} for name, v in HEADS.items()},
        phases=[{"stop": SWITCH}, {"stop": STOP, "set": {key: 1.0}}],
        time={"outputs": 61},
    )


def rates(C: np.ndarray, h: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """dR/dt, dQ/dt and dv/dt for Delta = sum_a h_a psi_a^2, by Wick's theorem, with C the covariance of psi."""
    H, v = np.diag(h), -h[:2]
    CHC, mean, square = C @ H @ C, np.trace(H @ C), np.trace(H @ C @ H @ C)
    E = 2.0 * RATE * (mean * C + 2.0 * CHC)[:, :2] * v
    sixth = C * (mean**2 + 2.0 * square) + 4.0 * mean * CHC + 8.0 * CHC @ H @ C
    noise = 4.0 * RATE**2 * np.outer(v, v) * sixth[:2, :2]
    return E[2:].T, E[:2] + E[:2].T + noise, RATE * (mean * np.diag(C) + 2.0 * np.diag(CHC))[:2]


def errors(similarity: float, times: np.ndarray) -> np.ndarray:
    """Errors on both tasks at some times, by equations in closed form for teachers that overlap."""
    of = np.array([[1.0, similarity], [0.0, np.sqrt(1.0 - similarity**2)]])
    heads, found = np.array(list(HEADS.values())).reshape(2, 2), []

    def joined(y: np.ndarray) -> np.ndarray:
        overlap = y[:4].reshape(2, 2)
        return np.block([[y[4:8].reshape(2, 2), overlap], [overlap.T, of.T @ of]])

    def velocity(t: float, y: np.ndarray, task: int) -> np.ndarray:
        return np.concatenate([each.ravel() for each in rates(joined(y), np.append(-y[8:], np.eye(2)[task]))])

    y = np.concatenate([(R @ of).ravel(), NORM * np.eye(2).ravel(), np.zeros(2)])
    for task, (start, stop) in enumerate(((0.0, SWITCH), (SWITCH, STOP))):
        y[8:] = heads[task]
        here = np.append(times[(times > start) & (times < stop)], stop)
        path = solve_ivp(velocity, (start, stop), y, args=(task,), t_eval=here, rtol=1e-9, atol=1e-11).y.T
        for each in path:
            heads[task], C = each[8:], joined(each)
            H = [np.diag(np.append(-heads[one], np.eye(2)[one])) for one in range(2)]
            found.append([0.5 * (np.trace(h @ C) ** 2 + 2.0 * np.trace(h @ C @ h @ C)) for h in H])
        y = path[-1]
    return np.array(found)


def theory() -> xr.Dataset:
    """Limits, and closed forms."""
    numbers = solved({V: problem_of(V) for V in SIMILARITIES})
    closed = [errors(V, numbers["time"].values) for V in SIMILARITIES]
    return numbers.assign(closed=(("case", "late", "observable"), closed))


def simulate() -> xr.Dataset:
    """SGD from the same start."""
    return simulated({V: problem_of(V) for V in SHOWN}, 2000)


def judge(numbers: xr.Dataset) -> list[Statement]:
    """Closed form, and where forgetting is largest."""
    after = numbers.observables.isel(time=slice(1, None)).transpose("case", "time", "observable")
    off = float(abs(after.values - numbers.closed.values).max())
    switch, last = (after.sel(time=time).values for time in (SWITCH, STOP))
    forgotten = (last - switch)[:, 0]
    worst = int(forgotten.argmax())
    said = ", ".join(f"{forgotten[place]:.3f} at V = {SIMILARITIES[place]:g}" for place in (0, worst, -1))
    taught = max(switch[:, 0].max(), last[:, 1].max())
    return [
        Statement("errors on both tasks are the closed form", "by hand", off < 1e-4, f"off by {off:.0e} at most"),
        Statement(
            "intermediate similarity leads to the greatest forgetting",
            "paper, abstract",
            forgotten[worst] > 2.0 * max(forgotten[0], forgotten[-1]),
            f"the error on the first task grows by {said}",
        ),
        Statement(
            "both tasks are learnt while they are taught",
            "ours",
            taught < 2e-3,
            f"errors at the end of each are {taught:.4f} at most",
        ),
        Statement(
            "what is learnt of similar tasks is of use: the second begins with a smaller error",
            "ours",
            bool(np.all(np.diff(switch[:, 1]) < 0)),
            f"{switch[0, 1]:.3f} at V = 0 and {switch[-1, 1]:.3f} at V = 1",
        ),
        *agreement(numbers, error),
    ]


def draw(numbers: xr.Dataset) -> Figure:
    """Errors in time, and against similarities."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.8), layout="constrained")
    draw_cases(left, numbers, error, {V: f"V = {V:g}" for V in SHOWN})
    left.axvline(SWITCH, color="0.6", lw=0.8, ls=":")
    left.set(yscale="log", xlabel="time t = k/N", ylabel="error on the first task")
    place_legend(left)
    shown = {
        "first task, after it": (SWITCH, 0),
        "second task, before it": (SWITCH, 1),
        "first task, after both": (STOP, 0),
    }
    V = np.linspace(0.0, 1.0, 41)
    closed = np.array([errors(similarity, np.array([SWITCH, STOP])) for similarity in V])
    for place, (label, (time, task)) in enumerate(shown.items()):
        style = {"color": COLOURS[place], "marker": MARKERS[place], "mfc": "white", "ls": "none", "label": label}
        right.plot(V, closed[:, int(time == STOP), task], lw=1.2, color=COLOURS[place])
        right.plot(SIMILARITIES, numbers.observables.sel(time=time).isel(observable=task), **style)
    right.set(xlabel="overlap V of teachers", ylabel="error")
    place_legend(right)
    return figure


STUDY = Study(theory, judge, draw, simulate)
