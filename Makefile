# Each target sets up what it needs in .venv; a second call installs nothing.
#   make run        install the command and its page; account for a real run: Llama-3.1-405B on 16,384 H100
#   make test       lint, types, layers, tests
#   make test-full  the same with every slow differential test
#   make docs       regenerate what the documentation takes from the code
#   make site       the documentation as a site, in site/
#   make coverage   docs/coverage.md: formula against trace for every model type (a quarter of an hour)
#   make lint       style, types, layers only
#   make bench      the benchmarks, beside other counters; CALCULON=checkout for `layout`

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CORE := $(VENV)/.core
TEST := $(VENV)/.test
BENCH := $(VENV)/.bench
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
JOBS ?= 2
# The tests start many processes, and each would compile what it imports again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run test test-full docs site coverage lint bench clean

run: $(CORE)
	@$(BIN)/python examples/llama_3_1_405b.py
	@echo; echo "The command is $(BIN)/suanli: try $(BIN)/suanli --help"
	@echo "The page of every verb: $(BIN)/suanli web --open"

test: lint
	@sh scripts/browser.sh
	@$(BIN)/python -m pytest -n $(JOBS) --dist loadgroup

test-full: lint
	@sh scripts/browser.sh
	@$(BIN)/python -m pytest -n $(JOBS) --dist loadgroup -m ""

lint: $(TEST)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/mypy --num-workers $(JOBS)
	@$(BIN)/lint-imports --no-cache --verbose > $(VENV)/imports.log || { cat $(VENV)/imports.log; exit 1; }
	@echo "style, types and layers hold"

docs: $(CORE)
	@$(BIN)/python scripts/make_docs.py

site: $(TEST)
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet && echo "site/index.html"

coverage: $(TEST)
	@$(BIN)/python scripts/make_coverage.py

bench: $(BENCH)
	@$(BIN)/python benchmarks/count.py --json benchmarks/count.json
	@$(BIN)/python benchmarks/large.py --json benchmarks/large.json
	@$(BIN)/python benchmarks/layout.py $(if $(CALCULON),--calculon $(CALCULON))

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Suanli needs Python 3.11 or newer: make PYTHON=python3.12 …"; exit 1; }
	@echo "making $(VENV) …"
	@$(PYTHON) -m venv $(VENV)

$(CORE): pyproject.toml | $(VENV)/bin/python
	@echo "installing Suanli and its page …"
	@$(PIP) install -e '.[web]'
	@touch $@

$(TEST): $(CORE)
	@echo "installing what the tests need (torch and transformers among them: a few minutes) …"
	@$(PIP) install -e '.[test]'
	@touch $@

$(BENCH): $(TEST)
	@echo "installing the counters the benchmark compares with …"
	@$(PIP) install -e '.[compare]'
	@touch $@

clean:
	@rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
