"""Hidden variables from real data: handwritten digits for which the prediction holds, and others for which it does not.

The data of the theory are x = U c/sqrt(N) + a with any law of c and a Gaussian background a that is white orthogonally
to the features. Here c are the two leading principal components of scikit-learn's handwritten digits (1797 images of
8 x 8 pixels; 61 directions in which they vary), sphered: dependent, and with lighter tails than a Gaussian. The file
data/reference/digits_components.csv holds them.

Four kinds of training data, the same network, learning rate and batch size, one prediction:

1. sphered data with these hidden variables and a Gaussian background in N = 512 dimensions, as the theory has it;
2. the same in N = 61 dimensions: what so few dimensions cost;
3. the sphered images themselves (N = 61): the background is what else there is in an image, neither Gaussian nor
   independent of c;
4. the raw images, centred and scaled by one number (N = 64): their covariance is far from the identity.

The prediction holds for 1 and 2, up to fluctuations of order 1/sqrt(N) and an error of the mean of order 1/N, which is
1.1/N here (4000 runs each at N = 61, 122, 244 and 512 give 1.1, 1.1, 1.1 and 1.2). It does not hold for 3 and 4: the
other 59 directions of real images carry structure that SGD sees as much as the two that we follow, and raw images vary
along the leading directions nine times as much as on average, so that everything is faster and the overlaps settle
elsewhere.

Prints how far each is from the prediction, and writes data/runs/digits.png and digits_order_parameters.nc.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import meanfield
from meanfield.cli import DONE, FAILED, run
from meanfield.plotting import curve_style, share_legend
from meanfield.results.figure_files import save_figure
from validation import OUTPUT, ROOT

PROBLEM = meanfield.load_problem(ROOT / "data/problems/digits.toml")
RUNS = 200
"""Number of runs on images, which are small."""
STANDARD_ERRORS = 3.5
"""Largest distance of prediction and mean over runs, in standard errors, at 30 (correlated) times and for both
overlaps."""
FINITE_SIZE = 1.2
"""Allowance for finite size, times N, that is subtracted from this distance."""

Array = np.ndarray


def principal_components() -> tuple[Array, Array, Array]:
    """Centred images (images, 64), their principal directions (64, 61) and the variances along them (61,)."""
    from sklearn.datasets import load_digits  # takes a second, which tests of the rest need not wait for

    images = load_digits().data
    images = images - images.mean(axis=0)
    variances, directions = np.linalg.eigh(images.T @ images / len(images))
    varying = np.flatnonzero(variances > 1e-9 * variances.max())[::-1]
    directions = directions[:, varying]
    largest = np.abs(directions).argmax(axis=0)
    return images, directions * np.sign(directions[largest, np.arange(len(varying))]), variances[varying]


def train_on_images(images: Array, directions: Array, seed: int) -> Array:
    """Overlaps of SGD on images drawn with replacement, shape (runs, time, feature).

    Parameters
    ----------
    images : ndarray, shape (images, N)
    directions : ndarray, shape (N, d1)
        Orthonormal; U = sqrt(N) times them.
    seed : int
    """
    rng = np.random.default_rng(seed)
    model, N = PROBLEM.model, images.shape[1]
    U, q0 = np.sqrt(N) * directions, PROBLEM.initial_overlap
    xi = rng.standard_normal((RUNS, N))
    xi -= xi @ directions @ directions.T
    w = U @ q0 + np.sqrt(1 - q0 @ q0) * np.sqrt(N) * xi / np.linalg.norm(xi, axis=1, keepdims=True)
    steps = np.rint(PROBLEM.time.outputs_at * N).astype(int)
    overlaps = [w @ U / N]
    for count in np.diff(steps):
        for _ in range(count):
            x = images[rng.integers(len(images), size=(RUNS, model.batch_size))]
            y = np.tanh(np.einsum("rmn,rn->rm", x, w) / np.sqrt(N))
            alpha = 2 * (y - y.mean(axis=1, keepdims=True)) * (1 - y**2)  # both views are the same
            w += model.learning_rate / (model.batch_size * np.sqrt(N)) * np.einsum("rm,rmn->rn", alpha, x)
            w *= np.sqrt(N) / np.linalg.norm(w, axis=1, keepdims=True)
        overlaps.append(w @ U / N)
    return np.stack(overlaps, axis=1)


def train_on_all() -> dict[str, Array]:
    """Overlaps on each kind of data, shape (runs, time, feature)."""
    images, directions, variances = principal_components()
    d1 = len(PROBLEM.features)
    sphered = images @ directions / np.sqrt(variances)
    raw = images / np.sqrt(variances.sum() / images.shape[1])
    few = meanfield.with_values(PROBLEM, {"particles.dimension": len(variances), "particles.replicas": RUNS})
    return {
        "model data, N = 512": meanfield.simulate_sgd(PROBLEM).q.values,
        "model data, N = 61": meanfield.simulate_sgd(few).q.values,
        "sphered images, N = 61": train_on_images(sphered, np.eye(len(variances))[:, :d1], seed=1),
        "raw images, N = 64": train_on_images(raw, directions[:, :d1], seed=2),
    }


def verdict(label: str, overlaps: Array, limit: Array) -> str:
    """A line on how far the mean over runs is from the prediction; the label ends with N."""
    away = np.abs(overlaps.mean(axis=0) - limit)
    error = overlaps[:, 1:].std(axis=0, ddof=1) / np.sqrt(len(overlaps))
    beyond = np.maximum(away[1:] - FINITE_SIZE / int(label.rpartition(" ")[2]), 0.0)
    in_errors = (beyond / error).max()
    holds = "holds" if in_errors <= STANDARD_ERRORS else "does not hold"
    spread = overlaps[:, -1].std(axis=0).max()
    return f"{label:<24}{away.max():>9.3f}{in_errors:>18.1f}{away[-1].max():>13.3f}{spread:>9.3f}  {holds}"


def plot(limit: xr.Dataset, results: dict[str, Array]) -> Figure:
    """Overlaps against time: the prediction as a line, runs as mean and standard deviation."""
    figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), sharey=True, layout="constrained")
    for k, ax in enumerate(axes):
        ax.plot(limit.time, limit.q[:, k], color="black", lw=2, label="prediction, N to infinity")
        for number, (label, overlaps) in enumerate(results.items(), start=1):
            style = curve_style(number)
            mean, spread = overlaps[:, :, k].mean(axis=0), overlaps[:, :, k].std(axis=0)
            ax.plot(limit.time, mean, label=label, **style)
            ax.fill_between(limit.time, mean - spread, mean + spread, color=style["color"], alpha=0.15, lw=0)
        ax.set(xlabel="time $t = k/N$", title=f"principal component {k + 1}")
        ax.grid(alpha=0.3)
    axes[0].set_ylabel("overlap $q$ (mean, one standard deviation)")
    share_legend(figure)
    return figure


def main() -> int:
    """Train, compare, draw, and say where the files are."""
    limit = meanfield.solve_order_parameters(PROBLEM)
    results = train_on_all()
    print(f"{'distance from prediction':<24}{'at most':>9}{'errors beyond 1/N':>18}{'at the end':>13}{'spread':>9}")
    for label, overlaps in results.items():
        print(verdict(label, overlaps, limit.q.values))
    OUTPUT.mkdir(parents=True, exist_ok=True)
    meanfield.save(limit, OUTPUT / "digits_order_parameters.nc")
    save_figure(plot(limit, results), OUTPUT / "digits.png")
    print(f"figure: {OUTPUT / 'digits.png'}")
    return DONE if limit.status == "complete" else FAILED


if __name__ == "__main__":
    run(main)
