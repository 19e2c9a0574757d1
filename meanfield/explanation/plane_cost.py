"""Predicted cost of the density of several vectors: of two on cells, of any number by interacting particles."""

from __future__ import annotations

from collections.abc import Sequence

from meanfield.ensembles.simulation import BYTES_PER_NUMBER
from meanfield.explanation.prediction import HEADER, Prediction
from meanfield.mckean_vlasov.density.settings import DensitySettings
from meanfield.several_vectors.display import CELLS
from meanfield.several_vectors.limit import JointLimit
from meanfield.several_vectors.particle_search import PILOT, size_after_pilot
from meanfield.several_vectors.plan import coarse_plan, fixed_plan
from meanfield.several_vectors.sample import RUNS
from meanfield.several_vectors.search import PlaneSearch

CELL_STEP = 8e-8
"""Seconds for each cell, node and step of a level: five sweeps along lines of cells."""

SHOWN_CELL = 3e-7
"""Seconds for each cell and node at each output time, for the densities that are shown."""

PACKED_NUMBER = 0.55 * BYTES_PER_NUMBER
"""Bytes that are left of a number of a density when it is compressed."""


def predicted_plane(limit: JointLimit, settings: DensitySettings, averages: str, evaluation: float = 0.0) -> Prediction:
    """Prediction of the density of two vectors on cells.

    Parameters
    ----------
    limit : JointLimit
    settings : DensitySettings
        With a tolerance or cells.
    averages : str
        Those that a result has besides.
    evaluation : float
        Seconds of coefficients, where they count.
    """
    factors: tuple[int, ...]
    if settings.tolerance is None:
        plan, factors, more = fixed_plan(limit, settings), (1, 2), 1.0
    else:
        plan = coarse_plan(limit, settings, settings.tolerance)
        factors = PlaneSearch.factors[:5]  # most searches end there
        discrete = len(plan.nodes.u) <= 2 ** len(limit.coordinates)
        # Where the law is continuous, the choice of nodes costs as much again, and leaves more of them than at first.
        more = 1.0 if discrete or settings.feature_nodes else 3.0
    outputs, nodes = len(limit.times), int(more * len(plan.nodes.u))
    work = more * sum(plan.work(factor) for factor in factors)
    shown = more * outputs * sum(plan.cells(factor) ** 2 for factor in factors) * len(plan.nodes.solved[1])
    seconds = CELL_STEP * work + SHOWN_CELL * shown + evaluation * plan.step_times.total * sum(factors)
    last = factors[-1]
    warning = ""
    if more * plan.work(last) > PlaneSearch.most_work:
        seconds = min(seconds, CELL_STEP * len(factors) * PlaneSearch.most_work)
        warning = "density.tolerance seems out of reach: the levels that it needs take too long; raise it"
    size = PACKED_NUMBER * numbers_shown(nodes, outputs) + HEADER
    contents = f"{averages}, P(w1, w2|u) on {nodes} nodes x {plan.cells(last)} x {plan.cells(last)} cells"
    return Prediction("density", "", seconds, more * plan.memory(last), size, contents, warning)


def predicted_particles(
    limits: Sequence[JointLimit], tolerance: float, averages: str, evaluation: float, compared: JointLimit | None = None
) -> Prediction:
    """Prediction by a pilot to the first output time, times all particles and steps that its errors ask for.

    Parameters
    ----------
    limits : sequence of JointLimit
        Those of each run.
    tolerance : float
    averages : str
        Those that a result has.
    evaluation : float
        Seconds of coefficients.
    compared : JointLimit, optional
        That of the first run by another quadrature, where coefficients have errors.
    """
    # A run of the pilot evaluates the averages 13 times, and its particles take 8 ms.
    each = 13.0 * evaluation + 8e-3
    # Beside dearer averages more particles cost little.
    size = size_after_pilot(limits, tolerance, compared) if each < 0.1 else PILOT
    factor = size.particles * size.steps / (PILOT.particles * PILOT.steps)
    (d1, d2), outputs = limits[0].initial_q.shape, len(limits[0].times)
    moments = RUNS * outputs * (d1 + d2 + 1) * d2
    memory = BYTES_PER_NUMBER * (4.0 * RUNS * size.particles * (d1 + 3 * d2) + 3.0 * moments)
    seconds = (1.0 + factor) * (outputs - 1) * RUNS * each
    file = HEADER + 1e6 + 3.0 * BYTES_PER_NUMBER * moments / RUNS
    return Prediction("density", "", seconds, memory, file, f"{averages}, weights of interacting particles")


def numbers_shown(nodes: int, outputs: int) -> float:
    """Numbers of the densities of single weights of two, which a result holds."""
    return float(2 * outputs * CELLS * (nodes + 2))
