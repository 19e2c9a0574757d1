"""Variables and kinds of results of latent-tree problems."""

from __future__ import annotations

from math import inf

from meanfield.mckean_vlasov.declarations import POSITIVE, PROBABILITY, SPHERE_CELLS, cell_variables
from meanfield.problems.kind import Kind
from meanfield.problems.variable import Variable, averages_of, recorded

_RUNS = ("replica",)
_NODES = ("time", "latent", "node")

LABELS = {
    "eta": Variable((), "learning rate eta", range=POSITIVE, gaps="never", coordinate=True, label="learning_rate"),
    "B": Variable((), "anchors per step B", range=(1.0, inf), gaps="never", coordinate=True, label="batch_size"),
}

PLACES = {
    "time": Variable(
        ("time",), "time t of the flow, eta times the steps of SGD", range=POSITIVE, gaps="never", increasing=True
    ),
    "level": Variable(("level",), "level l of the tree, leaves at 0", range=(1.0, inf), gaps="never", increasing=True),
    "latent": Variable(
        ("latent",), "number of a latent, the root first, level by level", range=POSITIVE, gaps="never", increasing=True
    ),
    "latent_level": Variable(("latent",), "level of a latent", range=(1.0, inf), gaps="never", coordinate=True),
}

STATE = {
    "loss": recorded(("time",), "population loss L", compared=True),
    "selectivity": recorded(
        _NODES,
        "selectivity s = (E[f|z = 1] - E[f|z = 0])/2 of a node for its latent; of one with more than two values, the "
        "standard deviation of E[f|z]",
        compared=True,
    ),
    "correlation": Variable(
        _NODES,
        "Pearson correlation of a pre-activation and its latent; the multiple one for more than two values",
        optional_dims=_RUNS,
        range=(-1.0, 1.0),
    ),
    "weights": recorded(("time", "weight"), "weights by level, latent, node and input, then biases"),
    "score": Variable(
        ("time", "latent"),
        "largest |correlation| of a latent with a pre-activation in fresh samples",
        optional_dims=_RUNS,
        range=(0.0, 1.0),
    ),
}

AVERAGED = ("loss", "selectivity", "score", "weights")
"""Results of weights that moving averages of them have, too."""

AVERAGES = averages_of(STATE, AVERAGED)
"""Results of moving averages of the weights, where `training.average_rate` asks for them."""

OPERATOR = {
    "gradient_norm": Variable(("level",), "Frobenius norm of the gradient by the weights of a level", range=POSITIVE),
    "operator_norm": Variable(("latent",), "Frobenius norm of the covariance operator of a latent", range=POSITIVE),
    "operator_top": Variable(("latent",), "largest eigenvalue of the covariance operator of a latent"),
    "growth_rate": Variable(
        ("latent", "node"), "growth rate d log|gap|/dt of the gap of a pre-activation between the values of its latent"
    ),
}

ERRORS = {
    f"{name}_error": Variable(dims, f"estimated error of {of}, of operators from samples of views", range=POSITIVE)
    for name, dims, of in (
        ("gradient_norm", ("level",), "the gradient's norm"),
        ("operator_norm", ("latent",), "the norm of an operator"),
        ("operator_top", ("latent",), "the largest eigenvalue of an operator"),
        ("growth_rate", ("latent", "node"), "a growth rate"),
        ("selectivity", _NODES, "a selectivity"),
        ("correlation", _NODES, "a correlation"),
    )
}

_DIRECTIONS = ("time", "child", "sign")

DENSITY = {
    "child": Variable(("child",), "latent below the root, from left to right", range=POSITIVE, gaps="never"),
    "sign": Variable(
        ("sign",), "sign of the outgoing weight of a node", range=(-1.0, 1.0), gaps="never", increasing=True
    ),
    **cell_variables("angle", "angle of the two weights of a node in radians"),
    "gate": Variable(
        ("gate",), "angle in radians at which an input of a node turns active", gaps="never", increasing=True
    ),
    "Delta": recorded(
        ("time",),
        "difference Delta of the mean outputs for the values 1 and 0 of the root; of several outputs its length",
        compared=True,
    ),
    "rho": Variable(
        (*_DIRECTIONS, "angle"),
        "density of the nodes of a latent by sign and angle, averaged over a cell without its edges",
        range=(-1e-9, inf),
        gaps="unfinished",
    ),
    "atom": Variable(
        (*_DIRECTIONS, "gate"), "share of the nodes of a latent that stay at a gate", range=(-1e-9, 1.0 + 1e-9)
    ),
    "Delta_error": Variable(("time",), "estimated error of Delta", range=POSITIVE),
    "loss_error": Variable(("time",), "estimated error of the population loss", range=POSITIVE),
    "held": Variable(_DIRECTIONS, "share of the nodes of a latent that stay at gates", range=(0.0, 1.0 + 1e-9)),
    "idle": Variable(_DIRECTIONS, "share of the nodes of a latent that no input activates", range=(0.0, 1.0 + 1e-9)),
    **SPHERE_CELLS,
    "rho_on_sphere": Variable(
        (*_DIRECTIONS, "polar", "azimuth"),
        "density of the nodes of a latent by sign and direction of their weights, averaged over a cell",
        range=(0.0, inf),
        gaps="unfinished",
    ),
    "w_sample": Variable(
        (*_DIRECTIONS, "sample", "input"),
        "weights of some nodes of a latent, by sign; a bias is the last",
    ),
    "square": Variable(
        _DIRECTIONS,
        "mean of |w|^2 over the nodes of a latent with this sign, 0 if no node has it",
        optional_dims=_RUNS,
        range=POSITIVE,
        compared=True,
    ),
    "axis": Variable(("direction", "input"), "vector of unit length on which directions of weights are projected"),
    "projection": Variable(("projection",), "projection of the direction of a node's weights", increasing=True),
    "projected": Variable(
        (*_DIRECTIONS, "direction", "projection"),
        "share of the nodes of a latent with this sign whose projection is not larger",
        range=(0.0, 1.0 + 1e-9),
        gaps="unfinished",
        needs=("axis", "projection"),
    ),
    "projected_error": Variable(("time",), "estimated error of the shares by projection", range=POSITIVE),
}

