from . import plotting as plotting
from .comparison import compare as compare
from .ensembles.checkpoint import Checkpoint as Checkpoint
from .errors import InputError as InputError
from .explanation import Explanation as Explanation
from .explanation import explain as explain
from .families.alpha_contrastive.critical_points import (
    continue_critical_points as continue_critical_points,
)
from .families.alpha_contrastive.losses import contrastive_covariance as contrastive_covariance
from .families.alpha_contrastive.weighing import PairLoss as PairLoss
from .families.contrastive.channels.thresholds import collapse_threshold as collapse_threshold
from .families.contrastive.channels.thresholds import learning_threshold as learning_threshold
from .families.contrastive.channels.thresholds import mixing_threshold as mixing_threshold
from .families.contrastive.density import solve_density as solve_density
from .families.contrastive.density import solve_joint_density as solve_joint_density
from .families.contrastive.dynamics.analysis import analyse_dynamics as analyse_dynamics
from .families.contrastive.fixed_points import (
    continue_fixed_points as continue_fixed_points,
)
from .families.contrastive.fixed_points import (
    phase_portrait as phase_portrait,
)
from .families.contrastive.fixed_points import (
    stationary_similarity as stationary_similarity,
)
from .families.contrastive.learnability.augmentation import best_augmentation as best_augmentation
from .families.contrastive.learnability.learnability import learnability as learnability
from .families.contrastive.order_parameters import solve_order_parameters as solve_order_parameters
from .families.contrastive.problem import Problem as Problem
from .families.contrastive.sgd.simulation import simulate_sgd as simulate_sgd
from .families.contrastive.stationary import (
    continue_stationary_states as continue_stationary_states,
)
from .families.contrastive.stationary import (
    critical_values as critical_values,
)
from .families.contrastive.stationary import (
    find_stationary_states as find_stationary_states,
)
from .families.contrastive.stationary import (
    growth_rate_at_zero as growth_rate_at_zero,
)
from .families.hidden_manifold.assumptions.samples import examine_samples as examine_samples
from .families.hidden_manifold.order_parameters.start_from_run import solve_from_run as solve_from_run
from .families.hidden_manifold.order_parameters.start_from_run import solve_from_weights as solve_from_weights
from .ingredients.activations import Activation as Activation
from .ingredients.penalties import Penalty as Penalty
from .ingredients.priors import Prior as Prior
from .methods import solve as solve
from .problems.file import load_problem as load_problem
from .problems.file import parse_problem as parse_problem
from .problems.problem_keys import with_value as with_value
from .problems.problem_keys import with_values as with_values
from .results.files import load as load
from .results.files import save as save
from .results.tables import tables as tables
from .sweep import (
    Sweep as Sweep,
)
from .sweep import (
    load_sweep as load_sweep,
)
from .sweep import (
    run_sweep as run_sweep,
)

__version__: str
__all__ = [
    "Activation",
    "Checkpoint",
    "Explanation",
    "InputError",
    "PairLoss",
    "Penalty",
    "Prior",
    "Problem",
    "Sweep",
    "analyse_dynamics",
    "best_augmentation",
    "collapse_threshold",
    "compare",
    "continue_critical_points",
    "continue_fixed_points",
    "continue_stationary_states",
    "contrastive_covariance",
    "critical_values",
    "examine_samples",
    "explain",
    "find_stationary_states",
    "growth_rate_at_zero",
    "learnability",
    "learning_threshold",
    "load",
    "load_problem",
    "load_sweep",
    "mixing_threshold",
    "parse_problem",
    "phase_portrait",
    "run_sweep",
    "save",
    "simulate_sgd",
    "solve",
    "solve_density",
    "solve_from_run",
    "solve_from_weights",
    "solve_joint_density",
    "solve_order_parameters",
    "stationary_similarity",
    "tables",
    "with_value",
    "with_values",
]
