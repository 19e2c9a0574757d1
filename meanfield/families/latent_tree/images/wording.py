"""Wording of problems on images, and warnings about them."""

from __future__ import annotations

from meanfield.ensembles.averages import average_in_words
from meanfield.errors import InputError
from meanfield.explanation.explanation import Statement
from meanfield.explanation.prediction import Prediction
from meanfield.families.latent_tree.images.problem import Convolution, ImageProblem
from meanfield.families.latent_tree.wording import loss_in_words
from meanfield.ingredients.images.part import Augmentation
from meanfield.ingredients.schedules.shapes import Schedule, in_words_of


def in_words(problem: ImageProblem, look_up: bool = True) -> list[Statement]:
    """Sentences about a problem, in the order of its file; see `meanfield.explanation.explanation.in_words`."""
    return [
        ("images", _images(problem, look_up)),
        ("views", _views(problem.data.augmentation)),
        ("network", _network(problem)),
        *([] if problem.initial is None else [("start", f"weights {problem.initial.in_words}")]),
        ("loss", loss_in_words(problem.loss)),
        ("training", _training(problem)),
        ("time", problem.time.in_words),
    ]


def _images(problem: ImageProblem, look_up: bool) -> str:
    data = problem.data
    source = data.images if isinstance(data.images, str) else f"{len(data.images)} files, the first {data.images[0]}"
    held = f"{data.held_out:.0%} held out"
    if look_up:
        try:
            images = data.read
        except InputError:
            return f"{source}, {held}"
        _, height, width, channels = images.pixels.shape
        classes = "without classes" if images.labels is None else f"in {len(set(images.labels.tolist()))} classes"
        return f"{source}: {len(images):,} of {height} x {width} pixels, {channels} channel(s), {classes}, {held}"
    return f"{source}, {held}"


def _views(augmentation: Augmentation) -> str:
    words = [
        f"part of the image from {augmentation.crop:g} of its side" if augmentation.crop < 1.0 else "",
        f"shift by up to {augmentation.shift} pixel(s)" if augmentation.shift else "",
        "left and right exchanged in half" if augmentation.flip else "",
        f"intensity changed by up to {augmentation.intensity:g}" if augmentation.intensity else "",
        f"noise of standard deviation {augmentation.noise:g}" if augmentation.noise else "",
    ]
    return ", ".join(filter(None, words)) or "the images themselves"


def _network(problem: ImageProblem) -> str:
    network = problem.network
    widths = " - ".join(str(width) for width in network.widths)
    outputs = f"f/(|f| + {network.epsilon:g})" if network.output_normalisation else "the last layer itself"
    bias = "with biases" if network.bias else "without biases"
    below = "" if network.convolution is None else f"{_convolutions(network.convolution)}, their averages over pixels, "
    return f"{below}dense ReLU layers of {widths} nodes, {bias}; outputs are {outputs}"


def _convolutions(given: Convolution) -> str:
    channels = " - ".join(str(channel) for channel in given.channels)
    kinds = ["residual"] * given.residual + ["normalised over batches"] * given.batch_norm
    kind = f"{' and '.join(kinds)}, " if kinds else ""
    return (
        f"ReLU convolutions of {given.kernel} x {given.kernel} pixels to {channels} channels, {given.blocks} block(s) "
        f"of two each, {kind}steps of {given.stride}"
    )


def _training(problem: ImageProblem) -> str:
    training = problem.training
    changes = isinstance(training.learning_rate, Schedule)
    steps = "" if changes else f", {problem.time.stop * problem.steps_per_time:,.0f} steps to the end"
    more = "".join(
        f", {name} {in_words_of(value)}"
        for name, value in (("momentum", training.momentum), ("weight decay", training.weight_decay))
        if value != 0.0
    )
    eta, b = training.weight_noise, training.momentum_rate
    average = average_in_words(training.average_rate)
    average += f"; momentum 1 - b eta, b = {b:g}, in steps of b eta" if b is not None else ""
    noise = f", and fresh weights mixed in by {in_words_of(eta)} an epoch" if eta != 0.0 else ""
    return (
        f"{training.optimiser} with the learning rate {in_words_of(training.learning_rate)}{more} and "
        f"{in_words_of(training.batch_size)} anchors per step{steps}{noise}{average}"
    )


def warnings_of(problem: ImageProblem, predicted: list[Prediction]) -> list[str]:
    """Warnings about a problem, each a sentence with a remedy; see `meanfield.problems.family.Family.warnings`."""
    found = []
    loss = problem.loss
    augmentation = problem.data.augmentation
    # which fall without end where weights grow
    if not problem.network.output_normalisation and loss.kind in ("simple", "exact", "beta"):
        found.append(
            "network.output_normalisation = false: nothing bounds the weights under this loss, and with two layers or "
            "more they become infinite in finite time; set it to true, or take a short time.stop"
        )
    if augmentation == Augmentation():
        found.append(
            "data.augmentation is empty: both views of an image are the image itself, and training sees no more than "
            "that images differ; add shift, crop, flip, intensity or noise"
        )
    return found
