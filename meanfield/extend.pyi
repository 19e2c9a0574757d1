from .ensembles.identity import identity_of as identity_of
from .ensembles.run import run_ensemble as run_ensemble
from .ensembles.settings import EnsembleSettings as EnsembleSettings
from .ensembles.simulation import Simulation as Simulation
from .ensembles.stepper import PythonStepper as PythonStepper
from .ensembles.stepper import Stepper as Stepper
from .ensembles.stepper import replica_generator as replica_generator
from .errors import InputError as InputError
from .ingredients.activation_part import NamesActivation as NamesActivation
from .ingredients.activations import Activation as Activation
from .ingredients.laws import CoordinateLaw as CoordinateLaw
from .ingredients.laws import HiddenLaw as HiddenLaw
from .ingredients.laws import ResidualLaw as ResidualLaw
from .ingredients.laws.base import AtomicPart as AtomicPart
from .ingredients.part import Part as Part
from .ingredients.penalties import Penalty as Penalty
from .ingredients.prior_settings import PriorSettings as PriorSettings
from .ingredients.priors import Prior as Prior
from .mckean_vlasov import declarations as declarations
from .mckean_vlasov.density.settings import DensitySettings as DensitySettings
from .mckean_vlasov.density.solver import density_of as density_of
from .mckean_vlasov.limit import Limit as Limit
from .mckean_vlasov.order_parameters import order_parameters_of as order_parameters_of
from .numerics.ode import Tolerance as Tolerance
from .numerics.ode import solve_ode as solve_ode
from .one_vector.family import vector_family as vector_family
from .one_vector.problem import VectorProblem as VectorProblem
from .problems.base import BaseProblem as BaseProblem
from .problems.base import Time as Time
from .problems.family import Family as Family
from .problems.family import Kind as Kind
from .problems.family import Method as Method
from .problems.variable import Variable as Variable
from .results.solved import Solved as Solved
from .results.solved import solver as solver
from .testing import check_family as check_family
from .testing import checks_of as checks_of

__all__ = [
    "Activation",
    "AtomicPart",
    "BaseProblem",
    "CoordinateLaw",
    "DensitySettings",
    "EnsembleSettings",
    "Family",
    "HiddenLaw",
    "InputError",
    "Kind",
    "Limit",
    "Method",
    "NamesActivation",
    "Part",
    "Penalty",
    "Prior",
    "PriorSettings",
    "PythonStepper",
    "ResidualLaw",
    "Simulation",
    "Solved",
    "Stepper",
    "Time",
    "Tolerance",
    "Variable",
    "VectorProblem",
    "check_family",
    "checks_of",
    "declarations",
    "density_of",
    "identity_of",
    "order_parameters_of",
    "replica_generator",
    "run_ensemble",
    "solve_ode",
    "solver",
    "vector_family",
]
