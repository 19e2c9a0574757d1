"""A moving average knows more than the weights.

The average of weights in time (EMA) forgets their noise: at a rate at which weights rest at an overlap of 0.8, the
average goes on to 0.9. It lags behind at first.
"""

import matplotlib.pyplot as plt
import numpy as np

import meanfield

problem = meanfield.parse_problem("""
model = { activation = "quadratic", learning_rate = 0.05, batch_size = 4, average_rate = 0.2 }
time = { stop = 20.0 }
particles = { dimension = 1000 }
[[features]]
hidden = { law = "three_point", second_moment = 1.1, fourth_moment = 6.05 }
initial_overlap = 0.5
""")
limit, sgd = meanfield.solve_order_parameters(problem), meanfield.simulate_sgd(problem)
print("verdict:", meanfield.compare(limit, sgd).attrs["verdict"])

for name, norm, mark in (("q", 1.0, "C0o"), ("q_average", "norm_average", "C1s")):
    cosine, runs = (found[name].isel(feature=0) / np.sqrt(found.get(norm, norm)) for found in (limit, sgd))
    plt.plot(limit["time"], cosine, mark[:2], label={"q": "weights"}.get(name, "their average"))
    runs = runs.isel(time=slice(None, None, 4))
    plt.errorbar(runs["time"], runs.mean("replica"), 2 * runs.std("replica", ddof=1) / 8**0.5, fmt=mark)
plt.gca().set(xlabel="time $t = k/N$", ylabel="cosine with the feature")
plt.legend()
plt.show()
# prints: verdict: AGREES