RESTING = {
    "state": Variable(("state",), "number of a network at rest, by loss", range=POSITIVE, increasing=True),
    "rates": Variable(
        ("state", "rate"),
        "growth rates of small deviations from a network at rest along its kinks, inactive nodes staying so, the "
        "largest first: minus the eigenvalues of the Hessian",
    ),
    "stability": Variable(
        ("state",), "1 if no deviation grows but by symmetries, 0 if others neither grow nor decay, -1 if some grow"
    ),
    "growing": Variable(("state",), "number of directions in which deviations grow", range=POSITIVE),
    "flat": Variable(("state",), "number of directions in which deviations neither grow nor decay", range=POSITIVE),
    "orbit": Variable(
        ("state",),
        "dimension of what rotations of outputs and weights that change no output make of a state",
        range=POSITIVE,
    ),
    "dead": Variable(("state",), "number of nodes that no input activates", range=POSITIVE),
    "kinks": Variable(("state",), "number of pre-activations that stay at 0", range=POSITIVE),
    "share": Variable(("state",), "share of random networks that come to a state", range=(0.0, 1.0 + 1e-9)),
}

DISTANCES = {
    "W1": Variable(
        ("pair", *_DIRECTIONS),
        "Wasserstein-1 distance of the directions of all runs' nodes from the density, on the circle of two weights; "
        "of more, the mean over projections",
        range=POSITIVE,
        judged=True,
    ),
    "KS": Variable(
        ("pair", *_DIRECTIONS),
        "largest Kolmogorov-Smirnov distance of projections of the directions of all runs' nodes from the density",
        range=PROBABILITY,
        judged=True,
    ),
}
"""Distances of densities and weights, by `meanfield.families.latent_tree.many_nodes.distances`."""

LIMITS = {
    "correlation_limit": Variable(
        ("latent",),
        "root mean square correlation of a random node with its latent at the start, for many nodes per latent",
        range=(0.0, 1.0),
    ),
    "growth_limit": Variable(
        (), "growth rate d log|Delta|/dt at the start of a network with few outputs, for many nodes per latent"
    ),
}

STATISTICS = {
    "count": Variable((), "number of replicas in the statistics", range=POSITIVE, gaps="never"),
    "quantile": Variable(("quantile",), "probability of a quantile", range=(0.0, 1.0), gaps="never", increasing=True),
    "loss_mean": Variable(("time",), "mean of the population loss over replicas", gaps="unfinished"),
    "loss_variance": Variable(("time",), "variance of the population loss over replicas by eta", range=POSITIVE),
    "loss_quantile": Variable(("quantile", "time"), "quantile of the population loss over replicas", gaps="unfinished"),
    "selectivity_mean": Variable(_NODES, "mean of the selectivity over replicas", gaps="unfinished"),
    "selectivity_covariance": Variable(
        (*_NODES, "latent_", "node_"), "covariance of the selectivities over replicas by eta"
    ),
    "Delta_mean": Variable(("time",), "mean of Delta over replicas", gaps="unfinished"),
    "Delta_variance": Variable(("time",), "variance of Delta over replicas by eta", range=POSITIVE),
    "square_mean": Variable(_DIRECTIONS, "mean over replicas of the mean of |w|^2", range=POSITIVE),
    "square_covariance": Variable((*_DIRECTIONS, "child_", "sign_"), "covariance of the means of |w|^2 by eta"),
    "score_mean": Variable(("time", "latent"), "mean of the score over replicas", range=(0.0, 1.0)),
    "score_covariance": Variable(("time", "latent", "latent_"), "covariance of the scores over replicas by eta"),
}

