"""An activation of your own.

The limit takes any function of one number, with the kinks that it has. Is a dead zone in the activation of use? It
slows the start, when outputs are small.
"""

import matplotlib.pyplot as plt

import meanfield


def dead_zone(x):
    return max(abs(x) - 0.5, 0.0)


feature = {"hidden": {"law": "three_point", "second_moment": 2.0, "fourth_moment": 8.0}, "initial_overlap": 0.3}
for activation, mark in (("abs", "C0o"), (meanfield.Activation(dead_zone, kinks=(-0.5, 0.5)), "C1s")):
    model = {"activation": activation, "learning_rate": 0.1, "batch_size": 10}
    problem = meanfield.Problem(model=model, features=[feature], time={"stop": 20.0, "outputs": 11})
    limit, sgd = meanfield.solve_order_parameters(problem), meanfield.simulate_sgd(problem)
    name = "|x|" if activation == "abs" else "dead zone"
    print(f"{name}: q(20) = {limit['q'][-1].item():.4f},", meanfield.compare(limit, sgd).attrs["verdict"])
    plt.plot(limit["time"], limit["q"], mark[:2], label=name)
    runs = sgd["q"].isel(feature=0)
    plt.errorbar(runs["time"], runs.mean("replica"), 2 * runs.std("replica", ddof=1) / 8**0.5, fmt=mark)
plt.gca().set(xlabel="time $t = k/N$", ylabel="overlap $q$")
plt.legend()
plt.show()
# prints: |x|: q(20) = 0.9883, AGREES
# prints: dead zone: q(20) = 0.9785, AGREES
