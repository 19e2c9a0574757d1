"""Steps of the optimiser of PyTorch on the losses that the theory pages name are those of the library."""

import numpy as np
import pytest

from tests.example_problems import make_problem
from tests.families.contrastive.sgd.test_plain import EVERY_STEP, TWO, N, check, on_sphere

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


@pytest.mark.parametrize("centering", ["none", "batch"])
def test_neurons_descend_minus_the_mean_of_products(centering):
    problem = make_problem(
        TWO, *EVERY_STEP, f'model.centering = "{centering}"', 'prior = { name = "l1", strength = 0.7 }'
    )

    def take_step(problem, U, w, x1, x2):
        w = torch.tensor(w, requires_grad=True)
        optimizer = torch.optim.SGD([w], lr=problem.model.learning_rate)
        y1, y2 = (torch.tanh(torch.as_tensor(x) @ w / N**0.5) for x in (x1, x2))
        if centering == "batch":
            y1, y2 = y1 - y1.mean(), y2 - y2.mean()
        (-(y1 * y2).mean() + problem.prior.strength * w.abs().sum() / N).backward()
        optimizer.step()
        return on_sphere(w.detach().numpy())

    check(problem, take_step)


def test_committees_descend_half_the_squared_error():
    rng, N, eta, eta_v = np.random.default_rng(0), 12, 0.7, 0.3
    w, v, x, y = (
        rng.standard_normal((2, N)),
        rng.standard_normal(2),
        rng.standard_normal((5, N)),
        rng.standard_normal(5),
    )
    trained = [torch.tensor(each, requires_grad=True) for each in (w, v)]
    optimizer = torch.optim.SGD(
        [{"params": [trained[0]], "lr": eta}, {"params": [trained[1]], "lr": eta_v / N}], lr=1.0
    )
    output = torch.erf(torch.as_tensor(x) @ trained[0].T / N**0.5 / 2**0.5) @ trained[1]
    (0.5 * (output - torch.as_tensor(y)) ** 2).mean().backward()
    optimizer.step()
    field = x @ w.T / N**0.5  # hidden_manifold.md, section 1, for a batch
    g, slope = torch.erf(torch.as_tensor(field) / 2**0.5).numpy(), np.sqrt(2 / np.pi) * np.exp(-(field**2) / 2)
    delta = g @ v - y
    w_after = w - eta / N**0.5 * np.einsum("b,k,bk,bn->kn", delta, v, slope, x) / 5
    v_after = v - eta_v / N * delta @ g / 5
    np.testing.assert_allclose(trained[0].detach(), w_after, atol=1e-12)  # rounding
    np.testing.assert_allclose(trained[1].detach(), v_after, atol=1e-12)  # rounding
