"""A sparse principal component, with l1 and without.

One coordinate in twenty of the component is not 0. An l1 prior raises the overlap far above that of plain Oja (dotted,
in closed form), because it leaves little noise on the other coordinates.
"""

import matplotlib.pyplot as plt

import meanfield

problem = meanfield.parse_problem("""
family = "update_rule"
data = { signal = "spiked" }
model = { rule = "oja", rule_parameters = { rate = 0.5 }, constraint = "sphere" }
prior = { name = "l1", strength = 0.1 }
time = { stop = 60.0, outputs = 2 }
density = { tolerance = 1e-4 }
[[features]]
hidden = { law = "gaussian", second_moment = 0.5 }
coordinate = { law = "three_point", fourth_moment = 20.0 }
initial_overlap = 0.3
""")
for strength in (0.05, 0.1, 0.2, 0.3, 0.4, 0.6):
    density = meanfield.solve_density(meanfield.with_value(problem, "prior.strength", strength))
    print(f"strength {strength}: q = {density['R'][-1].item():.3f}")
    plt.plot(strength, density["R"][-1].item(), "C0o")
plt.axhline(0.4**0.5, color="0.4", linestyle=":", label="plain Oja")
plt.gca().set(xlabel="strength of the prior", ylabel="overlap $q$ at $t = 60$")
plt.legend()
plt.show()
# prints: strength 0.05: q = 0.677
# prints: strength 0.1: q = 0.717
# prints: strength 0.2: q = 0.780
# prints: strength 0.3: q = 0.824
# prints: strength 0.4: q = 0.855
# prints: strength 0.6: q = 0.884
