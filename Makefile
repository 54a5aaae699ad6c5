# Two commands are all the set-up there is: `make demo` and `make test`.

PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
PIP := $(RUN) -m pip --disable-pip-version-check
WORKERS ?= auto

# Tests start hundreds of Python processes: what Python has compiled is kept, whatever the environment says.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo visit test check check-page check-javascript bench docs clean

demo: $(VENV)/.product
	$(RUN) -m federank demo

visit: $(VENV)/.service
	$(RUN) -m federank demo --serve --films

test: $(VENV)/.tests
	$(RUN) -m pytest -n $(WORKERS)

check: $(VENV)/.habits
	$(RUN) -m ruff format --check src tests benchmarks
	$(RUN) -m ruff check src tests benchmarks
	$(RUN) -m mypy
	$(VENV)/bin/lint-imports --no-cache
	@$(MAKE) --no-print-directory check-page
	$(RUN) -m pytest -n $(WORKERS) -q -m "not slow"

# The page's JavaScript keeps the same habits, with tools from npm; the page itself needs none of them.
check-page:
	@if command -v npm >/dev/null && command -v node >/dev/null; then $(MAKE) --no-print-directory check-javascript; \
	else echo "npm is not installed, so the page's JavaScript is not checked here: Node 20.19 or newer and npm are needed."; \
	test -z "$$FEDERANK_TESTS_MUST_NOT_SKIP"; fi

check-javascript: node_modules/.tools
	node_modules/.bin/prettier --log-level warn --check src/federank/service/page tests/service/page/*.mjs *.js
	node_modules/.bin/eslint src/federank/service/page tests/service/page *.js
	node_modules/.bin/tsc

bench: $(VENV)/.bench
	$(RUN) benchmarks/training.py

docs: $(VENV)/.tests
	$(RUN) -m pytest -q tests/test_docs.py

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

$(VENV)/.habits: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) install --quiet -c constraints.txt -e '.[dev,vae]'
	touch $@ $(VENV)/.tests $(VENV)/.service $(VENV)/.product

$(VENV)/.bench: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) install --quiet -c constraints.txt -e '.[bench]'
	touch $@

# No lock file: it would record the address of a package index. package.json pins every version by name instead.
node_modules/.tools: package.json
	npm install --no-package-lock --no-audit --no-fund --silent || { \
	echo "npm could not fetch the tools that package.json names; the page's JavaScript was not checked. Is there a network?"; exit 1; }
	touch $@

clean:
	rm -rf $(VENV) node_modules .mypy_cache .ruff_cache .pytest_cache .hypothesis
