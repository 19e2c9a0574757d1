"""Training on images: gradients of batches, steps of both optimisers, the probe, and every loss against torch."""

from dataclasses import replace

import numpy as np
import pytest

import meanfield
from meanfield import InputError
from meanfield.families.latent_tree.images import costs
from meanfield.families.latent_tree.images.operators import Population, draw_population
from meanfield.families.latent_tree.images.replicas import ImageReplicas, ImageSampler, probe_accuracy
from meanfield.families.latent_tree.samples import batch_slope, draw_batch
from meanfield.networks.contrast import Contrast
from meanfield.networks.dense import forward, gradient, uniform_start
from meanfield.networks.normalisation import Normalisation
from meanfield.networks.population import evaluate
from tests.families.latent_tree.images.problems import problem


def slope_of(chosen, weights, x):
    outputs = chosen.network.normalisation
    found = forward(weights, x.reshape(-1, x.shape[-1]))
    y = outputs.value(found.last)
    value, slope = batch_slope(chosen.loss.contrast, y.reshape(*x.shape[:-1], -1))
    return value, gradient(weights, found, outputs.back(found.last, slope.reshape(y.shape))).vector


def test_sgd_follows_the_gradient_of_its_batches():
    chosen = problem()
    stepper = ImageReplicas(chosen, range(2))
    w, rngs = stepper.w.copy(), [np.random.Generator(np.random.PCG64()) for _ in range(2)]
    for copy, rng in zip(rngs, stepper.rngs, strict=True):
        copy.bit_generator.state = rng.bit_generator.state
    stepper.advance(0, 3)
    for i, rng in enumerate(rngs):
        for _ in range(3):
            x = draw_batch(chosen, ImageSampler(chosen), rng)
            w[i] -= 0.1 * slope_of(chosen, chosen.initial_weights.like(w[i]), x)[1]
    assert np.allclose(stepper.w, w, rtol=1e-12)  # rounding of three steps


def test_adam_takes_steps_of_the_learning_rate_along_a_constant_gradient():
    stepper = ImageReplicas(problem(training="optimiser = 'adam'"), range(1))
    slope = np.linspace(-3.0, 3.0, stepper.w.size)[None]
    for k in range(5):
        step = stepper._adapted(slope, k)
        assert np.allclose(step, slope / (np.abs(slope) + 1e-8), rtol=1e-12)  # rounding


@pytest.mark.torch
def test_adam_is_that_of_torch():
    torch = pytest.importorskip("torch")
    stepper = ImageReplicas(problem(training="optimiser = 'adam'\nlearning_rate = 0.01"), range(1))
    w = torch.tensor(stepper.w[0], requires_grad=True)
    theirs, rng, ours = torch.optim.Adam([w], lr=0.01), np.random.default_rng(0), stepper.w
    for k in range(20):
        slope = rng.normal(size=ours.shape)
        w.grad = torch.tensor(slope[0])
        theirs.step()
        ours = ours - 0.01 * stepper._adapted(slope, k)
    assert np.allclose(ours[0], w.detach().numpy(), rtol=1e-12)  # rounding of 20 steps


def test_fresh_weights_are_mixed_in_once_an_epoch():
    """There are 16 images to train on, so that two batches of 8 are an epoch; gradients are 0 without a difference."""
    still = problem(
        training="weight_noise = 0.25\nbatch_size = 8\nlearning_rate = 1e-6", network="widths = [300]\nbias = true"
    )
    stepper = ImageReplicas(still, range(1))
    start = stepper.w[0].copy()
    stepper.advance(0, 2)
    assert np.abs(stepper.w[0] - start).max() < 1e-4  # of two steps of 1e-6 with slopes below 50
    stepper.advance(2, 1)
    W, b = slice(0, 4800), slice(4800, None)
    assert np.abs(stepper.w[0, b] - start[b]).max() < 1e-4  # three such steps: biases stay
    fresh = (stepper.w[0, W] - 0.75 * start[W]) / 0.25
    bound = np.sqrt(6.0 / 316.0)
    assert 0.99 * bound < np.abs(fresh).max() < 1.01 * bound  # the largest of 4800, and three steps
    assert fresh.std() == pytest.approx(bound / np.sqrt(3.0), rel=0.03)  # 4 standard errors of 4800, seed fixed


