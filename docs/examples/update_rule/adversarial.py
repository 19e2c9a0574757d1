"""A generator and a discriminator.

A discriminator w tells real samples from those of a generator V, which learns the feature from it, with overshoot.

C. Wang, H. Hu and Y. M. Lu, A solvable high-dimensional model of GAN, NeurIPS (2019).
"""

import matplotlib.pyplot as plt

import meanfield

real = {"along": "u", "gain": {"w": lambda w, rate: rate * w}}
fake = {"along": "V", "gain": {"w": lambda w, rate: -rate * w}}
learn = {"along": "V", "move": {"V": {"w": lambda w, c, slow: slow * w * c}}}
problem = meanfield.Problem(
    family="update_rule",
    model={"rule_parameters": {"rate": 0.2, "slow": 0.1}, "constraint": "sphere"},
    groups=[{"name": "w"}, {"name": "V"}],
    features=[{"hidden": {"law": "gaussian", "second_moment": 3.0}, "initial_overlap": [0.2, 0.3]}],
    students=[{"group": "w"}, {"group": "V", "hidden": {"law": "gaussian", "second_moment": 2.5}}],
    draws=[real, fake, learn],
    time={"stop": 40.0},
)
limit, sgd = meanfield.solve_order_parameters(problem), meanfield.simulate_sgd(problem)
print("verdict:", meanfield.compare(limit, sgd).attrs["verdict"])
for k, mark in ((0, "C0o"), (1, "C1s")):
    plt.plot(limit["time"], limit["R"][:, k, 0], mark[:2], sgd["time"], sgd["R"].mean("replica")[:, k, 0], mark)
plt.gca().set(xlabel="time $t = k/N$", ylabel="overlap with the feature")
plt.legend(["discriminator", "SGD", "generator", "SGD"])
plt.show()
# prints: verdict: AGREES
