"""Runs of SGD under priors that let weights run away, and what is predicted of them without any run.

No feature can be learnt (sigma = x^2, Gaussian hidden variable with m2 = 1), so that noise and prior are all there is.
Time is s = c t with c = tau strength, and noise is given in units of the threshold Lambda_c. Steps are c/N = 0.002 for
every N, so that N changes nothing else.
"""

from collections.abc import Sequence
from functools import cache

import numpy as np
import xarray as xr
from scipy.integrate import solve_ivp
from scipy.stats import norm

import meanfield
from meanfield.extend import PriorSettings
from meanfield.families.contrastive.problem import Problem
from meanfield.mckean_vlasov.condensation import Coarsening, coarsening, critical_diffusion

ROOT, STEEP = (f"validation.contrastive.figures.condensing:{name}" for name in ("root_pull", "steep_pull"))
"""Addresses of the priors |w|^1.5 and |w|^2.5."""

HIDDEN = {"law": "gaussian", "second_moment": 1.0}
SIXTH_MOMENT = 15.0
"""<Theta^6>: Lambda = 16 tau^2/m <Theta^6> at every q (theory.md, section 8)."""

BATCH_SIZE = 120
STEP, LONG_STEP = 2e-3, 5e-3
"""c/N: what the prior does to a weight in one step; the second one in runs to late times."""

WEAK, WEAKEST = 0.02, 2e-4
"""Lambda/Lambda_c of runs that show coarsening; the second one where the law of the start shall be seen in the end."""

STOP = 30
SNAPSHOTS = (1, 2, 4, 7, 10, 15, 20, 30)
SIZES = {1_000: 64, 10_000: 16, 100_000: 2, 1_000_000: 1}
"""N, and the number of replicas."""

LAW_AT = SNAPSHOTS.index(10)
"""Snapshot of which the law of survivors is shown."""

POWER_SIZE, POWER_STOP, UNIFORM_STOP = 100_000, 20, 3
"""N and duration of runs under |w|^1.5 and |w|^2.5, and from uniform weights."""

NOISES = (0.25, 0.5, 0.7, 0.85, 1.2, 2.0)
LATE_PRIORS = ("l1", "cauchy", "log_cosh")
LATE_SIZE, LATE_REPLICAS, LATE_STOP, LATE_SNAPSHOTS = 500, 8, 900, 6
LARGER_SIZE, LARGER_NOISES = 4000, (0.7, 0.85)
"""Runs to a time at which one weight is left; the larger ones under l1 alone."""

ELAPSED = np.geomspace(0.3, 300.0, 121)
LEVELS = 1.0 - np.geomspace(1.0, 1e-3, 61)
"""Probabilities of the quantiles of a law."""

FLOWS = ("l1", "cauchy", ROOT)
"""Priors whose shares are shown."""


def root_pull(w: float) -> float:
    """The force of a prior that grows more slowly than w^2."""
    return np.sign(w) * np.sqrt(abs(w))


def steep_pull(w: float) -> float:
    """The force of a prior that grows faster than w^2."""
    return w * np.sqrt(abs(w))


def threshold(prior: str) -> float:
    """Lambda_c/c."""
    return critical_diffusion(PriorSettings(name=prior), 1.0)


@cache
def flow_of(prior: str) -> Coarsening:
    """Flow without noise."""
    return coarsening(PriorSettings(name=prior).functions, float(ELAPSED[-1]))


def problem_with(prior: str, noise: float, N: int, times: Sequence[float], step: float = STEP, **particles) -> Problem:
    """A problem without a feature to learn, with snapshots at s = `times`.

    Lambda is `noise` in units of Lambda_c, or of c where nothing condenses.
    """
    pull = step * N
    tau = np.sqrt(noise * pull * (threshold(prior) or 1.0) * BATCH_SIZE / (16.0 * SIXTH_MOMENT))
    residual = particles.pop("residual", {"law": "gaussian"})
    data = {
        "model": {"activation": "quadratic", "learning_rate": tau, "batch_size": BATCH_SIZE},
        "features": [{"hidden": HIDDEN, "initial_overlap": 0.0}],
        "initial_residual": residual,
        "prior": {"name": prior, "strength": pull / tau},
        "time": {"stop": times[-1] / pull, "outputs": int(times[-1]) + 1},
        "density": {"tolerance": 1e-4},
        "particles": {
            "method": "projected", "dimension": N, "seed": 11, "snapshots": tuple(s / pull for s in times)
        } | particles,
    }  # fmt: skip
    return Problem.model_validate(data)


def closed_form_of_l1(s: np.ndarray) -> np.ndarray:
    """Share beyond w_c, w_c, and mean size of survivors under l1: |w| = A (|y| - theta)_+ with d theta/ds = 1/A."""

    def second(theta: np.ndarray) -> np.ndarray:
        return 2 * ((1 + theta**2) * norm.sf(theta) - theta * norm.pdf(theta))

    flow = solve_ivp(lambda _, x: np.sqrt(second(x)), (0, s[-1]), [0.0], t_eval=s, rtol=1e-9, atol=1e-11)
    theta = flow.y[0]
    A, left = second(theta) ** -0.5, 2 * norm.sf(theta)
    multiplier = A * 2 * (norm.pdf(theta) - theta * norm.sf(theta))
    return np.array([2 * norm.sf(theta + 1 / (multiplier * A)), 1 / multiplier, multiplier / left])


def predicted(prior: str, name: str, times: Sequence[float]) -> np.ndarray:
    """Numbers of the flow without noise."""
    return np.interp(times, flow_of(prior).elapsed, getattr(flow_of(prior), name))