def test_images_themselves_decide_the_weights_of_the_exact_loss():
    chosen = problem(loss="kind = 'exact'\nnegatives = 2")
    sampler, rng = ImageSampler(chosen), np.random.default_rng(0)
    x = draw_batch(chosen, sampler, rng)
    assert x.shape == (7, 8, 16)
    images = chosen.data.read.values().reshape(20, -1)
    for i in range(7):
        near = np.abs(x[i][:, None] - images).max(axis=-1).min(axis=1)
        assert np.all(near == 0.0) if i > 3 else np.all(near > 0.0)


def test_means_over_batches_are_those_of_the_population():
    """Loss of 4000 batches of 8 against the enumeration of views that are as many as the noise allows."""
    chosen = problem(
        loss="kind = 'infonce'\ntemperature = 0.5",
        operator="images = 16\nviews = 1",
        data="law = 'arrays'\nimages = 'meanfield.families.latent_tree.images.bars:make_bars'",
    )
    weights, rng, sampler = chosen.initial_weights, np.random.default_rng(0), ImageSampler(chosen)
    values, slopes = zip(
        *(slope_of(chosen, weights, draw_batch(chosen, sampler, rng)) for _ in range(1000)), strict=True
    )
    population: Population = draw_population(chosen)
    outputs, found = chosen.network.normalisation, forward(weights, population.x)
    exact = evaluate(chosen.loss.contrast, population.views, outputs.value(found.last)[None])
    error = np.std(values, ddof=1) / np.sqrt(1000)
    assert abs(np.mean(values) - exact.value) < 3.5 * error  # standard errors, and the seed is fixed
    by_weights = gradient(weights, found, outputs.back(found.last, exact.slope[0])).vector
    errors = np.std(slopes, axis=0, ddof=1) / np.sqrt(1000) + 1e-15  # nodes that are never active have none
    assert np.abs((np.mean(slopes, axis=0) - by_weights) / errors).max() < 4.5  # of 114 numbers, seed fixed


def test_training_learns_to_tell_bars_apart():
    chosen = problem(
        loss="kind = 'nt_xent'\ntemperature = 0.5",
        network="widths = [24, 8]\noutput_normalisation = true",
        training="optimiser = 'adam'\nlearning_rate = 0.01\nbatch_size = 32",
        time="stop = 1.0\noutputs = 2",
        particles="replicas = 1",
    )
    result = meanfield.solve(chosen, "particles")
    first, last = result["sampled_loss"].mean("replica").values
    assert last < 0.8 * first  # it is 0.6 of it


@pytest.mark.parametrize("workers", [1, 2])
def test_numbers_do_not_depend_on_workers_or_company(workers):
    many = problem(particles="replicas = 20")
    result = meanfield.solve(many, "particles", workers=workers)
    alone = ImageReplicas(many, range(7, 8))
    alone.advance(0, 10)
    assert np.allclose(result["layer_weights"].values[7, -1], alone.w[0], rtol=1e-12)  # order of sums in a product


def test_training_goes_on_with_its_own_weights(tmp_path):
    whole = meanfield.solve(problem(particles="replicas = 2\nsnapshots = [0.5]"), "particles")
    meanfield.save(whole, tmp_path / "whole.nc")
    start = f"from = '{tmp_path / 'whole.nc'}'\ntime = 0.5"
    rest = problem(initial=start, particles="replicas = 2\nsnapshots = [0.0]\ncommon_start = false")
    found = meanfield.solve(rest, "particles")
    assert np.array_equal(found["layer_weights"].values, whole["layer_weights"].values)
    assert "weights from whole.nc at t = 0.5" in str(meanfield.explain(rest))
    with pytest.raises(InputError, match=r"has networks of \d+ weights, and the problem one of \d+"):
        problem(initial=start, network="widths = [5, 3]")


def test_the_probe_tells_linear_classes_apart():
    rng = np.random.default_rng(0)
    x, wanted = rng.normal(size=(300, 5)), rng.integers(0, 3, 300)
    x[:, :3] += 8.0 * np.eye(3)[wanted]
    x[:, 4] = 2.0  # a feature that never varies
    assert probe_accuracy(x[:200], wanted[:200], x[200:], wanted[200:]) == 1.0
    by_chance = probe_accuracy(x[:200], rng.permutation(wanted[:200]), x[200:], wanted[200:])
    assert by_chance < 0.55  # a third, and 4 standard errors of 100 answers; the seed is fixed


