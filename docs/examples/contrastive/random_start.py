"""When a feature is found from nothing.

Random weights know nothing of the feature. Chance, of order 1/sqrt N, makes the first step, so that the time of escape
is random and grows like log N; the limit predicts its quantiles, and 200 runs of SGD have its median.
"""

import matplotlib.pyplot as plt
import numpy as np

import meanfield

problem = meanfield.parse_problem("""
model = { activation = "quadratic", learning_rate = 0.02, batch_size = 10 }
time = { stop = 70.0, outputs = 71 }
particles = { replicas = 200, record = "statistics", escape_overlap = 0.5 }
[[features]]
hidden = { law = "three_point", second_moment = 1.5, fourth_moment = 6.0 }
initial_overlap = "random"
""")
dynamics = meanfield.contrastive.analyse_dynamics(problem)
plt.semilogx(dynamics["dimension"], dynamics["escape_time_quantile"].sel(quantile=0.5), "C0-", label="limit")
for N in (100, 1000, 10_000):
    sgd = meanfield.simulate_sgd(meanfield.with_value(problem, "particles.dimension", N))
    predicted = dynamics["escape_time_quantile"].sel(dimension=N, quantile=0.5).item()
    print(f"N = {N}: half have escaped at {np.nanmedian(sgd['escape_time']):.1f}, predicted {predicted:.1f}")
    plt.plot(N, np.nanmedian(sgd["escape_time"]), "C1o", label="SGD" if N == 100 else None)
plt.gca().set(xlabel="number of weights $N$", ylabel="median time of escape")
plt.legend()
plt.show()
# prints: N = 100: half have escaped at 18.2, predicted 18.5
# prints: N = 1000: half have escaped at 28.8, predicted 28.5
# prints: N = 10000: half have escaped at 39.0, predicted 38.5
