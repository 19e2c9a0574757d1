"""A training loop of your own against its limit.

A loop in plain NumPy shows its weights to a recorder. The record is a result, which is held against the limit.
"""

import matplotlib.pyplot as plt
import numpy as np

import meanfield

problem = meanfield.parse_problem("""
model = { activation = "linear", learning_rate = 0.3, batch_size = 2 }
features = [{ hidden = { law = "gaussian", second_moment = 1.6 }, initial_overlap = 0.3 }]
time = { stop = 4.0, outputs = 9 }
""")
N, rng = 500, np.random.default_rng(0)
U, g = np.linalg.qr(rng.standard_normal((8, N, 2)))[0].transpose(2, 0, 1) * N**0.5  # two orthogonal vectors for a run
record = meanfield.Recorder(problem, features=U[..., None])
for u, w in zip(U, 0.3 * U + (1 - 0.3**2) ** 0.5 * g):
    for k in range(4 * N + 1):
        record(k, w)
        x = rng.standard_normal((2, N))
        x += (1.6**0.5 - 1) * np.outer(x @ u, u) / N  # a variance of 1.6 along u
        w += 0.3 * (x @ w) @ x / N
        w *= N**0.5 / np.linalg.norm(w)
limit, own = meanfield.solve_order_parameters(problem), record.result()
print("verdict:", meanfield.compare(limit, own).attrs["verdict"])
plt.plot(limit["time"], limit["q"], "C0", own["time"], own["q"][..., 0].T, "C1.")
plt.gca().set(xlabel="time $t = k/N$", ylabel="overlap $q$: limit, and eight runs")
plt.show()
# prints: verdict: AGREES
