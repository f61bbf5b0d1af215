# A new user needs only `make demo` and `make test`; `make help` lists the rest.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.DEFAULT_GOAL := help
.PHONY: help demo browser test oldest soak lint types format golden mutants bench tables pictures docs docs-data release-check fresh-machine clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-13s %s\n", $$1, $$2}'

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11, 4))' || { echo "ltds needs Python 3.11.4 or newer; this is $$($(PYTHON) --version). Choose another: make PYTHON=python3.12 ..."; exit 2; }
	$(PYTHON) -m venv $(VENV)

# Installed once, and again when pyproject.toml or constraints.txt changes.
$(VENV)/.user: $(BIN)/python pyproject.toml constraints.txt
	@echo "Installing ltds into $(VENV) (torch is large: a minute or two the first time)"
	$(PIP) --editable .
	@touch $@

$(VENV)/.test: $(VENV)/.user
	$(PIP) --editable '.[test]'
	@command -v chromium chromium-browser google-chrome >/dev/null || $(MAKE) --no-print-directory browser
	@touch $@

# A real browser for the tests of the report page. Without one these tests are skipped and say so.
browser:
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  echo "Installing Debian's chromium for the tests of the report page"; \
	  { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; } >/dev/null 2>&1 || \
	  echo "chromium could not be installed: the tests of the report page will be skipped"; \
	else echo "No browser found: the tests of the report page will be skipped. Install chromium to run them."; fi

$(VENV)/.dev: $(VENV)/.test
	$(PIP) --editable '.[dev]'
	@touch $@

demo: $(VENV)/.user ## set up, then train and compare two methods on the built-in dataset (a few minutes)
	$(BIN)/ltds demo

# One torch thread per process: the tests run in several processes, and results must not depend on the number of cores.
# Bytecode is kept even where the environment says otherwise: the tests start ltds a hundred times. One process more than
# cores, because some tests wait for others' processes and timeouts.
TEST_PROCESSES = $$(( $$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN) + 1 ))
test: $(VENV)/.test ## set up, then run all tests
	PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(TEST_PROCESSES) --dist worksteal

# With a torch of then, which on Linux brings CUDA: 8 GB. Only what users install is old, not the test tools.
OLDEST := .oldest
oldest: ## run all tests with the oldest packages that pyproject.toml allows (8 GB)
	$(PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check uv
	$(OLDEST)/bin/uv pip compile --quiet --resolution lowest-direct --python $(OLDEST)/bin/python --extra efficientnet \
	  --extra onnx --extra ray --extra sklearn --extra tensorboard --extra text --output-file $(OLDEST)/oldest.txt pyproject.toml
	$(OLDEST)/bin/uv pip install --quiet --python $(OLDEST)/bin/python --requirement $(OLDEST)/oldest.txt \
	  --editable . hypothesis playwright pytest pytest-xdist
	OMP_NUM_THREADS=1 $(OLDEST)/bin/python -m pytest -n $(TEST_PROCESSES) --dist worksteal

soak: $(VENV)/.test ## kill, damage and race runs for ten minutes (KILLS=200): a table, and an error if anything differs
	OMP_NUM_THREADS=1 $(BIN)/python tests/soak/run.py --kills $(or $(KILLS),200) $(if $(STATE),--state $(STATE))

lint: $(VENV)/.dev ## check style and common mistakes
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(VENV)/.dev ## check types: mypy --strict on src
	$(BIN)/mypy

format: $(VENV)/.dev ## fix style
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

golden: $(VENV)/.test ## rewrite the golden journals; explain the change under "Numerics" in CHANGELOG.md
	OMP_NUM_THREADS=1 LTDS_REWRITE_GOLDEN=1 $(BIN)/python -m pytest tests/golden

# Results go to results/mutants.json; a second run goes on, and tries survivors again (COUNT=300 SEED=1: another sample).
mutants: $(VENV)/.test ## put small faults into the code, one at a time, and list those that no test notices (hours)
	OMP_NUM_THREADS=1 $(BIN)/python tests/mutants/run.py --count $(or $(COUNT),150) --seed $(or $(SEED),0)

bench: $(VENV)/.user ## check that the built-in dataset is hard: oracle against Agg (about 20 minutes)
	$(BIN)/python benchmarks/bestiary.py

tables: $(VENV)/.user ## write the tables of README.md and docs/ from results/*.json
	$(BIN)/python benchmarks/tables.py

pictures: $(VENV)/.test ## draw the pictures of README.md from real output (RUNS=folder: the page of these runs)
	$(BIN)/python benchmarks/pictures.py $(if $(RUNS),--runs $(RUNS))

$(VENV)/.docs: $(VENV)/.user
	$(PIP) --editable '.[docs]'
	@touch $@

docs: $(VENV)/.docs ## build the documentation as a site in site/ (open site/index.html; works without a network)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --clean --quiet && echo "Open site/index.html"

docs-data: $(VENV)/.docs tables ## write the reference pages (commands, settings, methods, API) and all tables of docs/
	$(BIN)/python docs/tools/reference_pages.py

release-check: $(VENV)/.test ## wheel in an empty environment, sdist with its tests, version and changelog
	PYTHON=$(PYTHON) benchmarks/release_check.sh

fresh-machine: ## what a new user does, on a fresh clone: demo, tests, site, tutorial, every command (an hour or more)
	benchmarks/fresh_machine.sh

clean: ## delete the environment and caches; runs and data stay
	rm -rf $(VENV) $(OLDEST) .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist site
