"""Oja's rule loses a principal component at a large rate.

On samples with a signal of variance 2 along a feature the rule ends at q^2 = (4 - tau)/(2 (2 + tau)), the line, and at
0 above a rate of 4. Circles are limits at t = 20, bars are SGD, which scatters widely near the threshold.

C. Wang, J. Mattingly and Y. M. Lu, Scaling limit: exact and tractable analysis, arXiv:1712.04332 (2017).
"""

import matplotlib.pyplot as plt
import numpy as np

import meanfield

problem = meanfield.parse_problem("""
family = "update_rule"
data = { signal = "spiked" }
model = { rule = "oja", rule_parameters = { rate = 1.0 }, constraint = "sphere" }
features = [{ hidden = { law = "gaussian", second_moment = 2.0 }, initial_overlap = 0.3 }]
time = { stop = 20.0, outputs = 11 }
""")
for rate in (0.5, 1.0, 2.0, 3.0, 3.5, 5.0):
    made = meanfield.with_value(problem, "model.rule_parameters.rate", rate)
    limit, sgd = meanfield.solve_order_parameters(made), meanfield.simulate_sgd(made)["R"][:, -1].squeeze()
    print(f"rate {rate}: q = {limit['R'][-1].item():.4f}, SGD {sgd.mean().item():.3f}")
    plt.plot(rate, limit["R"][-1].item(), "C0o", mfc="white", ms=8)
    plt.errorbar(rate, sgd.mean(), 2 * sgd.std(ddof=1) / 8**0.5, fmt="C1x")
tau = np.linspace(0, 6, 200)
plt.plot(tau, np.sqrt(np.maximum(4 - tau, 0) / (4 + 2 * tau)), "C0")
plt.gca().set(xlabel=r"rate $\tau$", ylabel="overlap $q$ at $t = 20$")
plt.show()
# prints: rate 0.5: q = 0.8367, SGD 0.838
# prints: rate 1.0: q = 0.7071, SGD 0.712
# prints: rate 2.0: q = 0.5000, SGD 0.503
# prints: rate 3.0: q = 0.3162, SGD 0.298
# prints: rate 3.5: q = 0.2132, SGD 0.064
# prints: rate 5.0: q = 0.0000, SGD -0.034
