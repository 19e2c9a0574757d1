"""Training of convolutional networks: steps against PyTorch's own, the probe, resuming, and problem files."""

from importlib.metadata import version

import numpy as np
import pytest

import meanfield
from meanfield.ensembles.checkpoint import Checkpoint
from meanfield.errors import InputError
from meanfield.families.latent_tree.images import operators
from meanfield.families.latent_tree.images.convolutional import ConvolutionalReplicas
from meanfield.families.latent_tree.images.replicas import ImageReplicas, ImageSampler
from meanfield.families.latent_tree.images.simulation import simulation_of
from meanfield.families.latent_tree.images.wording import in_words
from meanfield.families.latent_tree.samples import draw_batch
from meanfield.networks import convolutional
from meanfield.problems.file import format_problem, parse_problem
from tests.families.latent_tree.images.problems import problem
from tests.families.latent_tree.images.test_simulation import torch_loss
from tests.networks.modules import module_of

SMALL = "widths = [6, 3]\noutput_normalisation = true\nconvolution = { channels = [4, 6], blocks = 1"


def small(keys="", **tables):
    return problem(**({"network": f"{SMALL}{keys} }}"} | tables))


def test_a_problem_is_written_and_read_again_and_knows_its_layers():
    chosen = small(", residual = false")
    assert parse_problem(format_problem(chosen)) == chosen
    assert chosen.fixed_dims == {"level": len(chosen.initial_weights.W)} == {"level": 7}
    assert small().fixed_dims == {"level": 8}
    assert "ReLU convolutions of 3 x 3 pixels to 4 - 6 channels, 1 block(s) of two each, residual" in str(
        dict(in_words(small()))["network"]
    )


@pytest.mark.parametrize("method", ["operator", "particles"])
def test_without_pytorch_both_methods_say_how_to_install_it(method, monkeypatch):
    monkeypatch.setattr(convolutional, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"network.convolution: .*pip install 'meanfield-dynamics\[torch\]'"):
        meanfield.solve(small(), method)


def test_fresh_weights_of_kernels_have_the_bound_of_their_numbers():
    """A kernel of 3 x 3 pixels from 4 to 4 channels has 36 numbers in and 36 out."""
    stepper = ConvolutionalReplicas(small(training="weight_noise = 1.0\nbatch_size = 8"), range(1))
    stepper._blend()
    W = stepper._start.like(stepper.w[0]).W[1]
    assert W.shape == (4, 4, 3, 3)
    bound = np.sqrt(6.0 / 72.0)
    assert 0.95 * bound < np.abs(W).max() <= bound  # 144 numbers, all below 0.95 with a chance of 6e-4; seed fixed


def test_operators_that_do_not_fit_are_estimates(monkeypatch):
    assert operators.fits(problem())
    assert not operators.fits(problem(network="widths = [900]"))
    exact = meanfield.solve(problem(), "operator")
    monkeypatch.setattr(operators, "MOST_COLUMNS", 17)
    found = meanfield.solve(problem(), "operator")
    assert found.attrs["warning"] == "norms, tops and traces are estimates by products with random steps"
    assert "warning" not in exact.attrs
    for name in ("layer_operator_norm", "layer_operator_top", "between_trace", "within_trace"):
        error = found[f"{name}_error"]
        assert np.all(abs(found[name] - exact[name]) <= error + 1e-10 * exact[name]), name  # 7 in 1000 fail; M, 1e-13


def test_operators_that_fit_into_no_memory_are_refused(monkeypatch):
    monkeypatch.setattr(operators.psutil, "virtual_memory", lambda: type("Memory", (), {"available": 1e4}))
    with pytest.raises(InputError, match=r"operator.images = 6, operator.views = 2: operators of this network take"):
        meanfield.solve(problem(), "operator")


KINDS = ["kind = 'infonce'\nnegatives = 2", "kind = 'exact'\nnegatives = 2\ntemperature = 0.5", "kind = 'nt_xent'"]


@pytest.mark.torch
@pytest.mark.parametrize("optimiser", ["sgd", "adam"])
@pytest.mark.parametrize("loss", KINDS)
def test_steps_are_those_of_modules_and_optimisers_of_pytorch(loss, optimiser):
    torch = pytest.importorskip("torch")
    chosen = small(loss=loss, training=f"optimiser = '{optimiser}'\nlearning_rate = 0.01\nbatch_size = 8")
    stepper = ConvolutionalReplicas(chosen, range(1))
    module = module_of(torch, stepper._start)
    theirs = (torch.optim.Adam if optimiser == "adam" else torch.optim.SGD)(module.own, lr=0.01)
    rng = np.random.Generator(np.random.PCG64())
    rng.bit_generator.state = stepper.rngs[0].bit_generator.state
    start = stepper.w[0].copy()
    for k in range(3):
        stepper.advance(k, 1)
        x = draw_batch(chosen, ImageSampler(chosen), rng)
        views = chosen.loss.augmented
        flat = torch.tensor(x.reshape(-1, 1, 4, 4))
        first = module(flat[: views * 8])
        rest = [frozen(torch, module, flat[views * 8 :])] if len(x) > views else []
        y = torch.cat([first, *rest])
        loss = torch_loss(torch, chosen.loss.contrast, torch.nn.functional.normalize(y, dim=1).reshape(len(x), 8, -1))
        theirs.zero_grad()
        loss.backward()
        theirs.step()
    moved = np.concatenate([part.detach().numpy().ravel() for part in module.own]) - start
    # single precision of gradients, of which Adam takes the sign where they are smallest
    assert np.linalg.norm(stepper.w[0] - start - moved) < (0.02 if optimiser == "adam" else 1e-4) * np.linalg.norm(
        moved
    )
    running = np.concatenate([[*norm.running_mean, *norm.running_var] for norm in module.norms])
    assert np.allclose(stepper.running[0], running, rtol=2e-3, atol=1e-4)  # likewise, three steps of Adam away
    module.eval()
    pixels = chosen.data.read.values().transpose(0, 3, 1, 2)
    with torch.no_grad():
        features = module.features(torch.tensor(pixels)).numpy()
    found = stepper.features(0, np.arange(20))
    assert found.shape == (20, 6)  # the channels of the last stage, below both dense layers
    assert np.allclose(found, features, rtol=0, atol=0.01 * np.abs(features).max())  # likewise


