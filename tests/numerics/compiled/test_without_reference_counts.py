import os
import subprocess
import sys

import pytest

CODE = """
import sys
import meanfield
model = {"activation": "quadratic", "learning_rate": 0.1, "batch_size": 2, "centering": "population"}
features = [{"hidden": {"law": "gaussian"}, "initial_overlap": 0.5}]
particles = {"dimension": 10, "method": sys.argv[1]}
problem = {"model": model, "features": features, "time": {"stop": 1.0}, "particles": particles}
print(meanfield.simulate_sgd(meanfield.Problem.model_validate(problem)).attrs["status"])
"""


@pytest.mark.slow
@pytest.mark.parametrize("method", ["plain", "projected", "chain"])
def test_that_a_machine_without_compiled_code_compiles_all_of_it(tmp_path, method):
    """Functions without reference counts, compiled first here, must not pass that on to functions that make arrays."""
    command = [sys.executable, "-c", CODE, method]
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.stdout.strip() == "complete", done.stderr
