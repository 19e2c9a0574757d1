"""A phase diagram.

A sweep solves a problem for all values of two keys, on all cores. Dark is where nothing is learnt.
"""

import tempfile

import matplotlib.pyplot as plt

import meanfield

problem = meanfield.parse_problem("""
model = { activation = "quadratic", learning_rate = 0.1, batch_size = 10 }
features = [{ hidden = { law = "gaussian", second_moment = 1.2 }, initial_overlap = 0.5 }]
time = { stop = 1.0 }
""")
axes = [
    {"key": "model.learning_rate", "log": {"start": 0.02, "stop": 2.0, "points": 24}},
    {"key": "features[0].hidden.second_moment", "grid": {"start": 0.8, "stop": 2.4, "points": 17}},
]
sweep = meanfield.Sweep(problem=problem, axes=axes, methods={"fixed_points": ["similarity"]})
if __name__ == "__main__":  # workers import a script
    with tempfile.TemporaryDirectory() as folder:
        found = meanfield.run_sweep(sweep, folder)
    print(f"something is learnt at {float((found['similarity'] > 0).mean()):.0%} of the points")
    found["similarity"].plot(x="learning_rate", xscale="log", cbar_kwargs={"label": "overlap at rest"})
    plt.gca().set(xlabel="learning rate", ylabel="second moment")
    plt.show()
# prints: something is learnt at 60% of the points
