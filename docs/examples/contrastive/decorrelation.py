"""How strong a penalty keeps two channels apart.

Without a penalty on the covariance of outputs both channels learn one feature; a weak one tilts them, a stronger one
gives each a feature of its own.
"""

import matplotlib.pyplot as plt

import meanfield

problem = meanfield.parse_problem("""
model = { activation = "quadratic", centering = "population", learning_rate = 0.01, batch_size = 10, channels = 2 }
time = { stop = 200.0, outputs = 101 }
particles = { dimension = 2000 }
features = [
    { hidden = { law = "three_point", second_moment = 1.2, fourth_moment = 7.2 }, initial_overlap = [0.5, 0.4] },
    { hidden = { law = "three_point", second_moment = 1.1, fourth_moment = 6.05 }, initial_overlap = [0.1, 0.3] },
]
""")
for strength, mark in ((0.0, "C0o"), (0.03, "C1s"), (0.1, "C2^")):
    made = meanfield.with_value(problem, "decorrelation", {"strength": strength})
    limit, sgd = meanfield.solve_order_parameters(made), meanfield.simulate_sgd(made)
    print(
        f"strength {strength:g}: M12 = {limit['M'][-1, 0, 1].item():.3f}, SGD {sgd['M'][:, -1, 0, 1].mean().item():.3f}"
    )
    plt.plot(limit["time"], limit["M"][:, 0, 1], mark[:2], label=f"strength {strength:g}")
    plt.plot(sgd["time"][::10], sgd["M"][:, ::10, 0, 1].mean("replica"), mark)
plt.gca().set(xlabel="time $t = k/N$", ylabel="overlap of the channels")
plt.legend()
plt.show()
# prints: strength 0: M12 = 1.000, SGD 1.000
# prints: strength 0.03: M12 = 0.917, SGD 0.918
# prints: strength 0.1: M12 = 0.000, SGD -0.001
