"""Figure 1 of the paper, right: power iteration on sums of patterns that are nearly orthogonal.

The paper shows that steps of power iteration die out, and says that near each pattern u_m there still is a locally
maximal eigenvector if |U^T U - I| is small. It prints neither U nor the probabilities q. Here there are three patterns
with q = 0.2, 0.25, 0.3 and U with one number above its diagonal, and power iteration starts at the patterns. With 0.02
and 0.05 it is as the paper says. With 0.1 the maxima near two of the three patterns have moved to a wall: filters do
come to rest there, but no eigenvector is there, and power iteration jumps from one side to the other for ever.
"""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import meanfield
from meanfield.plotting import curve_style
from validation.alpha_contrastive.figures.one_layer import Array, make_problem
from validation.study import Statement, Study

Q = np.array([0.2, 0.25, 0.3])
OFF_DIAGONALS = 0.0, 0.02, 0.05, 0.1
STEPS = 400
"""Steps of power iteration: after that many they have died out, or never will."""

DIED_OUT = 1e-8
"""Length of the last step of power iteration that has converged; ratios of eigenvalues are 0.6 and less."""

CLOSE_COSINE = 0.9
"""Cosine of a filter and a pattern that are close."""

LARGEST_Q = 0.5 * (3.0 - np.sqrt(5.0))
BATCH, RATE, SGD_STEPS, SGD_RUNS = 400, 0.05, 4000, 20


def patterns(off: float) -> Array:
    """U, whose columns are patterns."""
    return np.eye(3) + off * np.triu(np.ones((3, 3)), 1)


def atoms(off: float, q: Array = Q) -> tuple[Array, Array]:
    """Points x = U y and their probabilities: all choices of which patterns are on."""
    on = np.array(list(np.ndindex(2, 2, 2)))
    y = np.where(on, np.sqrt((1.0 - q) / q), -np.sqrt(q / (1.0 - q)))
    return y @ patterns(off).T, np.prod(np.where(on, q, 1.0 - q), axis=1)


def matrix(w: Array, off: float) -> Array:
    """A(w), the covariance of the inputs that ReLU lets pass."""
    x, p = atoms(off)
    x = x * (x @ w > 0.0)[:, None]
    return np.asarray((x * p[:, None]).T @ x - np.outer(p @ x, p @ x))


def power_iteration(w: Array, off: float) -> tuple[Array, Array]:
    """Lengths of steps, and the last filter."""
    steps = np.empty(STEPS)
    for t in range(STEPS):
        new = matrix(w, off) @ w
        new /= np.linalg.norm(new)
        steps[t], w = np.linalg.norm(new - w), new
    return steps, w


def stable_points(off: float) -> xr.Dataset:
    """Filters at rest that attract, from the library."""
    law = {"law": "latent_summation", "directions": patterns(off).tolist(), "probabilities": Q.tolist()}
    points = meanfield.solve(make_problem("relu", law), "critical_points")
    return points.isel(point=points["stable"].values > 0)


def theory() -> xr.Dataset:
    """Steps of power iteration, and what is near each pattern."""
    shape = len(OFF_DIAGONALS), 3
    steps, closest, near = np.empty((*shape, STEPS)), np.full(shape, np.nan), np.zeros((*shape, 2), dtype=int)
    rest, others = np.full((*shape, 3), np.nan), np.zeros(len(OFF_DIAGONALS))
    for i, off in enumerate(OFF_DIAGONALS):
        stable = stable_points(off)
        unit = patterns(off) / np.linalg.norm(patterns(off), axis=0)
        cosine = stable["w"].values @ unit
        for m in range(3):
            steps[i, m], _ = power_iteration(unit[:, m], off)
            k = int(cosine[:, m].argmax())
            closest[i, m], rest[i, m] = cosine[k, m], stable["w"].values[k]
            near[i, m] = stable["lme"].values[k], stable["wall"].values[k]
        others[i] = stable["basin_share"].values[cosine.max(axis=1) < CLOSE_COSINE].sum()
    dims = ("off_diagonal", "pattern")
    return xr.Dataset(
        {
            "step": ((*dims, "iteration"), steps, {"long_name": "length of a step of power iteration"}),
            "cosine": (dims, closest, {"long_name": "cosine of a pattern and the nearest filter at rest"}),
            "rest": ((*dims, "coordinate"), rest, {"long_name": "that filter"}),
            "eigenvector": (dims, near[..., 0], {"long_name": "whether it is a locally maximal eigenvector"}),
            "wall": (dims, near[..., 1], {"long_name": "whether it is on a wall"}),
            "others": ("off_diagonal", others, {"long_name": "share of starts that come to no pattern"}),
        },
        {"off_diagonal": list(OFF_DIAGONALS)},
    )