def frozen(torch, module, x):
    """Outputs of a batch of its own, which moves neither statistics nor weights."""
    kept = [(norm.running_mean.clone(), norm.running_var.clone()) for norm in module.norms]
    with torch.no_grad():
        y = module(x)
    for norm, (mean, variance) in zip(module.norms, kept, strict=True):
        norm.running_mean, norm.running_var = mean, variance
    return y


@pytest.mark.torch
def test_dense_layers_on_one_pixel_are_trained_as_numpy_trains_them():
    pytest.importorskip("torch")
    bars = "tests.families.latent_tree.images.test_convolutional:pixels"
    tables = {
        "data": f"images = '{bars}'\nlaw = 'arrays'\naugmentation = {{ noise = 0.1 }}",
        "loss": "kind = 'infonce'",
    }
    one = "convolution = { channels = [6], blocks = 1, kernel = 1, residual = false, batch_norm = false }"
    convolved = problem(network=f"widths = [3]\noutput_normalisation = true\n{one}", **tables)
    dense = problem(network="widths = [6, 6, 6, 3]\noutput_normalisation = true", **tables)
    ours, theirs = ConvolutionalReplicas(convolved, range(2)), ImageReplicas(dense, range(2))
    assert np.array_equal(ours.w, theirs.w)
    start = ours.w.copy()
    ours.advance(0, 5)
    theirs.advance(0, 5)
    # single precision, which makes 2e-5 to 1.5e-4 by the order of sums
    assert np.abs(ours.w - theirs.w).max() < 1e-3 * np.abs(theirs.w - start).max()
    assert np.allclose(ours.rows["sampled_loss"], theirs.rows["sampled_loss"], rtol=1e-5)  # likewise


def pixels():
    """Images of one pixel of 5 channels, and two classes."""
    rng = np.random.default_rng(0)
    return rng.random((20, 1, 1, 5)), np.arange(20) % 2


ADAM = "optimiser = 'adam'\nlearning_rate = 0.01\nbatch_size = 8\nweight_noise = 0.01"


@pytest.mark.torch
def test_runs_do_not_depend_on_workers_and_go_on_with_the_same_bits(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    chosen = small(training=ADAM, time="stop = 0.12\noutputs = 3", particles="replicas = 3")
    whole = meanfield.solve(chosen, "particles", workers=1)
    assert whole.equals(meanfield.solve(chosen, "particles", workers=3))
    assert f"torch {version('torch')}" == simulation_of(chosen).label  # others do not go on with it
    assert simulation_of(chosen).label in whole.attrs["provenance"]
    step, taken = ConvolutionalReplicas.step, []

    def interrupted(self, k):
        taken.append(k)
        if len(taken) == 17:  # in the middle of the second replica
            raise KeyboardInterrupt
        step(self, k)

    monkeypatch.setattr(ConvolutionalReplicas, "step", interrupted)
    part = meanfield.solve(chosen, "particles", workers=1, record=Checkpoint(tmp_path / "run", save_every=0.0))
    assert part.attrs["status"] == "interrupted"
    monkeypatch.setattr(ConvolutionalReplicas, "step", step)
    rest = meanfield.solve(chosen, "particles", workers=2, record=Checkpoint(tmp_path / "run"))
    assert rest.attrs["status"] == "complete"
    assert rest.equals(whole)


@pytest.mark.torch
def test_a_small_network_learns_and_is_explained():
    pytest.importorskip("torch")
    chosen = small(
        loss="kind = 'nt_xent'\ntemperature = 0.5",
        training="optimiser = 'adam'\nlearning_rate = 0.01\nbatch_size = 32",
        time="stop = 1.0\noutputs = 2",
        particles="replicas = 1",
    )
    first, last = meanfield.solve(chosen, "particles")["sampled_loss"].values[0]
    assert last < 0.9 * first  # it is 0.85 of it
    predicted = {one.method: one for one in meanfield.explain(chosen).predictions}
    assert all(predicted[method].seconds > 0.0 for method in ("operator", "particles"))
    operator = meanfield.solve(chosen, "operator")
    assert operator.sizes["level"] == 8
    assert np.all(operator["residue"] > 0.0)
