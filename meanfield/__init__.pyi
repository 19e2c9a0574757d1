# Public names, and where they stand. Those that stand in the namespace of a family are deprecated here, and warn.

from meanfield.alpha_contrastive import PairLoss as PairLoss
from meanfield.alpha_contrastive import continue_critical_points as continue_critical_points
from meanfield.alpha_contrastive import contrastive_covariance as contrastive_covariance
from meanfield.comparison import compare as compare
from meanfield.contrastive import analyse_dynamics as analyse_dynamics
from meanfield.contrastive import best_augmentation as best_augmentation
from meanfield.contrastive import collapse_threshold as collapse_threshold
from meanfield.contrastive import continue_fixed_points as continue_fixed_points
from meanfield.contrastive import continue_stationary_states as continue_stationary_states
from meanfield.contrastive import critical_values as critical_values
from meanfield.contrastive import growth_rate_at_zero as growth_rate_at_zero
from meanfield.contrastive import learnability as learnability
from meanfield.contrastive import learning_threshold as learning_threshold
from meanfield.contrastive import mixing_threshold as mixing_threshold
from meanfield.contrastive import phase_portrait as phase_portrait
from meanfield.contrastive import solve_joint_density as solve_joint_density
from meanfield.contrastive import stationary_similarity as stationary_similarity
from meanfield.ensembles.checkpoint import Checkpoint as Checkpoint
from meanfield.errors import InputError as InputError
from meanfield.explanation import Explanation as Explanation
from meanfield.explanation import explain as explain
from meanfield.hidden_manifold import examine_samples as examine_samples
from meanfield.hidden_manifold import solve_from_run as solve_from_run
from meanfield.hidden_manifold import solve_from_weights as solve_from_weights
from meanfield.ingredients.activations import Activation as Activation
from meanfield.ingredients.penalties import Penalty as Penalty
from meanfield.ingredients.priors import Prior as Prior
from meanfield.ingredients.schedules.shapes import Schedule as Schedule
from meanfield.methods import find_fixed_points as find_fixed_points
from meanfield.methods import find_stationary_states as find_stationary_states
from meanfield.methods import simulate_sgd as simulate_sgd
from meanfield.methods import solve as solve
from meanfield.methods import solve_density as solve_density
from meanfield.methods import solve_order_parameters as solve_order_parameters
from meanfield.methods import solve_population as solve_population
from meanfield.problems.base import Problem as Problem
from meanfield.problems.file import load_problem as load_problem
from meanfield.problems.file import parse_problem as parse_problem
from meanfield.problems.problem_keys import at_time as at_time
from meanfield.problems.problem_keys import with_value as with_value
from meanfield.problems.problem_keys import with_values as with_values
from meanfield.results.files import load as load
from meanfield.results.files import save as save
from meanfield.results.result import tables as tables
from meanfield.sweep import Sweep as Sweep
from meanfield.sweep import load_sweep as load_sweep
from meanfield.sweep import run_sweep as run_sweep

from . import alpha_contrastive as alpha_contrastive
from . import contrastive as contrastive
from . import extend as extend
from . import hidden_manifold as hidden_manifold
from . import latent_tree as latent_tree
from . import plotting as plotting

__version__: str
