# From nothing: `make test` makes the virtual environment, installs, builds and tests.
# Stamps under .venv keep a second run from doing any of that again.

VENV    := .venv
RUN     := $(VENV)/bin/python
MINUTES ?= 30

# The first interpreter that is new enough; PYTHON=/path/to/python overrides.
PYTHON ?= $(shell for each in python3 python3.14 python3.13 python3.12 python3.11; do \
	  $$each -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	  && { echo $$each; break; }; done)

NATIVE_SOURCES := $(wildcard pyclient/_native/*.pyx pyclient/_native/*.px[di] pyclient/_native/*.h)

BENCHMARKS := $(filter-out __init__ harness client_races parts,$(basename $(notdir $(wildcard tests/benchmarks/*.py))))

# Kinds of tests that `make test` leaves to `make test-all`; soak tests run by `make soak-*` alone.
KINDS  := interop spark simulation fuzz install browser
MARKED := $(subst $(eval ) , or ,$(KINDS))

.PHONY: help setup demo test test-marked test-all lint format coverage dist bench docs clean
.DEFAULT_GOAL := help

help:
	@echo 'make demo          broker, producer, consumers and Spark in one story (sets everything up first)'
	@echo 'make test          the default tests (sets everything up first)'
	@echo 'make test-all      the marked ones too: $(MARKED)'
	@echo 'make test-KIND     those of one kind, as in: make test-interop'
	@echo 'make coverage      the default tests, with a report of the lines that they run'
	@echo 'make lint          ruff, ruff format, mypy --strict'
	@echo 'make format        apply what ruff can mend'
	@echo 'make dist          a source distribution and a wheel for this Python, in dist/'
	@echo 'make bench         ratios to other clients, as tables, and plots'
	@echo 'make soak-KIND     a long run of one kind, as in: make soak-fuzz MINUTES=30'
	@echo 'make docs          generate docs/configuration.md and the picture in docs/architecture.md'
	@echo 'make clean         remove the virtual environment and everything built'

setup: $(VENV)/.native

$(VENV)/.created:
	@test -n "$(PYTHON)" || { echo 'Python 3.11 or later is needed.' \
	  'Get it with: apt install python3 (Debian 12+), brew install python, or pyenv install 3.12;' \
	  'then run make again, or name it: make PYTHON=/path/to/python' >&2; exit 1; }
	$(PYTHON) -m venv $(VENV) || { echo 'The venv module is missing.' \
	  'Get it with: apt install python3-venv' >&2; exit 1; }
	@touch $@

$(VENV)/.installed: $(VENV)/.created pyproject.toml setup.py
	$(RUN) -m pip install --quiet --editable '.[dev]'
	@touch $@

# The install has built the native modules already; this builds again what changed since.
$(VENV)/.native: $(VENV)/.installed $(NATIVE_SOURCES)
	$(RUN) setup.py --quiet build_ext --inplace
	@touch $@

demo: setup
	@$(RUN) docs/examples/demo.py

test: setup
	$(RUN) -m pytest -m 'not ($(MARKED) or soak)'

# Each kind apart from the others, so that each can have its own bound in CI. A test with marks of
# two kinds runs with the first of them.
test-marked: $(KINDS:%=test-%)

test-interop: EARLIER :=
test-spark: EARLIER := interop
test-simulation: EARLIER := interop or spark
test-fuzz: EARLIER := interop or spark or simulation
test-install: EARLIER := interop or spark or simulation or fuzz
test-browser: EARLIER := interop or spark or simulation or fuzz or install

test-interop test-spark: java

test-%: setup
	$(RUN) -m pytest -m '$* and not ($(if $(EARLIER),$(EARLIER) or )soak)'

java:
	@java -version >/dev/null 2>&1 || echo 'No Java: tests with Apache Kafka and Spark cannot run.' \
	  'Get it with: apt install openjdk-17-jre-headless, or brew install openjdk@17' >&2

test-all: test test-marked

coverage: setup
	$(RUN) -m pytest -m 'not ($(MARKED) or soak)' --cov=pyclient --cov=broker_stub \
	  --cov=spark_connector --cov-report=term --cov-report=html:build/coverage

lint: setup
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy

format: setup
	$(RUN) -m ruff check --fix .
	$(RUN) -m ruff format .

# The wheel is built from the source distribution, so both are whole; without a compiler it fails
# rather than making the pure one. auditwheel gives it the oldest manylinux tag that it runs on.
dist: setup
	rm -rf build dist
	PYCLIENT_BUILD=native $(RUN) -m build --no-isolation --outdir dist
	@if [ "$$(uname)" = Linux ]; then \
	  PATH="$$PWD/$(VENV)/bin:$$PATH" $(RUN) -m auditwheel repair --wheel-dir dist dist/*-linux_*.whl \
	  && rm dist/*-linux_*.whl; fi
	@ls -l dist

# Each benchmark prints its table and fails where a bar is missed; all of them run.
bench: setup
	@missed=; for each in $(BENCHMARKS); do \
	  $(RUN) -m tests.benchmarks.$$each || missed="$$missed $$each"; done; \
	test -z "$$missed" || { echo "Below a bar:$$missed" >&2; exit 1; }

# The long runs, one target a kind: tests marked soak whose name has the kind in it. They share
# MINUTES and stop by themselves.
soak-memory: MINUTES = 20
soak-%: setup
	MINUTES=$(MINUTES) $(RUN) -m pytest -s --timeout=0 -m soak -k '$*'

docs: setup
	$(RUN) -m pyclient.config.reference > docs/configuration.md
	$(RUN) -m pyclient.config.option_types > build/options.py && mv build/options.py pyclient/config/options.py
	$(RUN) -m tests.import_graph

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .hypothesis
	rm -f pyclient/_native/*.so pyclient/_native/*.c
	find pyclient broker_stub spark_connector tests -name __pycache__ -exec rm -rf {} +
