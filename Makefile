# Every target does its own set-up: it needs Python 3.11+ and make, nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# One more than there are cores: some tests wait for other processes
WORKERS = $(shell $(BIN)/python -c 'import os; print((os.cpu_count() or 1) + 1)')
# Tests start the service a hundred times: it is compiled once, whatever the environment says
export PYTHONDONTWRITEBYTECODE :=
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help run serve test test-full truth check fix bench docs security sbom audit dist requirements clean

help: ## Show what can be made
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: $(VENV)/.runtime ## Start Tocsin with a sample feed and a receiver, and show where to look
	@DEMO_COMMAND="make run" $(BIN)/tocsin demo

serve: $(VENV)/.runtime ## Start Tocsin with ./plugins.toml
	@$(BIN)/tocsin serve

test: $(VENV)/.dev ## Run what CI runs: the checks, and beside them the tests without the marker `full`
	$(call beside_checks,-m "not full")

test-full: $(VENV)/.dev ## Run the checks, and beside them the tests with the marker `full` too
	$(call beside_checks)

truth: $(VENV)/.dev ## Read 20,000 changes in a day of faults from every provider on both databases (an hour of CPU time)
	@TOCSIN_WHOLE_TRUTH=1 $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal tests/truth/test_truth.py -k 20_000

# The checks run beside the tests and print their result as soon as they end; either may fail
define beside_checks
@log=$$(mktemp); \
( $(MAKE) --no-print-directory check > $$log 2>&1; code=$$?; \
  [ $$code = 0 ] && echo " [the checks passed] " || { echo; cat $$log; }; exit $$code ) & checks=$$!; \
$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(1); tests=$$?; \
wait $$checks; checks=$$?; rm -f $$log; \
[ $$checks = 0 ] || echo "make: the checks failed, see above" >&2; \
[ $$tests = 0 ] || echo "make: the tests failed, see above" >&2; \
[ $$tests = 0 ] && [ $$checks = 0 ]
endef

check: $(VENV)/.dev ## Lint, types, layers and the API's description
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/python tests/openapi_rules.py .openapi.json
	@if command -v spectral >/dev/null; then spectral lint --quiet --fail-severity warn .openapi.json; fi

fix: $(VENV)/.dev ## Format, and fix what can be fixed automatically
	@$(BIN)/ruff check --fix . ; $(BIN)/ruff format .

bench: $(VENV)/.dev ## Measure against bare baselines in the same run
	@$(BIN)/python -m bench

docs: $(VENV)/.docs ## Build the documentation as a site with offline search, in docs/_build/html
	@$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet --builder html docs docs/_build/html
	@echo docs/_build/html/index.html

security: $(VENV)/.dev ## Run the security tests, those with the marker `full` too, and print figures by area
	@$(BIN)/python tests/security/figures.py

sbom: $(VENV)/.tools ## Write the bill of materials of the pinned runtime (CycloneDX 1.6) to sbom.cdx.json
	@$(VENV)/tools/bin/cyclonedx-py requirements --pyproject pyproject.toml --output-reproducible --short-PURLs \
	  --output-file sbom.cdx.json requirements/runtime.txt
	@echo sbom.cdx.json

audit: $(VENV)/.tools ## Look for known vulnerabilities of the pinned runtime; ADVISORIES=FOLDER uses a copy of them
	@$(if $(ADVISORIES),$(VENV)/tools/bin/python tests/advisories.py $(ADVISORIES) requirements/runtime.txt,\
	  $(VENV)/tools/bin/pip-audit --requirement requirements/runtime.txt --require-hashes --disable-pip --strict \
	  --progress-spinner off)

dist: $(VENV)/.dev $(VENV)/.tools ## Build a release in dist/: wheel, bill of materials, chart, offline bundle, image, checksums
	@$(BIN)/python deploy/dist.py

requirements: ## Update the pinned dependencies, with hashes
	@uv pip compile pyproject.toml --extra postgres --extra otel --extra uvloop --group build --group dev --universal --generate-hashes \
	  --no-emit-index-url --no-header --no-annotate --upgrade --quiet -o requirements/dev.txt
	@uv pip compile pyproject.toml --extra postgres --extra otel --extra uvloop --group build --universal --generate-hashes \
	  --no-emit-index-url --no-header --no-annotate -c requirements/dev.txt --upgrade --quiet -o requirements/runtime.txt
	@uv pip compile --group pyproject.toml:docs --universal --generate-hashes \
	  --no-emit-index-url --no-header --no-annotate -c requirements/dev.txt --quiet -o requirements/docs.txt
	@uv pip compile --group pyproject.toml:security --universal --generate-hashes \
	  --no-emit-index-url --no-header --no-annotate -c requirements/dev.txt --quiet -o requirements/security.txt
	@echo "after make .venv/.dev, run python -m tests.licenses"

clean: ## Remove the virtual environment and every cache
	@rm -rf $(VENV) dist sbom.cdx.json docs/_build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Tocsin needs Python 3.11 or newer; set PYTHON=...")'
	@echo "Setting up $(VENV) ..."
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.runtime: requirements/runtime.txt pyproject.toml | $(VENV)/bin/python
	@$(PIP) --require-hashes -r requirements/runtime.txt
	@$(PIP) --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.dev: requirements/dev.txt pyproject.toml | $(VENV)/bin/python
	@$(PIP) --require-hashes -r requirements/dev.txt
	@$(PIP) --no-deps --no-build-isolation -e .
	@touch $@ $(VENV)/.runtime

# Apart from what is tested: these tools need libraries of their own
$(VENV)/.tools: requirements/security.txt | $(VENV)/bin/python
	@$(PYTHON) -m venv $(VENV)/tools
	@$(VENV)/tools/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/security.txt
	@touch $@

$(VENV)/.docs: requirements/docs.txt | $(VENV)/bin/python
	@$(PIP) --require-hashes -r requirements/docs.txt
	@touch $@