KINDS = [
    ("simple", {}),
    ("beta", {"beta": 0.3}),
    ("triplet", {"margin": 0.2}),
    ("infonce", {"negatives": 2}),
    ("exact", {"negatives": 2}),
    ("nt_xent", {}),
    ("nt_xent", {"beta": -0.5}),
    ("batch_ratio", {}),
]


def torch_loss(torch, contrast, y):
    """Losses from their definitions, for outputs of shape (views of a sample, anchors, outputs)."""
    tau = contrast.temperature
    if contrast.kind == "nt_xent":
        z = torch.nn.functional.normalize(y.transpose(0, 1).reshape(-1, y.shape[-1]), dim=1)
        s = (z @ z.T / tau).masked_fill(torch.eye(len(z), dtype=torch.bool), -torch.inf)
        near = 0.5 * ((z - z[torch.arange(len(z)) ^ 1]) ** 2).sum(-1).mean()  # 1 - cos
        return (torch.nn.functional.cross_entropy(s, torch.arange(len(z)) ^ 1) + contrast.beta * near / tau) / (
            1.0 + contrast.beta
        )
    r = 0.5 * ((y[0] - y[1 : 2 + contrast.negatives]) ** 2).sum(-1)
    if contrast.kind in ("simple", "beta"):
        return ((1 + contrast.beta) * r[0] - r[1]).mean()
    if contrast.kind == "triplet":
        return (tau * torch.nn.functional.softplus((r[0] - r[1] + contrast.margin) / tau)).mean()
    if contrast.kind == "infonce":
        return (torch.logsumexp(-r / tau, 0) + r[0] / tau).mean()
    if contrast.kind == "exact":
        own = y[2 + contrast.negatives :].detach()
        weight = torch.sigmoid(-0.5 * ((own[0] - own[1:]) ** 2).sum(-1) / tau) / tau
        return (weight * (r[0] - r[1:])).sum(0).mean()
    near, far = (2 * r[k].mean() / y.shape[-1] for k in (0, 1))
    return -torch.softmax(torch.stack([-near / tau, -far / tau]), 0)[0]


@pytest.mark.torch
@pytest.mark.parametrize("depth", [1, 2, 3, 4])
@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize(("kind", "parameters"), KINDS)
def test_gradients_are_those_of_automatic_differentiation(kind, parameters, normalised, depth):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(depth)
    weights = uniform_start((7, *(6, 8, 5)[: depth - 1], 4), True, rng)
    contrast, output = Contrast(kind, temperature=0.4, **parameters), Normalisation(normalised, 0.05)
    views = 2 if kind == "nt_xent" else 2 + contrast.negatives + (1 + contrast.negatives) * (kind == "exact")
    x = rng.normal(size=(views, 6, 7))
    found = forward(weights, x.reshape(-1, 7))
    y = output.value(found.last).reshape(views, 6, -1)
    value, slope = batch_slope(contrast, y)
    ours = gradient(weights, found, output.back(found.last, slope.reshape(found.last.shape))).vector
    theirs = replace(weights, W=[torch.tensor(W) for W in weights.W], b=[torch.tensor(b) for b in weights.b])
    f = torch.tensor(x)
    for layer, (W, b) in enumerate(zip(theirs.W, theirs.b, strict=True)):
        W.requires_grad_()
        b.requires_grad_()
        f = (torch.relu(f) if layer else f) @ W.T + b
    if normalised:
        f = f / (f.norm(dim=-1, keepdim=True) + 0.05)
    loss = torch_loss(torch, contrast, f)
    loss.backward()
    wanted = np.concatenate([part.grad.numpy().ravel() for part in (*theirs.W, *theirs.b)])
    assert value == pytest.approx(loss.item(), rel=1e-12, abs=1e-12)  # rounding
    assert np.allclose(ours, wanted, rtol=0, atol=1e-12 * np.abs(wanted).max())  # rounding


@pytest.mark.parametrize(("widths", "how"), [("[6, 3]", "exact"), ("[20, 300]", "estimates")])
def test_operators_have_a_cost(widths, how):
    """How near it is, the study of predictions says."""
    few, many = (
        costs.operator(problem(network=f"widths = {widths}", operator=f"images = 16\nviews = {views}"))
        for views in (2, 8)
    )
    assert few.contents == many.contents == f"operators of 2 layers, {how}"
    assert many.memory > few.memory
    assert min(few.seconds, many.seconds) > 0.0
