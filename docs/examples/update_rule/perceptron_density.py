"""Weights of a perceptron under a sparse prior.

Order parameters under l1 obey no equation of their own; the density of all weights does. Here of the perceptron's
weights where the teacher's are 0 and where they are not, over those of SGD.
"""

import matplotlib.pyplot as plt

import meanfield

problem = meanfield.parse_problem("""
family = "update_rule"
model = { rule = "perceptron", rule_parameters = { rate = 0.7 }, constraint = "sphere" }
prior = { name = "l1", strength = 0.15 }
features = [{ initial_overlap = 0.1, coordinate = { law = "three_point", fourth_moment = 10.0 } }]
time = { stop = 8.0, outputs = 3 }
particles = { dimension = 4000, replicas = 4, snapshots = [8.0] }
""")
density, sgd = meanfield.solve_density(problem), meanfield.simulate_sgd(problem)
print("verdict:", meanfield.compare(density, sgd).attrs["verdict"])

w, u = sgd["weights"].values[:, -1].ravel(), sgd["U"].values.ravel()
for place, (colour, label) in enumerate((("C0", "$u < 0$"), ("C1", "$u = 0$"), ("C2", "$u > 0$"))):
    at = density["u"].values[place]
    plt.hist(w[abs(u - at) < 0.5], bins=60, density=True, color=colour, alpha=0.3)
    plt.plot(density["w"], density["P"].sel(u=at)[-1], colour, label=label)
plt.gca().set(xlabel="weight $w$", ylabel="density at $t = 8$", xlim=(-5, 5))
plt.legend()
plt.show()
# prints: verdict: AGREES
