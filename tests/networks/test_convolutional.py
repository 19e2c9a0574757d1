"""Convolutional networks against modules of PyTorch; their operators against those of NumPy and their definition."""

import importlib.util

import numpy as np
import pytest

from meanfield.errors import InputError
from meanfield.families.latent_tree.images.operators import Population, layer_operators
from meanfield.networks import convolutional, convolutional_jacobians
from meanfield.networks.contrast import Contrast
from meanfield.networks.convolutional import ConvolutionalNetwork
from meanfield.networks.convolutional_jacobians import ConvolutionalConnections, ConvolutionalJacobians
from meanfield.networks.convolutional_values import forward, images_of, moved, statistics_of
from meanfield.networks.dense import DenseWeights
from meanfield.networks.jacobians import LayerProducts
from meanfield.networks.normalisation import Normalisation
from tests.networks.modules import module_of

RESNET = ConvolutionalNetwork((32, 32, 3), (64, 128, 256, 512), 2, 3, 2, True, True, (512, 128), False)


def network(image=(6, 5, 3), channels=(4, 6), **changes):
    usual = {"blocks": 1, "kernel": 3, "stride": 2, "residual": True, "batch_norm": False, "widths": (5, 4)}
    return ConvolutionalNetwork(image=image, channels=channels, **(usual | {"bias": False} | changes))


def population(rng, shape, images=4, each=3):
    inputs = int(np.prod(shape.image))
    themselves = rng.normal(size=(images, inputs))
    return Population(np.repeat(themselves, each, axis=0) + 0.3 * rng.normal(size=(images * each, inputs)), themselves)


def test_resnet_18_has_the_numbers_of_the_published_one():
    """11,173,962 with a classifier of ten classes, which has 5,130 (github.com/kuangliu/pytorch-cifar)."""
    projector = 512 * 512 + 512 * 128
    assert RESNET.numbers == 11_173_962 - 5_130 + projector
    assert len(RESNET.convolutions) == 20
    assert RESNET.start(np.random.default_rng(0)).vector.size == RESNET.numbers
    # The image, 5 layers of 64 x 32 x 32, and 5 of each of the other stages, whose inputs are moved, and the projector.
    stages = sum(5 * channels * (32 >> s) ** 2 for s, channels in enumerate(RESNET.channels))
    assert RESNET.activations == 3 * 32 * 32 + stages + 512 + 128


def test_weights_in_a_row_are_the_weights():
    start = network(bias=True).start(np.random.default_rng(0))
    again = start.like(start.vector)
    assert all(np.array_equal(one, other) for one, other in zip(start.parts, again.parts, strict=True))
    assert [len(part) for part in (again.W, again.b, again.scale)] == [8, 8, 0]
    bounds = [layer.inputs**-0.5 for layer in start.network.layers]
    assert all(0.5 * bound < np.abs(W).max() <= bound for bound, W in zip(bounds, start.W, strict=True))


