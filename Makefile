# `make demo` and `make test` need no other set-up.

PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
PIP := $(RUN) -m pip --disable-pip-version-check
WORKERS ?= auto

# Tests start hundreds of Python processes: what Python has compiled is kept, whatever the environment says.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo visit test test-all check check-format check-lint check-types check-imports check-page check-javascript
.PHONY: check-prettier check-eslint check-tsc bench docs notebook scorecard release clean

demo: $(VENV)/.product
	$(RUN) -m federank demo

visit: $(VENV)/.service
	$(RUN) -m federank demo --serve --films $(if $(HOST),--host $(HOST)) $(if $(PORT),--port $(PORT))

# Everything that needs no browser, database server or Node, and takes minutes.
test: $(VENV)/.tests
	$(RUN) -m pytest -n $(WORKERS) -m "not slow" --hypothesis-profile=quick

# All tests: after `make test` what it leaves out (browsers, PostgreSQL, Ray, crashes, packaging, real data), and properties
# with five times as many examples. What is not installed is skipped, with the reason.
test-all: test
	$(RUN) -m pytest -n $(WORKERS) -m "slow or hypothesis"

# Format, lint, types, import contracts, the page's JavaScript.
check: $(VENV)/.dev
	@$(MAKE) --no-print-directory -j 2 check-page check-format check-lint check-types check-imports

check-format:
	$(RUN) -m ruff format --check src tests benchmarks

check-lint:
	$(RUN) -m ruff check src tests benchmarks

check-types:
	$(RUN) -m mypy

check-imports:
	$(VENV)/bin/lint-imports --no-cache

# The page's JavaScript keeps the same habits, with tools from npm; the page itself needs none of them.
check-page:
	@if command -v npm >/dev/null && command -v node >/dev/null; then $(MAKE) --no-print-directory check-javascript; \
	else echo "npm is not installed, so the page's JavaScript is not checked here: Node 20.19 or newer and npm are needed."; \
	test -z "$$FEDERANK_TESTS_MUST_NOT_SKIP"; fi

# What was found good is remembered beside the tools, and only what has changed is looked at again.
KEPT := node_modules/.cache

check-javascript: check-prettier check-eslint check-tsc

check-prettier: node_modules/.tools
	node_modules/.bin/prettier --log-level warn --cache --check src/federank/service/web tests/service/web/*.mjs *.js

check-eslint: node_modules/.tools
	node_modules/.bin/eslint --cache --cache-location $(KEPT)/eslint/ src/federank/service/web tests/service/web *.js

check-tsc: node_modules/.tools
	node_modules/.bin/tsc --incremental --tsBuildInfoFile $(KEPT)/tsc.json

bench: $(VENV)/.bench
	$(RUN) benchmarks/training.py $(if $(REPEATS),--repeats $(REPEATS))

# The site in build/site, to be opened from the file system; a warning, such as a link that leads nowhere, is an error.
# Only its search needs a web server, such as python -m http.server -d build/site: browsers allow it on no file.
docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(RUN) -m mkdocs build --strict --quiet
	@echo "The site is build/site/index.html."

# Execute docs/first-steps.ipynb again, and keep its answers.
notebook: $(VENV)/.product
	$(RUN) docs/_site/execute.py

# Write the tables and figures of README and docs that are made from the reports in docs/results.
scorecard: $(VENV)/.product
	$(RUN) docs/_site/scorecard.py
	$(RUN) docs/_site/figures.py

# A wheel and a source archive in dist/, checked as a package index checks them.
release: $(VENV)/.release
	rm -rf dist
	$(RUN) -m build
	$(RUN) -m twine check --strict dist/*

# One stamp per set of packages: a second call finds the stamp and installs nothing.
$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Python 3.11 or newer is needed, this is %d.%d; name another with PYTHON=..." % sys.version_info[:2])'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.product: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) install --quiet -c constraints.txt -e .
	touch $@

$(VENV)/.service: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) install --quiet -c constraints.txt -e '.[service]'
	touch $@ $(VENV)/.product

$(VENV)/.tests: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) install --quiet -c constraints.txt -e '.[test,vae]'
	touch $@ $(VENV)/.service $(VENV)/.product

$(VENV)/.dev: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) install --quiet -c constraints.txt -e '.[dev,vae]'
	touch $@ $(VENV)/.tests $(VENV)/.service $(VENV)/.product

$(VENV)/.docs: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) install --quiet -c constraints.txt -e '.[docs]'
	touch $@

$(VENV)/.release: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) install --quiet -c constraints.txt -e '.[release]'
	touch $@

$(VENV)/.bench: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) install --quiet -c constraints.txt -e '.[bench]'
	touch $@

# No lock file: it would record the address of a package index. package.json pins every version by name instead.
node_modules/.tools: package.json
	npm install --no-package-lock --no-audit --no-fund --silent || { \
	echo "npm could not fetch the tools that package.json names; the page's JavaScript was not checked. Is there a network?"; exit 1; }
	touch $@

clean:
	rm -rf $(VENV) build dist node_modules .mypy_cache .ruff_cache .pytest_cache .hypothesis
