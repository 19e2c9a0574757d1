"""A rule that nobody has analysed.

Learn by a margin from labels of which one in ten is wrong, in one line of code: the limit follows from that line, with
the scatter of single runs (band), and SGD runs it.
"""

import matplotlib.pyplot as plt
import numpy as np

import meanfield


def step(y, s, flip, rate):
    label = np.sign(y) * (1 - 2 * flip)
    return rate * label * (s * label < 0.5)


kinks = ("y", "s", "s - 0.5", "s + 0.5")
rule = meanfield.Rule(step, kinks=kinks, observables={"error": lambda y, s: s * y < 0})
model, data = {"rule": rule, "rule_parameters": {"rate": 0.7}}, {"coins": {"flip": 0.1}}
problem = meanfield.Problem(family="update_rule", model=model, data=data, features=[{}], time={"stop": 10.0})
limit, sgd = meanfield.solve_order_parameters(problem), meanfield.simulate_sgd(problem)
print("verdict:", meanfield.compare(limit, sgd).attrs["verdict"])

t, error, scatter = limit["time"], limit["observables"][:, 0], limit["observables_covariance"][:, 0, 0] ** 0.5
plt.fill_between(t, error - 2 * scatter / 1000**0.5, error + 2 * scatter / 1000**0.5, alpha=0.3, label="limit, 95 %")
plt.plot(t, sgd["observables"][..., 0].T, "C1.", markersize=2)
plt.gca().set(xlabel="time $t = k/N$", ylabel="share of wrong answers")
plt.legend()
plt.show()
# prints: verdict: AGREES
