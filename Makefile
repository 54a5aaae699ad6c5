# Two commands are all the set-up there is: `make demo` and `make test`.

PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
PIP := $(RUN) -m pip --disable-pip-version-check
WORKERS ?= auto

.PHONY: demo visit test check bench docs clean

demo: $(VENV)/.product
	$(RUN) -m federank demo

visit: $(VENV)/.service
	$(RUN) -m federank demo --serve

test: $(VENV)/.tests
	$(RUN) -m pytest -n $(WORKERS)

check: $(VENV)/.habits
	$(RUN) -m ruff format --check src tests benchmarks
	$(RUN) -m ruff check src tests benchmarks
	$(RUN) -m mypy
	$(VENV)/bin/lint-imports --no-cache
	$(RUN) -m pytest -n $(WORKERS) -q -m "not slow"

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

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