def simulate() -> xr.Dataset:
    """SGD of one filter from each pattern, in batches, with steps that become shorter: the mean filter at the end."""
    rng, ends = np.random.default_rng(0), np.empty((len(OFF_DIAGONALS), 3, SGD_RUNS, 3))
    for i, off in enumerate(OFF_DIAGONALS):
        x, p = atoms(off)
        unit = patterns(off) / np.linalg.norm(patterns(off), axis=0)
        w = np.repeat(unit.T, SGD_RUNS, axis=0)
        for t in range(SGD_STEPS):
            share = rng.multinomial(BATCH, p, size=len(w)) / BATCH
            h = np.maximum(w @ x.T, 0.0)
            pull = share * (h - np.sum(share * h, axis=1, keepdims=True))
            w += RATE * (1.0 - t / SGD_STEPS) * (pull * (h > 0.0)) @ x
            w /= np.linalg.norm(w, axis=1, keepdims=True)
        ends[i] = w.reshape(3, SGD_RUNS, 3)
    return xr.Dataset({"sgd_end": (("off_diagonal", "pattern", "run", "coordinate"), ends)})


def judge(numbers: xr.Dataset) -> list[Statement]:
    """Where power iteration converges, and what attracts near patterns."""
    found = []
    for off in OFF_DIAGONALS[1:]:
        one = numbers.sel(off_diagonal=off)
        size = np.linalg.norm(patterns(off).T @ patterns(off) - np.eye(3), 2)
        last, eigenvectors = one["step"].values[:, -1], int(one["eigenvector"].sum())
        where = f"off-diagonal {off:g}, |U^T U - I| = {size:.2f}"
        found += [
            Statement(
                f"{where}: power iteration converges from each pattern",
                "paper, figure 1",
                bool(np.all(last < DIED_OUT)),
                f"from {int(np.count_nonzero(last < DIED_OUT))} of 3; last steps "
                + ", ".join(f"{x:.1g}" for x in last),
            ),
            Statement(
                f"{where}: a locally maximal eigenvector is near each pattern",
                "paper, section 3.3, figure 1",
                eigenvectors == 3 and bool(np.all(one["cosine"] > CLOSE_COSINE)),
                f"{eigenvectors} of 3, {int(one['wall'].sum())} maxima are on walls instead; cosines "
                + ", ".join(f"{x:.4f}" for x in one["cosine"].values),
            ),
        ]
    at_all = bool(np.all(numbers["cosine"] > CLOSE_COSINE))
    found += [
        Statement(
            "near each pattern there is a local optimum, eigenvector or not",
            "paper, section 3.3",
            at_all,
            f"cosines are {float(numbers['cosine'].min()):.3f} and more",
        ),
        Statement(
            "besides the patterns the filter along -U sqrt(q/(1 - q)) attracts, which sees the point where all are off",
            "theory, section 3",
            float(numbers["others"][0]) > 0.05,
            f"share {float(numbers['others'][0]):.2f} of random starts, with orthogonal patterns",
        ),
        _threshold(),
    ]
    if "sgd_end" in numbers:
        away = _away(numbers)
        found.append(
            Statement(
                "SGD from a pattern comes to rest at the maximum near it, on a wall or not",
                "theory, section 3",
                float(away.max()) < 0.05,
                f"{float(away.max()):.3f} from it at most, in {away.size} runs",
            )
        )
    return found


def _away(numbers: xr.Dataset) -> Array:
    """Distances of filters of SGD from the maxima that they should come to."""
    return np.linalg.norm(numbers["sgd_end"].values - numbers["rest"].values[:, :, None], axis=-1)


def _threshold() -> Statement:
    """Whether u_m is the top eigenvector below q = 0.382 and not above, for orthonormal patterns."""
    right = []
    for q in (LARGEST_Q - 0.01, LARGEST_Q + 0.01):
        x, p = atoms(0.0, np.array([q, 0.2, 0.25]))
        x = x * (x[:, 0] > 0.0)[:, None]
        values, vectors = np.linalg.eigh((x * p[:, None]).T @ x - np.outer(p @ x, p @ x))
        right.append(abs(vectors[0, values.argmax()]) > 0.999)
    return Statement(
        "with orthogonal patterns u_m is a locally maximal eigenvector for q_m < 0.382",
        "paper, (9)",
        right == [True, False],
        f"top eigenvector at q = {LARGEST_Q - 0.01:.3f}: {right[0]}, at {LARGEST_Q + 0.01:.3f}: {right[1]}",
    )


def draw(numbers: xr.Dataset) -> Figure:
    """Steps of power iteration against their number, a panel for each U."""
    figure = Figure(figsize=(9.5, 3.4), layout="constrained")
    panels = figure.subplots(1, len(OFF_DIAGONALS) - 1, sharey=True)
    iteration = np.arange(1, 61)
    for axes, off in zip(panels, OFF_DIAGONALS[1:], strict=True):
        for m in range(3):
            step = numbers["step"].sel(off_diagonal=off)[m].values[: len(iteration)]
            axes.semilogy(
                iteration, np.maximum(step, 1e-17), label=f"from $u_{m + 1}$, $q = {Q[m]:g}$", **curve_style(m)
            )
        axes.set_title(f"off-diagonal {off:g}")
        axes.set(xlabel="iteration $t$", ylim=(1e-16, 3.0))
        axes.grid(alpha=0.3)
    panels[0].set_ylabel("step $|w(t + 1) - w(t)|$")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=3, fontsize="small")
    return figure


STUDY = Study(theory, judge, draw, simulate)
