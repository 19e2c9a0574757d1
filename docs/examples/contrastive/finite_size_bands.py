"""How far single runs stray from the limit.

At finite N every run differs, by a distance of order 1/sqrt N that the limit predicts, too: the spread of 400 runs over
the predicted one. Runs stray most where the overlap rises fastest.
"""

import matplotlib.pyplot as plt

import meanfield

problem = meanfield.parse_problem("""
model = { activation = "quadratic", learning_rate = 0.02, batch_size = 10 }
time = { stop = 20.0, outputs = 41 }
particles = { dimension = 500, replicas = 400, record = "statistics" }
[[features]]
hidden = { law = "three_point", second_moment = 1.1, fourth_moment = 6.05 }
initial_overlap = 0.5
""")
limit = meanfield.solve_order_parameters(problem)
plt.plot(limit["time"], limit["q_covariance"][:, 0, 0] ** 0.5, label="limit")
for N, mark in ((100, "C1s"), (1000, "C2o")):
    runs = meanfield.simulate_sgd(meanfield.with_value(problem, "particles.dimension", N))
    spread = runs["q_covariance"][:, 0, 0] ** 0.5
    print(f"N = {N}: deviation at t = 10 {spread.sel(time=10).item():.3f} / sqrt N, predicted", end=" ")
    print(f"{limit['q_covariance'].sel(time=10).item() ** 0.5:.3f}")
    plt.plot(runs["time"][::2], spread[::2], mark, label=f"400 runs, N = {N}")
plt.gca().set(xlabel="time $t = k/N$", ylabel=r"$\sqrt{N}$ times the deviation of $q$")
plt.legend()
plt.show()
# prints: N = 100: deviation at t = 10 0.301 / sqrt N, predicted 0.292
# prints: N = 1000: deviation at t = 10 0.287 / sqrt N, predicted 0.292
