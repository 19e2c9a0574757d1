"""Where filters gather on the circle.

Filters that climb a contrastive objective gather where a point of the data is about to be switched off by ReLU: there
the distribution function jumps, which was smooth at the start.
"""

import matplotlib.pyplot as plt
import numpy as np

import meanfield

problem = meanfield.parse_problem("""
family = "alpha_contrastive"
model = { activation = "relu" }
importance = { kind = "gaussian", temperature = 0.3 }
time = { stop = 10.0, outputs = 5 }
data.law = "points"
data.points = [[1.5, 0.0], [0.3, 1.2], [-0.8, 0.6], [-0.2, -1.0], [0.7, -0.9]]
""")
density, sgd = meanfield.solve_density(problem), meanfield.simulate_sgd(problem)
print("verdict:", meanfield.compare(density, sgd).attrs["verdict"])

w = sgd["weights"].isel(time=-1).values.reshape(-1, 2)
plt.ecdf(np.arctan2(w[:, 1], w[:, 0]), color="C1", linestyle="--", label="800 filters of SGD")
bounds = density["angle_bnds"]
plt.plot(bounds[:, 1], np.cumsum(density["rho"][-1] * bounds.diff("bounds")[:, 0]), label="limit")
plt.gca().set(xlabel="angle of a filter", ylabel="share of filters below, $t = 10$")
plt.legend()
plt.show()
# prints: verdict: AGREES
