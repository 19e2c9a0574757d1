"""Faint and bright samples: where the theory of Gaussian data fails.

Half of the samples are fainter than the others. The theory that takes latents for standard Gaussians misses what SGD
does; the equations of the mixture do not.

J. Bae and H. Jeong, From empirical observations to universality, arXiv:2405.00642 (2024).
"""

import matplotlib.pyplot as plt

import meanfield

problem = meanfield.parse_problem("""
family = "hidden_manifold"
inputs = { nonlinearity = "sign", aspect_ratio = 0.5, components = [
    { weight = 0.5, scale = 0.4 }, { weight = 0.5, scale = 1.3565 }] }
teacher = { output_weights = [1.0], overlap = [[1.0]] }
student = { output_weights = [1.0], on_teacher = [[0.3]], elsewhere = [[0.5]] }
training = { learning_rate = 0.2, output_learning_rate = 0.0 }
time = { stop = 10.0, outputs = 11 }
particles = { dimension = 400 }
""")
found, sgd = meanfield.solve(problem, "assumptions"), meanfield.simulate_sgd(problem)
print(f"R(10) = {found['R'][-1].item():.3f}, conventional {found['R_conventional'][-1].item():.3f}")
plt.plot(found["time"], found["R"].squeeze(), "C0", label="mixture")
plt.plot(found["time"], found["R_conventional"].squeeze(), "C1--", label="conventional theory")
plt.errorbar(sgd["time"], sgd["R"].mean("replica").squeeze(), sgd["R"].std("replica").squeeze() / 2**0.5, fmt="C0o")
plt.gca().set(xlabel="time $t = k/N$", ylabel="overlap with the teacher $R$")
plt.legend()
plt.show()
# prints: R(10) = 0.378, conventional 0.503
