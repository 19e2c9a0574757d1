"""Two tasks, one after the other.

A student of squares has one teacher until t = 20, and another from then on. How alike must they be not to forget?

S. Lee, S. Goldt and A. Saxe, Continual learning in the teacher-student setup, ICML (2021).
"""

import matplotlib.pyplot as plt

import meanfield

rule = meanfield.Rule(
    lambda y, s, V, second: 0.05 * s * ((y[0] + second * ((V - 1) * y[0] + (1 - V * V) ** 0.5 * y[1])) ** 2 - s * s),
    observables={"error": lambda y, s: 0.5 * (y[0] ** 2 - s**2) ** 2},
)
for V, mark in ((0.0, "C0o"), (0.6, "C1s"), (0.9, "C2^")):
    problem = meanfield.Problem(
        family="update_rule",
        model={"rule": rule, "rule_parameters": {"V": V, "second": 0.0}},
        features=[{"initial_overlap": 0.5}, {"initial_overlap": 0.3}],
        phases=[{"stop": 20.0}, {"stop": 60.0, "set": {"model.rule_parameters.second": 1.0}}],
        time={"stop": 60.0, "outputs": 61},
    )
    limit, sgd = meanfield.solve_order_parameters(problem), meanfield.simulate_sgd(problem)
    print(f"V = {V}: error {limit['observables'][-1].item():.3f},", meanfield.compare(limit, sgd).attrs["verdict"])
    plt.plot(limit["time"], limit["observables"], mark[:2], label=f"teachers of overlap {V}")
    plt.errorbar(sgd["time"][::4], sgd["observables"][:, ::4, 0].mean("replica"), fmt=mark)
plt.gca().set(xlabel="time $t = k/N$", ylabel="error on the first task")
plt.legend()
plt.show()
# prints: V = 0.0: error 1.702, AGREES
# prints: V = 0.6: error 1.238, AGREES
# prints: V = 0.9: error 0.369, AGREES
