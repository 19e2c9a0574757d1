"""Coefficients of the linearly implicit steps: order 5, embedded order 4, dense output of order 4, L-stability."""

import numpy as np
import pytest

from meanfield.numerics.quantile_frame.rosenbrock import DENSE, GAMMA, STAGES, TIME_INCREMENTS, TIMES, A, B, C

RATE = 1.3


def right_hand_side(y):
    """Two coupled equations that are not linear."""
    return np.array([y[1] - y[0] ** 3, -RATE * y[0] * y[1] + np.sin(y[0])])


def jacobian(y):
    return np.array([[-3 * y[0] ** 2, 1.0], [-RATE * y[1] + np.cos(y[0]), -RATE * y[0]]])


def step(y, h, f=right_hand_side, df=jacobian):
    """One step as the module's caption says: its end, its estimated error and its increments."""
    matrix = np.eye(len(y)) / (h * GAMMA) - df(y)
    u = np.zeros((STAGES, len(y)))
    for i in range(STAGES):
        u[i] = np.linalg.solve(matrix, f(y + A[i] @ u) + C[i] @ u / h)
    return y + B @ u, u[-1], u


def solved(steps, stop=1.0):
    y = np.array([0.8, -0.4])
    for _ in range(steps):
        before = y
        y, error, u = step(before, stop / steps)
    return before, y, error, u


def order(errors):
    return np.log2(np.array(errors[:-1]) / errors[1:])


EXACT = solved(640)[1]


def test_steps_are_of_order_five():
    errors = [np.abs(solved(n)[1] - EXACT).max() for n in (10, 20, 40)]
    assert order(errors) == pytest.approx(5.0, abs=0.4)  # steps that are not small yet


def test_the_estimated_error_of_a_step_is_of_order_five():
    """An embedded method of order 4 errs by h^5 in a step."""
    errors = [np.abs(step(np.array([0.8, -0.4]), h)[1]).max() for h in (0.1, 0.05, 0.025)]
    assert order(errors) == pytest.approx(5.0, abs=0.4)  # steps that are not small yet


@pytest.mark.parametrize("x", [0.3, 0.7])
def test_dense_output_is_of_order_four(x):
    errors = []
    for h in (0.1, 0.05, 0.025):
        y = np.array([0.8, -0.4])
        end, _, u = step(y, h)
        first, second, third = DENSE @ u
        found = (1 - x) * y + x * (end + (1 - x) * (first + x * (second + x * third)))
        exact = y
        for _ in range(20):
            exact = step(exact, x * h / 20)[0]
        errors.append(np.abs(found - exact).max())
    assert np.all(order(errors) > 4.5)  # h^5 in a step, or better


def test_stiff_modes_are_damped():
    """L-stable: what decays infinitely fast is gone after one step."""
    rate = -1e8
    end, _, _ = step(np.array([1.0]), 1.0, lambda y: rate * y, lambda y: np.array([[rate]]))
    assert abs(end[0]) < 1e-6  # of the order 1/rate times coefficients


def test_stages_are_taken_at_the_published_times():
    """The times of Rodas5P in the paper's table 1."""
    published = [0.0, 0.6358126895828704, 0.4095798393397535, 0.9769306725060716, 0.4288403609558664, 1.0, 1.0, 1.0]
    assert pytest.approx(published, abs=1e-14) == TIMES  # rounding


def test_steps_of_an_equation_that_depends_on_time_are_of_order_five():
    """y' = -y^2 + cos(3 t), with the derivative by t taken times the increments of t."""

    def end_after(steps):
        y, h = 0.5, 1.0 / steps
        for n in range(steps):
            t, u = n * h, np.zeros(STAGES)
            for i in range(STAGES):
                stage = y + A[i] @ u
                f = -(stage**2) + np.cos(3.0 * (t + TIMES[i] * h)) - 3.0 * np.sin(3.0 * t) * h * TIME_INCREMENTS[i]
                u[i] = (f + C[i] @ u / h) / (1.0 / (h * GAMMA) + 2.0 * y)
            y += B @ u
        return y

    errors = [abs(end_after(n) - end_after(640)) for n in (8, 16, 32)]
    assert order(errors) == pytest.approx(5.0, abs=0.4)  # steps that are not small yet