def test_convolutions_without_pytorch_are_refused_with_the_command(monkeypatch):
    monkeypatch.setattr(convolutional, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pip install 'meanfield-dynamics\[torch\]'"):
        convolutional.check_torch()
    monkeypatch.setattr(convolutional, "find_spec", importlib.util.find_spec)


VARIANTS = [
    {},
    {"residual": False, "bias": True},
    {"batch_norm": True},
    {"batch_norm": True, "bias": True, "kernel": 1, "blocks": 2},
    {"stride": 1, "channels": (4, 4), "kernel": 5},
    {"stride": 3, "widths": (4,)},
]


@pytest.mark.torch
@pytest.mark.parametrize("changes", VARIANTS, ids=str)
def test_forward_passes_and_statistics_are_those_of_modules(changes):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    shape = network(**changes)
    start = shape.start(rng)
    for part in (*start.scale, *start.shift):
        part += 0.2 * rng.normal(size=part.shape)
    weights, module = start.tensors("float64"), module_of(torch, start)
    running = shape.first_statistics
    for _ in range(3):
        x = rng.normal(size=(5, int(np.prod(shape.image))))
        images = images_of(shape, x, weights.W[0])
        assert np.array_equal(images.numpy(), x.reshape(5, *shape.image).transpose(0, 3, 1, 2))
        found = forward(weights, images)
        assert torch.allclose(found.last, module(images), rtol=1e-10, atol=1e-12)  # rounding
        running = moved(running, found.seen)
    module.eval()
    known = statistics_of(weights, running) if shape.batch_norm else None
    assert torch.allclose(forward(weights, images, known).last, module(images), rtol=1e-10, atol=1e-12)  # rounding


LOSSES = [("simple", {}), ("beta", {"beta": -0.5}), ("exact", {"negatives": 2}), ("infonce", {})]


@pytest.mark.torch
@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize(("kind", "parameters"), [*LOSSES, ("nt_xent", {})])
def test_operators_of_dense_networks_are_those_of_numpy(kind, parameters, normalised):
    """Kernels of one pixel on images of one pixel are matrices."""
    pytest.importorskip("torch")
    rng = np.random.default_rng(1)
    shape = network(image=(1, 1, 7), channels=(6,), kernel=1, residual=False)
    weights, views = shape.start(rng), population(rng, shape)
    dense = DenseWeights([W.reshape(W.shape[:2]) for W in weights.W], [])
    given = Contrast(kind, temperature=0.4, **parameters), Normalisation(normalised, 0.05)
    found, wanted = layer_operators(*given, weights, views), layer_operators(*given, dense, views)
    assert found.keys() == wanted.keys()
    for name, values in wanted.items():
        assert np.allclose(found[name], values, rtol=1e-9, atol=1e-10), name  # rounding, of M's square root twice
    own, other = ConvolutionalJacobians(weights, views.x), Normalisation(normalised, 0.05)
    M = rng.normal(size=(12, 12))
    M = M + M.T
    for layer in range(5):
        operator = ConvolutionalConnections(own, other).operator(layer, M)
        step = rng.normal(size=own.W[layer].size)
        product = LayerProducts(own, layer, M, other).apply(step)
        assert np.allclose(operator.left.T @ (operator.sign * (operator.right @ step)), product, rtol=1e-9, atol=1e-10)


def definition(torch, weights, x, layer):
    """Connections of a layer, shape (views, weights, outputs), by a backward pass for each; and the last layer."""
    module, shape = module_of(torch, weights), weights.network
    last = module.eval()(torch.tensor(x.reshape(-1, *shape.image).transpose(0, 3, 1, 2)))
    W = module.layers[layer].weight
    rows = [[torch.autograd.grad(y, W, retain_graph=True)[0].numpy().ravel() for y in view] for view in last]
    return np.array(rows).swapaxes(1, 2), last.detach().numpy()


@pytest.mark.torch
@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize(("kind", "parameters"), LOSSES[:3])
def test_gradients_are_operators_times_weights_where_all_paths_meet_them(kind, parameters, residual):
    """-grad L = 2 OP vec W (theorem 3) of layers that no path goes around, and of parallel ones taken together."""
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(2)
    shape = network(residual=residual)
    weights, views = shape.start(rng), population(rng, shape)
    contrast = Contrast(kind, temperature=0.4, **parameters)
    found = layer_operators(contrast, Normalisation(False), weights, views)
    K, y = zip(*(definition(torch, weights, views.x, layer) for layer in range(len(weights.W))), strict=True)
    _, y0 = definition(torch, weights, views.unaugmented, 0)
    y = y[0]
    P = np.repeat(np.eye(4), 3, axis=1) / 3.0
    xi = 2.0 * contrast.weight(0.5 * ((y0[:, None] - y0) ** 2).sum(axis=-1)) if kind == "exact" else np.ones((4, 4))
    M = P.T @ (np.diag(xi.sum(axis=1)) - xi) @ P / 16.0
    if kind == "beta":
        M += 0.5 * (np.eye(12) / 12.0 - P.T @ P / 4.0)
    gradients = [-2.0 * np.einsum("xy,xwo,yo->w", M, k, y) for k in K]  # of losses by their means and variances
    assert np.allclose(found["gradient_norm"], [np.linalg.norm(g) for g in gradients], rtol=1e-10)  # rounding
    assert np.all(found["residue"] < 1e-12)  # rounding
    # A first convolution, a block of two whose input is added, one whose input is moved by a third, and two dense ones.
    alone = [0, 6, 7] if residual else range(len(weights.W))
    together = [[4, 5]] if residual else []
    for group in (*([layer] for layer in alone), *together):
        k = np.concatenate([K[layer] for layer in group], axis=1)
        W = np.concatenate([weights.W[layer].ravel() for layer in group])
        OP = np.einsum("xy,xwo,yvo->wv", M, k, k)
        gradient = np.concatenate([gradients[layer] for layer in group])
        assert np.allclose(-2.0 * OP @ W, gradient, rtol=0, atol=1e-12 * np.abs(gradient).max())  # rounding
        if len(group) == 1:
            assert found["bypass"][group[0]] < 1e-12  # rounding
            values = np.linalg.eigvalsh(OP)
            assert found["layer_operator_norm"][group[0]] == pytest.approx(np.linalg.norm(OP), rel=1e-9)  # M, 1e-13
            assert found["layer_operator_top"][group[0]] == pytest.approx(values[-1], rel=1e-9)  # likewise
    for layer in set(range(len(weights.W))) - set(alone):
        OP = np.einsum("xy,xwo,yvo->wv", M, K[layer], K[layer])
        around = np.linalg.norm(gradients[layer] + 2.0 * OP @ weights.W[layer].ravel())
        assert found["bypass"][layer] == pytest.approx(around / np.linalg.norm(gradients[layer]), rel=1e-9)  # rounding
        assert found["bypass"][layer] > 0.05


@pytest.mark.torch
@pytest.mark.parametrize("changes", VARIANTS, ids=str)
def test_changes_of_the_last_layer_are_those_of_modules_and_pulls_their_adjoints(changes):
    """Channels are normalised as those of the population, by statistics that a module keeps from it."""
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(5)
    shape = network(**changes)
    weights, views = shape.start(rng), population(rng, shape)
    for part in (*weights.scale, *weights.shift):
        part += 0.2 * rng.normal(size=part.shape)
    own, single = (ConvolutionalJacobians(weights, views.x, single=one) for one in (False, True))
    module, images = module_of(torch, weights), torch.tensor(views.x.reshape(-1, *shape.image).transpose(0, 3, 1, 2))
    for norm in module.norms:
        norm.momentum = None  # the mean over batches, of which there is one
    module(images)
    for norm in module.norms:  # modules keep the variance of a sample, and batches are divided by their own
        size = len(images) * {4: 30, 6: 9}[len(norm.running_var)]
        norm.running_var *= (size - 1) / size
    module.eval()
    by_last = rng.normal(size=(2, *own.last.shape))
    every = own.pulls(by_last)
    off = single.rounding(by_last)
    for layer, W in enumerate(weights.W):
        steps, pulled = rng.normal(size=(2, W.size)), own.pull(layer, by_last)
        pushed, last = own.push(layer, steps), module(images)
        J = [[torch.autograd.grad(y, module.layers[layer].weight, retain_graph=True)[0] for y in view] for view in last]
        J = np.array([[row.numpy().ravel() for row in view] for view in J])
        assert np.allclose(pushed, np.einsum("xow,sw->sxo", J, steps), rtol=1e-9, atol=1e-10)  # rounding
        assert np.allclose(pulled, np.einsum("xow,sxo->sw", J, by_last), rtol=1e-9, atol=1e-10)  # rounding
        assert np.allclose(every[layer].reshape(2, -1), pulled, rtol=1e-10, atol=1e-12)  # rounding
        for one, other in (
            (single.push(layer, steps), pushed),
            (single.pull(layer, by_last), pulled),
        ):
            assert np.linalg.norm(one - other) < 10.0 * off[layer] * np.linalg.norm(other)
        assert 1e-8 < off[layer] < 1e-5  # single precision has 6e-8


@pytest.mark.torch
def test_changes_are_the_same_where_values_are_not_kept_and_views_come_one_by_one(monkeypatch):
    pytest.importorskip("torch")
    rng = np.random.default_rng(6)
    shape = network(batch_norm=True)
    weights, views = shape.start(rng), population(rng, shape)
    whole = ConvolutionalJacobians(weights, views.x)
    step, by_last = rng.normal(size=whole.W[1].size), rng.normal(size=whole.last.shape)
    pushed, pulled = whole.push(1, step), whole.pull(1, by_last)
    monkeypatch.setattr(convolutional_jacobians, "MOST_KEPT", 0)
    monkeypatch.setattr(convolutional_jacobians, "TOGETHER", 1)
    assert np.allclose(ConvolutionalJacobians(weights, views.x).push(1, step), pushed, rtol=1e-12)  # rounding
    assert np.allclose(ConvolutionalJacobians(weights, views.x).pull(1, by_last), pulled, rtol=1e-12)  # rounding


@pytest.mark.torch
def test_normalised_batches_leave_a_residue_below_and_none_above():
    """The gradient follows means and variances of the population, as one batch of a module in training does."""
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(3)
    shape = network(batch_norm=True)
    weights, views = shape.start(rng), population(rng, shape)
    found = layer_operators(Contrast("simple"), Normalisation(False), weights, views)
    module = module_of(torch, weights)
    y = module(torch.tensor(views.x.reshape(-1, *shape.image).transpose(0, 3, 1, 2)))
    means = y.reshape(4, 3, -1).mean(1)
    loss = -((means - means.mean(0)) ** 2).sum() / 4.0
    slopes = torch.autograd.grad(loss, [layer.weight for layer in module.layers])
    assert float(found["loss"]) == pytest.approx(loss.item(), rel=1e-12)  # rounding
    assert np.allclose(found["gradient_norm"], [slope.norm().item() for slope in slopes], rtol=1e-9)  # rounding
    assert np.all(found["residue"][:-2] > 0.1)
    assert np.all(found["residue"][-2:] < 1e-12)  # rounding
    assert np.all(found["bypass"][-2:] < 1e-12)  # rounding


@pytest.mark.torch
@pytest.mark.parametrize("batch_norm", [False, True])
@pytest.mark.parametrize("normalised", [False, True])
def test_errors_of_estimates_bound_them(batch_norm, normalised):
    """A bound of a trace fails twice in a thousand times, those of norms less often; seeds are fixed."""
    pytest.importorskip("torch")
    rng = np.random.default_rng(4)
    shape = network(batch_norm=batch_norm)
    given = Contrast("infonce", temperature=0.5), Normalisation(normalised), shape.start(rng), population(rng, shape)
    exact, found = layer_operators(*given), layer_operators(*given, rng)
    for name in ("layer_operator_norm", "layer_operator_top", "between_trace", "within_trace"):
        error = found[f"{name}_error"]
        assert np.all(np.abs(found[name] - exact[name]) <= error + 1e-9 * exact[name]), name  # M loses 1e-13
        assert np.all(error < 0.7 * exact[name]), name  # they say something
