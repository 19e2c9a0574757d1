"""The law of a single filter under the noise of its batches.

A filter that sees small batches is thrown about: its law over 3000 runs diffuses, and gathers at maxima, too.
"""

import matplotlib.pyplot as plt
import numpy as np

import meanfield

problem = meanfield.parse_problem("""
family = "alpha_contrastive"
model = { activation = "tanh" }
filters.count = 1
density.noise = true
importance = { kind = "gaussian", temperature = 0.3 }
training = { learning_rate = 0.1, batch_size = 4 }
time = { stop = 5.0, outputs = 3 }
particles = { replicas = 3000 }
data = { law = "points", points = [[1.5, 0.0], [0.3, 1.2], [-0.8, 0.6], [-0.2, -1.0], [0.7, -0.9]] }
""")
density, sgd = meanfield.solve_density(problem), meanfield.simulate_sgd(problem)
print("verdict:", meanfield.compare(density, sgd).attrs["verdict"])

w = sgd["weights"].isel(time=-1).values.reshape(-1, 2)
plt.hist(np.arctan2(w[:, 1], w[:, 0]), bins=36, range=(-np.pi, np.pi), density=True, color="0.8", label="SGD")
plt.plot(density["angle"], density["rho"][-1], label="limit")
plt.gca().set(xlabel="angle of the filter", ylabel="density at $t = 5$")
plt.legend()
plt.show()
# prints: verdict: AGREES
