# Every target sets up what it needs by itself: an environment in .venv with pinned versions.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUNS := data/runs
FIGURES := validation/contrastive/figures
STUDIES := $(shell grep -l '^STUDY = ' $(FIGURES)/*.py)
SHARED := validation/study.py $(filter-out $(STUDIES) %/page.py,$(wildcard $(FIGURES)/*.py))
LIBRARY := $(shell find meanfield -name "*.py")
BENCHMARKS := machine density channel_density particles channels hidden_manifold alpha_contrastive latent_tree closures \
  dynamics fixed_points stationary schedules recorder update_rules sweep first_minutes
NUMBERS := $(patsubst $(FIGURES)/%.py,$(RUNS)/figures/%.nc,$(STUDIES))

# Figures on hidden manifolds: most show the same runs of SGD, which take half an hour and do not depend on the library.
MANIFOLD := validation/hidden_manifold/figures
MANIFOLD_STUDIES := $(shell grep -l '^STUDY = ' $(MANIFOLD)/*.py)
MANIFOLD_SHARED := validation/study.py $(filter-out $(MANIFOLD_STUDIES) %/page.py,$(wildcard $(MANIFOLD)/*.py))
MANIFOLD_NUMBERS := $(patsubst $(MANIFOLD)/%.py,$(RUNS)/hidden_manifold/figures/%.nc,$(MANIFOLD_STUDIES))
MANIFOLD_RUNS := $(RUNS)/hidden_manifold/mixtures.nc

CHANNELS := validation/contrastive/channels
CHANNELS_STUDIES := $(shell grep -l '^STUDY = ' $(CHANNELS)/*.py)
CHANNELS_SHARED := validation/study.py $(CHANNELS)/problems.py
CHANNELS_NUMBERS := $(patsubst $(CHANNELS)/%.py,$(RUNS)/several_channels/%.nc,$(CHANNELS_STUDIES))

IMPORTANCE := validation/alpha_contrastive/figures
IMPORTANCE_STUDIES := $(shell grep -l '^STUDY = ' $(IMPORTANCE)/*.py)
IMPORTANCE_SHARED := validation/study.py validation/flows.py $(addprefix $(IMPORTANCE)/,one_layer.py scores.py)
IMPORTANCE_NUMBERS := $(patsubst $(IMPORTANCE)/%.py,$(RUNS)/alpha_contrastive/figures/%.nc,$(IMPORTANCE_STUDIES))
IMPORTANCE_RUNS := $(foreach seed,1 2 3,$(foreach group,infonce quadratic zeta_10 zeta decay,$(RUNS)/alpha_contrastive/runs/$(group)_$(seed).nc))

DIGITS := $(RUNS)/latent_tree/digits.nc
CONVOLUTIONS := $(RUNS)/latent_tree/convolutions.nc

# Tables and two figures on latent trees show the same networks, which take longest.
TREE := validation/latent_tree/figures
TREE_STUDIES := $(shell grep -l '^STUDY = ' $(TREE)/*.py)
TREE_RUNS := $(RUNS)/latent_tree/trees.nc $(RUNS)/latent_tree/norms.nc
TREE_SHARED := validation/study.py validation/flows.py $(filter-out $(TREE_STUDIES) %/page.py,$(wildcard $(TREE)/*.py))
TREE_NUMBERS := $(patsubst $(TREE)/%.py,$(RUNS)/latent_tree/figures/%.nc,$(TREE_STUDIES))

RULES := validation/update_rule/papers
RULES_STUDIES := $(shell grep -l '^STUDY = ' $(RULES)/*.py)
RULES_SHARED := validation/study.py $(addprefix $(RULES)/,cases.py erf_networks.py)
RULES_NUMBERS := $(patsubst $(RULES)/%.py,$(RUNS)/update_rule/papers/%.nc,$(RULES_STUDIES))

SPARSE := validation/update_rule/sparse
SPARSE_STUDIES := $(shell grep -l '^STUDY = ' $(SPARSE)/*.py)
SPARSE_SHARED := validation/study.py validation/update_rule/random_rules.py $(addprefix $(SPARSE)/,cases.py batch_lasso.py)
SPARSE_NUMBERS := $(patsubst $(SPARSE)/%.py,$(RUNS)/update_rule/sparse/%.nc,$(SPARSE_STUDIES))

# Modules are compiled when they are first used, and once for the many processes to come, also where that is switched off:
# to compile all that pip installs would take two thirds of its time.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test notebooks test-slow test-torch test-dist test-lowest test-release bench accuracy cost finite-size verdicts in-time figures predictions regimes faults fuzz docs reference examples clean

demo: $(VENV)/installed
	$(BIN)/python -m validation.contrastive.demo

# `make test FAMILY=contrastive` runs the part of one family: its own tests, its contract, and its studies.
PART := $(if $(FAMILY),tests/families/$(FAMILY) tests/families/test_contract.py $(wildcard tests/validation/$(FAMILY)) -k $(FAMILY))
# Linear algebra on one thread: two processes of tests have two cores, and threads that wait for one another spin.
# Types are checked beside the tests, which leave a core idle while they are collected and when the last one runs.
# mypy keeps what it makes until it ends: its searches for garbage, which it switches on by itself, take a quarter of its time.
MYPY := $(BIN)/python -c 'import gc; gc.disable(); gc.enable = gc.disable; from mypy.__main__ import console_entry as check; check()'
test: export OMP_NUM_THREADS := 1
test: $(VENV)/installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(MYPY) & types=$$!; $(BIN)/pytest -n 2 --dist worksteal $(PART); tests=$$?; wait $$types && exit $$tests

test-slow: $(VENV)/installed-test
	$(BIN)/pytest -n 2 --dist worksteal -m slow

# What is trained by PyTorch, and what it is held against, with the one thread that replicas have.
test-torch: export OMP_NUM_THREADS := 1
test-torch: $(VENV)/installed-torch
	$(BIN)/pytest -m torch tests/ensembles tests/networks tests/families/latent_tree tests/validation/latent_tree

# Linear algebra on one thread: what is timed says how many cores it uses.
bench: export OMP_NUM_THREADS := 1
bench: $(VENV)/installed-bench
	for name in $(BENCHMARKS); do $(BIN)/python -m validation benchmarks.$$name || exit 1; done
	$(BIN)/python -m validation.benchmarks.page

# Processor time of one core: threads of linear algebra that wait for one another would count, too.
accuracy cost: export OMP_NUM_THREADS := 1
accuracy: $(VENV)/installed
	$(BIN)/python -m validation contrastive.accuracy

cost: $(VENV)/installed
	$(BIN)/python -m validation.contrastive.cost

finite-size: $(VENV)/installed
	$(BIN)/python -m validation contrastive.finite_size

verdicts: export OMP_NUM_THREADS := 1
verdicts: $(VENV)/installed
	$(BIN)/python -m validation.verdicts

in-time: export OMP_NUM_THREADS := 1
in-time: $(VENV)/installed
	$(BIN)/python -m validation.in_time.all_families --page docs/in_time.md

faults: $(VENV)/installed
	$(BIN)/python -m validation.faults.run

# Two studies at a time, and only those whose script, or what scripts share, or library changed since they were run.
# Linear algebra on one thread, as two studies have two cores.
figures: export OMP_NUM_THREADS := 1
figures: $(VENV)/installed
	@$(MAKE) --no-print-directory -j 2 $(NUMBERS) $(MANIFOLD_NUMBERS) $(CHANNELS_NUMBERS) $(IMPORTANCE_NUMBERS) $(TREE_NUMBERS) $(DIGITS) $(CONVOLUTIONS) $(RULES_NUMBERS) $(SPARSE_NUMBERS)
	$(BIN)/python -m validation.contrastive.figures.page
	$(BIN)/python -m validation.hidden_manifold.figures.page
	$(BIN)/python -m validation.contrastive.channels.page
	$(BIN)/python -m validation.alpha_contrastive.figures.page
	$(BIN)/python -m validation.latent_tree.digits_page
	$(BIN)/python -m validation.latent_tree.figures.page
	$(BIN)/python -m validation.update_rule.papers.page
	$(BIN)/python -m validation.update_rule.sparse.page

$(RUNS)/figures/%.nc: $(FIGURES)/%.py $(LIBRARY) $(SHARED)
	$(BIN)/python -m validation contrastive.figures.$*

$(RUNS)/several_channels/%.nc: $(CHANNELS)/%.py $(LIBRARY) $(CHANNELS_SHARED)
	$(BIN)/python -m validation contrastive.channels.$*

$(DIGITS): $(addprefix validation/latent_tree/digits,.py _theory.py .toml) $(LIBRARY) validation/study.py | $(VENV)/installed-test
	$(BIN)/python -m validation latent_tree.digits

$(CONVOLUTIONS): $(addprefix validation/latent_tree/convolutions,.py .toml) $(LIBRARY) validation/study.py | $(VENV)/installed-torch
	$(BIN)/python -m validation latent_tree.convolutions

$(RUNS)/hidden_manifold/figures/%.nc: $(MANIFOLD)/%.py $(LIBRARY) $(MANIFOLD_SHARED) $(MANIFOLD_RUNS)
	$(BIN)/python -m validation hidden_manifold.figures.$*

$(MANIFOLD_RUNS): $(addprefix $(MANIFOLD)/,runs.py laws.py mixtures.py sgd.py)
	$(BIN)/python -m validation.hidden_manifold.figures.runs

$(RUNS)/alpha_contrastive/figures/%.nc: $(IMPORTANCE)/%.py $(LIBRARY) $(IMPORTANCE_SHARED) $(IMPORTANCE_RUNS)
	$(BIN)/python -m validation alpha_contrastive.figures.$*

# Files that no rule names are taken for intermediate ones, and removed.
.SECONDARY: $(IMPORTANCE_RUNS)
$(RUNS)/alpha_contrastive/runs/%.nc: $(addprefix $(IMPORTANCE)/,runs.py two_layers.py token_sgd.py)
	$(BIN)/python -m validation.alpha_contrastive.figures.runs $*

$(RUNS)/latent_tree/figures/%.nc: $(TREE)/%.py $(LIBRARY) $(TREE_SHARED) $(TREE_RUNS)
	$(BIN)/python -m validation latent_tree.figures.$*

$(RUNS)/latent_tree/trees.nc: $(addprefix $(TREE)/,runs.py trees.py seeds.py sgd.py single_precision.py)
	$(BIN)/python -m validation.latent_tree.figures.runs

$(RUNS)/latent_tree/norms.nc: $(addprefix $(TREE)/,norms.py trees.py seeds.py sgd.py)
	$(BIN)/python -m validation.latent_tree.figures.norms

$(RUNS)/update_rule/papers/%.nc: $(RULES)/%.py $(LIBRARY) $(RULES_SHARED)
	$(BIN)/python -m validation update_rule.papers.$*

$(RUNS)/update_rule/sparse/%.nc: $(SPARSE)/%.py $(LIBRARY) $(SPARSE_SHARED)
	$(BIN)/python -m validation update_rule.sparse.$*

predictions: export OMP_NUM_THREADS := 1
predictions: $(VENV)/installed-test
	$(BIN)/python -m validation.predictions.run --page docs/predictions.md

# Linear algebra on one thread: each run has one core. `make regimes REGIMES="--problems 40 --seed 5000"` chooses others.
REGIMES := --page docs/regimes.md
regimes: export OMP_NUM_THREADS := 1
regimes: $(VENV)/installed
	$(BIN)/python -m validation.contrastive.regimes $(REGIMES)

fuzz: $(VENV)/installed-test
	$(BIN)/python -m validation.fuzzing.run --page docs/fuzzing.md

# Warnings are errors, a name that leads nowhere is a warning. All pages are written anew, and notebooks run if they changed.
docs: $(VENV)/installed-docs
	rm -rf docs/api/generated
	$(BIN)/sphinx-build -W --keep-going -n -q -E -a docs docs/_build/html
	@echo "wrote docs/_build/html/index.html"

# Tables of keys, which are read without a build, too.
reference: $(VENV)/installed
	$(BIN)/python docs/_extensions/generated.py docs/reference/problem-file.md

# Examples of the gallery, with what they print and their figures; `make examples EXAMPLES=warm_up` runs one.
examples: export OMP_NUM_THREADS := 1
examples: $(VENV)/installed-docs
	$(BIN)/python docs/_extensions/examples.py $(EXAMPLES)

notebooks: $(VENV)/installed-docs
	$(BIN)/python docs/notebooks/make.py

# uv installs in a fifth of the time of pip, which takes its place where it does not run.
INSTALL = $(BIN)/uv pip install --quiet --python $(BIN)/python --constraint constraints.txt --editable $(1) \
  || $(BIN)/pip install --quiet --no-compile --constraint constraints.txt --editable $(1)

$(VENV)/installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "meanfield needs Python 3.11 or newer: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	-$(BIN)/pip install --quiet --no-compile --constraint constraints.txt uv
	$(call INSTALL,.)
	touch $@

$(VENV)/installed-test: $(VENV)/installed
	$(call INSTALL,'.[test]')
	touch $@

$(VENV)/installed-torch: $(VENV)/installed-test
	$(BIN)/pip install --quiet --no-compile --constraint constraints.txt --editable '.[torch]'
	touch $@

$(VENV)/installed-bench: $(VENV)/installed
	$(BIN)/pip install --quiet --no-compile --constraint constraints.txt --editable '.[bench]'
	touch $@

$(VENV)/installed-docs: $(VENV)/installed
	$(call INSTALL,'.[docs]')
	touch $@

# Wheel and sdist, built and installed elsewhere: the tests see nothing of this checkout.
test-dist:
	.ci/test_dist $(PYTHON) pinned

test-lowest:
	.ci/test_dist $(PYTHON) lowest

# What has to pass before a release: everything on each Python, with the lowest versions, and with the newest numba.
PYTHONS := python3.11 python3.12 python3.13
test-release:
	for python in $(PYTHONS); do .ci/test_dist $$python pinned || exit 1; done
	.ci/test_dist $(PYTHON) lowest
	.ci/test_dist $(PYTHON) newest

clean:
	rm -rf $(VENV) $(RUNS) dist docs/_build docs/api/generated .pytest_cache .mypy_cache .ruff_cache .hypothesis
	rm -rf meanfield/__pycache__/meanfield-*
