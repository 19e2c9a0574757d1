"""A prior of your own: walls.

Any pull on single weights has a limit. Here nothing happens below 2, and a spring pulls larger weights back, which a
sparse feature needs: it is learnt as far as the walls let it.
"""

import matplotlib.pyplot as plt

import meanfield


def walls(w):
    return 0.0 if abs(w) < 2.0 else w - 2.0 if w > 0 else w + 2.0


hidden = {"law": "three_point", "second_moment": 1.1, "fourth_moment": 6.05}
problem = meanfield.Problem(
    model={"activation": "quadratic", "learning_rate": 0.05, "batch_size": 10},
    prior={"name": meanfield.Prior(walls, kinks=(-2.0, 2.0)), "strength": 20.0},
    features=[{"hidden": hidden, "coordinate": {"law": "three_point", "fourth_moment": 10.0}, "initial_overlap": 0.5}],
    time={"stop": 10.0, "outputs": 11},
)
for strength, mark in ((0.0, "C1--"), (20.0, "C0-")):
    density = meanfield.solve_density(meanfield.with_value(problem, "prior.strength", strength))
    print(f"strength {strength:g}: q(10) = {density['q'][-1].item():.4f}")
    plt.semilogy(density["w"], density["P_w"][-1], mark, label=f"strength {strength:g}")
plt.gca().set(xlabel="weight $w$", ylabel="density at $t = 10$", xlim=(-5, 5), ylim=(1e-4, 1))
plt.legend()
plt.show()
# prints: strength 0: q(10) = 0.9298
# prints: strength 20: q(10) = 0.7981
