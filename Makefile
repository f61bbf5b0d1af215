# `make demo` and `make test` are all a new user needs; `make help` lists the rest.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.DEFAULT_GOAL := help
.PHONY: help demo browser test lint types format golden bench clean

help: ## list the verbs
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-8s %s\n", $$1, $$2}'

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "ltds needs Python 3.11 or newer; this is $$($(PYTHON) --version). Name another: make PYTHON=python3.12 ..."; exit 2; }
	$(PYTHON) -m venv $(VENV)

# Installed once; again when what is asked for changes.
$(VENV)/.user: $(BIN)/python pyproject.toml constraints.txt
	@echo "Installing ltds into $(VENV) (torch is large: a minute or two the first time)"
	$(PIP) --editable .
	@touch $@

$(VENV)/.test: $(VENV)/.user
	$(PIP) --editable '.[test]'
	@command -v chromium chromium-browser google-chrome >/dev/null || $(MAKE) --no-print-directory browser
	@touch $@

# A real browser for the tests of the report page. Where it cannot be had they skip, and say so.
browser:
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  echo "Installing Debian's chromium for the tests of the report page"; \
	  { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; } >/dev/null 2>&1 || \
	  echo "chromium could not be installed: the tests of the report page will be skipped"; \
	else echo "No browser found: the tests of the report page will be skipped. Install chromium to run them."; fi

$(VENV)/.dev: $(VENV)/.test
	$(PIP) --editable '.[dev]'
	@touch $@

demo: $(VENV)/.user ## set up, then train and compare two methods on the embedded dataset (a few minutes)
	$(BIN)/ltds demo

# One torch thread a process: the tests run two processes at once, and results do not depend on the machine's cores.
test: $(VENV)/.test ## set up, then run all tests
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto

lint: $(VENV)/.dev ## style and mistakes that a machine finds
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(VENV)/.dev ## mypy --strict on src
	$(BIN)/mypy

format: $(VENV)/.dev ## mend style
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

golden: $(VENV)/.test ## rewrite the golden journals; say why under "Numerics" in the changelog
	OMP_NUM_THREADS=1 LTDS_REWRITE_GOLDEN=1 $(BIN)/python -m pytest tests/golden

bench: $(VENV)/.user ## does the embedded dataset measure something? (oracle against Agg; about 20 minutes)
	$(BIN)/python benchmarks/bestiary.py

clean: ## remove what can be made again; runs and data stay
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist
