"""Variables and kinds of results on images."""

from __future__ import annotations

from meanfield.mckean_vlasov.declarations import POSITIVE
from meanfield.problems.kind import Kind
from meanfield.problems.variable import Variable, averages_of, recorded

_RUNS = ("replica",)

OPERATORS = {
    "layer_operator_norm": Variable(("level",), "Frobenius norm of the covariance operator of a layer", range=POSITIVE),
    "layer_operator_top": Variable(
        ("level",), "largest eigenvalue of the covariance operator of a layer", range=POSITIVE
    ),
    "residue": Variable(
        ("level",),
        "part of a layer's gradient beside its covariance operator, relative to the gradient",
        range=POSITIVE,
    ),
    "bypass": Variable(
        ("level",),
        "part of a layer's gradient by outputs that paths around its weights carry, relative to the gradient",
        range=POSITIVE,
    ),
    "between_trace": Variable(
        ("level",), "trace of VE, the variance between images of mean connections of a layer", range=POSITIVE
    ),
    "within_trace": Variable(
        ("level",), "trace of EV, the mean over images of the variance of connections of their views", range=POSITIVE
    ),
}

ERRORS = {
    f"{name}_error": Variable(("level",), f"error of {name}, where it is an estimate", range=POSITIVE)
    for name in ("layer_operator_norm", "layer_operator_top", "between_trace", "within_trace")
}

TRAINING = {
    "snapshot_time": Variable(
        ("snapshot_time",), "time at which weights were kept", range=POSITIVE, gaps="never", increasing=True
    ),
    "layer_weights": recorded(
        ("snapshot_time", "weight"), "weights by layer, node and input, then biases", needs=("snapshot_time",)
    ),
    "sampled_loss": recorded(("time",), "mean loss of fresh batches", compared=True),
    "probe_accuracy": Variable(
        ("time",),
        "share of held-out images that a linear classifier of the last hidden layer gets right",
        optional_dims=_RUNS,
        range=(0.0, 1.0),
        compared=True,
    ),
}

_AVERAGED = ("sampled_loss", "probe_accuracy")

AVERAGES = averages_of(TRAINING, _AVERAGED)
"""Results of moving averages of the weights, where `training.average_rate` asks for them."""

STATISTICS = {
    "sampled_loss_mean": Variable(("time",), "mean of the sampled loss over replicas", gaps="unfinished"),
    "sampled_loss_variance": Variable(
        ("time",), "variance of the sampled loss over replicas by eta", range=POSITIVE, gaps="unfinished"
    ),
    "sampled_loss_quantile": Variable(
        ("quantile", "time"), "quantile of the sampled loss over replicas", gaps="unfinished"
    ),
    "probe_accuracy_mean": Variable(("time",), "mean accuracy of the linear probe over replicas", range=(0.0, 1.0)),
    "probe_accuracy_variance": Variable(
        ("time",), "variance of the accuracy of the linear probe over replicas by eta", range=POSITIVE
    ),
}

STATISTICS |= averages_of(STATISTICS, _AVERAGED, ("_mean", "_variance"))

VARIABLES = OPERATORS | ERRORS | TRAINING | AVERAGES | STATISTICS

OF_LOSS = ("sampled_loss_mean", "sampled_loss_variance")

DISPLAY = "meanfield.families.latent_tree.images.display"

KINDS = {
    "layer_operator": Kind(
        "covariance operators of the layers of a network on images",
        ("loss", "gradient_norm", *(name for name in OPERATORS if name != "bypass"), "level"),
        ("bypass", *ERRORS, "eta", "B"),  # older results lack the first
        leading="",
        made_by="latent_tree.find_layer_operators",
        figure=f"{DISPLAY}:plot_layers",
        numbers=f"{DISPLAY}:of_layers",
    ),
    "image_training": Kind(
        "training on batches of fresh views of images",
        ("time", "sampled_loss"),
        ("probe_accuracy", *AVERAGES, "snapshot_time", "layer_weights", "eta", "B"),
        figure=f"{DISPLAY}:plot_training",
        numbers=f"{DISPLAY}:of_training",
    ),
    "image_statistics": Kind(
        "training on batches of fresh views of images, statistics of an ensemble",
        ("time", "count", *OF_LOSS),
        ("quantile", *(name for name in STATISTICS if name not in OF_LOSS), "eta", "B"),
        figure=f"{DISPLAY}:plot_training",
        numbers=f"{DISPLAY}:of_training",
    ),
}
