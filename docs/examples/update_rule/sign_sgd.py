"""Signs of residuals against bursts of noise.

One label in twenty is off by 4. Least squares takes large steps after each, and steps along the sign of the residual
do not: they learn more slowly, and end lower.

N. Marshall, K. L. Xiao, A. Agarwala and E. Paquette, To clip or not to clip, arXiv:2406.11733 (2024).
"""

import matplotlib.pyplot as plt
import numpy as np

import meanfield

model, data = {"rule_parameters": {"rate": 0.3}}, {"coins": {"burst": 0.05}}
problem = {"family": "update_rule", "data": data, "features": [{}], "time": {"stop": 15.0, "outputs": 16}}
for name, step, kinks, mark in (
    ("residual", lambda y, s, burst, rate: rate * (y + 4.0 * burst - s), (), "C0o"),
    ("its sign", lambda y, s, burst, rate: rate * np.sign(y + 4.0 * burst - s), ("y - s", "y - s + 4"), "C1s"),
):
    rule = meanfield.Rule(step, kinks=kinks, observables={"error": lambda y, s: 0.5 * (y - s) ** 2})
    made = meanfield.Problem(**problem, model=model | {"rule": rule})
    limit, sgd = meanfield.solve_order_parameters(made), meanfield.simulate_sgd(made)
    print(f"{name}: error {limit['observables'][-1].item():.4f},", meanfield.compare(limit, sgd).attrs["verdict"])
    plt.semilogy(limit["time"], limit["observables"], mark[:2], label=name)
    runs = sgd["observables"][..., 0]
    plt.errorbar(runs["time"], runs.mean("replica"), 2 * runs.std("replica", ddof=1) / 8**0.5, fmt=mark)
plt.gca().set(xlabel="time $t = k/N$", ylabel="error $|w - u|^2/2N$")
plt.legend()
plt.show()
# prints: residual: error 0.0710, AGREES
# prints: its sign: error 0.0196, AGREES