def sizes_and_multiplier(problem: Problem, snapshots: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """|w| at the snapshots, shape (replicas, snapshots, N), and G/c less what the bulk needs, (replicas, snapshots)."""
    found, prior = meanfield.simulate_sgd(problem), problem.prior
    noise = 0.5 * WEAK * threshold(prior.name)
    return np.abs(found["weights"].values), found["r"].values[:, list(snapshots)] / prior.strength - noise


def coarsening_of_sgd(prior: str) -> xr.Dataset:
    """Shares, multipliers and the law of survivors for all N."""
    critical = predicted(prior, "critical_weight", SNAPSHOTS)
    rows = []
    for N, replicas in SIZES.items():
        w, multiplier = sizes_and_multiplier(problem_with(prior, WEAK, N, SNAPSHOTS, replicas=replicas), SNAPSHOTS)
        rows.append([(w > critical[:, None]).mean(axis=(0, 2)), multiplier.mean(axis=0), multiplier.std(axis=0)])
    power = {"l1": 1, "cauchy": 2}[prior]
    shares, multipliers, spreads = np.moveaxis(np.array(rows), 1, 0)
    law = survivors(w[0, LAW_AT] ** power, critical[LAW_AT] ** power)
    dims = ("size", "snapshot")
    return xr.Dataset(
        {
            f"sgd_share_{prior}": (dims, shares, {"long_name": f"share of weights beyond w_c, {prior}"}),
            f"sgd_multiplier_{prior}": (dims, multipliers, {"long_name": f"G/c, {prior}"}),
            f"sgd_spread_{prior}": (dims, spreads, {"long_name": f"standard deviation of G/c over runs, {prior}"}),
            f"sgd_law_{prior}": ("level", law, {"long_name": f"quantiles of |w|^{power} of survivors, {prior}"}),
        },
        {"size": list(SIZES), "snapshot": list(SNAPSHOTS), "level": LEVELS},
    )


def survivors(x: np.ndarray, least: float) -> np.ndarray:
    """Quantiles of the excess over `least`, in units of its mean: an exponential law forgets `least`, as a uniform."""
    excess = x[x > least] - least
    return np.asarray(np.quantile(excess / excess.mean(), LEVELS))


def from_uniform_weights() -> xr.Dataset:
    """Law of survivors of weights that start uniform."""
    uniform = {"law": "uniform", "smoothing": 0.02}
    problem = problem_with("l1", WEAKEST, POWER_SIZE, (UNIFORM_STOP,), replicas=1, residual=uniform)
    w, _ = sizes_and_multiplier(problem, (UNIFORM_STOP,))
    law = survivors(w.ravel(), float(w[w > 0.5].mean()))
    text = "quantiles of |w| of survivors, l1, uniform start"
    return xr.Dataset({"sgd_law_uniform": ("level", law, {"long_name": text})}, {"level": LEVELS})


def powers() -> xr.Dataset:
    """E[w^4] and shares under |w|^1.5 and |w|^2.5."""
    times = np.arange(1.0, POWER_STOP + 1)
    fourths, share = [], np.empty(0)
    for prior in (ROOT, STEEP):
        w, _ = sizes_and_multiplier(problem_with(prior, WEAK, POWER_SIZE, times, replicas=1), times.astype(int))
        fourths.append((w[0].astype(float) ** 4).mean(axis=1))
        if prior == ROOT:
            share = (w[0] > predicted(prior, "critical_weight", times)[:, None]).mean(axis=1)
    return xr.Dataset(
        {
            "sgd_fourth": (("power", "power_time"), fourths, {"long_name": "E[w^4]"}),
            "sgd_share_root": ("power_time", share, {"long_name": "share of weights beyond w_c, |w|^1.5"}),
        },
        {"power": [1.5, 2.5], "power_time": times},
    )


def late_norms() -> xr.Dataset:
    """Norm of the largest weight at late times, against the noise."""
    late = np.array([[largest_norm(p, noise, LATE_SIZE, LATE_REPLICAS) for noise in NOISES] for p in LATE_PRIORS])
    larger = np.array([largest_norm("l1", noise, LARGER_SIZE, LATE_REPLICAS // 2) for noise in LARGER_NOISES])
    text, error = "norm of the largest weight in units of N", "its standard error"
    return xr.Dataset(
        {
            "sgd_condensed": (("late_prior", "late_noise"), late[..., 0], {"long_name": text}),
            "sgd_condensed_error": (("late_prior", "late_noise"), late[..., 1], {"long_name": error}),
            "sgd_larger": ("larger_noise", larger[:, 0], {"long_name": text}),
            "sgd_larger_error": ("larger_noise", larger[:, 1], {"long_name": error}),
        },
        {"late_prior": list(LATE_PRIORS), "late_noise": list(NOISES), "larger_noise": list(LARGER_NOISES)},
    )


def largest_norm(prior: str, noise: float, N: int, replicas: int) -> tuple[float, float]:
    """Part of the norm that the largest weight carries at late times, with its standard error over replicas."""
    times = np.linspace(LATE_STOP // 2, LATE_STOP, LATE_SNAPSHOTS)
    found = meanfield.simulate_sgd(problem_with(prior, noise, N, times, LONG_STEP, replicas=replicas))
    shares = (found["weights"].values.astype(float) ** 2).max(axis=2).mean(axis=1) / N
    return float(shares.mean()), float(shares.std(ddof=1) / np.sqrt(replicas))