STATISTICS |= averages_of(STATISTICS, ["loss"], ("_mean", "_variance"))
STATISTICS |= averages_of(STATISTICS, ("selectivity", "score"), ("_mean", "_covariance"))

VARIABLES = LABELS | PLACES | STATE | AVERAGES | OPERATOR | ERRORS | LIMITS | DENSITY | RESTING | DISTANCES | STATISTICS

COUNTED = {
    "direction": "axis on which weights are projected",
    "input": "input of a node, a bias the last",
    "node": "node of a latent",
    "rate": "growth rate of a state, the largest first",
    "sample": "node that was kept",
    "weight": "weight of the network, by level, then biases",
}
"""Meanings of coordinates; see `meanfield.problems.family.Family.counted`."""

DISPLAY = "meanfield.families.latent_tree.display"

OF_ALL = ("child", "sign", "Delta", "square")
"""Variables of densities in any number of dimensions."""

CIRCLE = ("angle", "angle_bnds", "gate", "rho", "atom")

ESTIMATED = ("Delta_error", "loss_error", "held", "idle")

SPHERE = (*SPHERE_CELLS, "rho_on_sphere")

PROJECTED = ("axis", "projection", "projected", "projected_error")

OF_NODES = ("Delta", "square", "child", "sign")
"""Variables of networks whose outputs are averages over nodes."""

PLACED = ("level", "latent", "latent_level")

KINDS = {
    "operator": Kind(
        "covariance operators, gradient and growth of a network as it is",
        ("loss", *OPERATOR, "selectivity", "correlation", *PLACED),
        ("loss_error", *ERRORS, "eta", "B", *LIMITS),
        leading="",
        made_by="latent_tree.find_operators",
        figure=f"{DISPLAY}:plot_operator",
        numbers=f"{DISPLAY}:of_an_operator",
        summary=f"{DISPLAY}:describe_operator",
    ),
    "population": Kind(
        "gradient flow of all weights on the population loss",
        ("time", "loss", "selectivity", "correlation", "weights", "latent", "latent_level"),
        (*OF_NODES, *(name for name in AVERAGES if name != "score_average"), "eta", "B"),
        figure=f"{DISPLAY}:plot_training",
        charts=f"{DISPLAY}:charts",
        numbers=f"{DISPLAY}:of_training",
    ),
    "network_states": Kind(
        "networks at rest under the gradient flow of the population loss",
        (*RESTING, "loss", "selectivity", "correlation", "weights", "latent", "latent_level"),
        ("eta", "B"),
        leading="state",
        figure=f"{DISPLAY}:plot_states",
        numbers=f"{DISPLAY}:of_states",
        notes=f"{DISPLAY}:notes_on_states",
    ),
    "density": Kind(
        "density of infinitely many nodes for each latent",
        ("time", "loss", *OF_ALL, *CIRCLE, "latent", "latent_level"),
        (*ESTIMATED, "eta", "B"),
        figure=f"{DISPLAY}:plot_density",
        numbers=f"{DISPLAY}:of_a_density",
        accuracy=1e-8,  # largest error of exact densities: a hundred times the tolerance of a step of their flow
    ),
    "sphere_density": Kind(
        "density of infinitely many nodes for each latent on the sphere of three weights",
        ("time", "loss", *OF_ALL, *ESTIMATED, *SPHERE, "latent", "latent_level"),
        (*PROJECTED, "eta", "B"),
        figure=f"{DISPLAY}:plot_sphere_density",
        numbers=f"{DISPLAY}:of_a_density",
    ),
    "node_particles": Kind(
        "infinitely many nodes for each latent, by a sample of them",
        ("time", "loss", *OF_ALL, *ESTIMATED, "w_sample", "latent", "latent_level"),
        (*PROJECTED, "eta", "B"),
        figure=f"{DISPLAY}:plot_node_particles",
        numbers=f"{DISPLAY}:of_a_density",
    ),
    "particles": Kind(
        "stochastic gradient descent with batches of fresh samples",
        ("time", "weights", "score", "latent", "latent_level"),
        ("loss", "selectivity", "correlation", *OF_NODES, *AVERAGES, "eta", "B"),
        figure=f"{DISPLAY}:plot_training",
        charts=f"{DISPLAY}:charts",
        numbers=f"{DISPLAY}:of_training",
    ),
    "ensemble": Kind(
        "stochastic gradient descent with batches of fresh samples, statistics of an ensemble",
        ("time", "count", "score_mean", "score_covariance", "latent", "latent_level"),
        (
            *(name for name in STATISTICS if name not in ("score_mean", "score_covariance", "count")),
            *("child", "sign", "eta", "B"),
        ),
        figure=f"{DISPLAY}:plot_training",
        charts=f"{DISPLAY}:charts",
        numbers=f"{DISPLAY}:of_training",
    ),
}
