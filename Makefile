# Everything runs in a virtual environment of its own; only Python >= 3.11 and make are needed.
PYTHON ?= python3
BIN := .venv/bin
SOURCES := pyproject.toml $(wildcard packages/*/pyproject.toml)

# Extras of the library that each kind of work needs; its tools are a group of pyproject.toml.
WITH_test := accounting,attacks,design,examples
WITH_check := $(WITH_test),fast
WITH_bench := $(WITH_check)
WITH_fuzz := $(WITH_test)
WITH_docs := $(WITH_test)
WITH_spark := $(WITH_test),spark

# Programs that tests start would compile everything anew.
unexport PYTHONDONTWRITEBYTECODE

# One worker for each core.
SIDE_BY_SIDE := -n auto --dist worksteal

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow test-all test-spark typescript mutants fuzz check docs bench clean

help: ## show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

demo: .venv/.examples ## assess a real survey and print where the report is
	$(BIN)/hushuffle assess examples/affairs.toml --out hushuffle-out/affairs --overwrite

test: .venv/.test ## run the tests (ROOM=curves: only those of tests/curves)
	@test -d "tests/$(ROOM)" || { echo "make: tests/$(ROOM) is not a folder. Set ROOM to a folder in tests/, for example ROOM=curves, or leave it out." >&2; exit 2; }
	$(BIN)/python -m pytest $(SIDE_BY_SIDE) -m "not slow and not spark" --durations=20 $(if $(ROOM),"tests/$(ROOM)")

test-slow: .venv/.test ## run the tests that take long
	$(BIN)/python -m pytest -m "slow and not spark"

test-all: test test-slow ## run all tests but those of Spark

test-spark: .venv/.spark ## run the tests of the Spark engine (Java is needed)
	$(BIN)/python -m pytest -m spark

typescript: .venv/.test ## check the client in TypeScript, in headless Chromium (Node is needed)
	cd clients/typescript && npm install --no-fund --no-audit && npm run check && npm run build
	$(BIN)/python -m pytest tests/network/test_typescript.py

mutants: .venv/.test ## break the product on purpose, in many places, and see that a test notices each time
	$(BIN)/python tests/mutants/run.py

fuzz: .venv/.test ## read broken files of every kind for FUZZ_SECONDS (600), each reader in turn
	$(BIN)/python tests/fuzz/run.py

check: .venv/.check ## style, types, layers, tests with coverage
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest $(SIDE_BY_SIDE) --cov --cov-report= -m "not slow and not spark"
	$(BIN)/coverage report --include='*/hushuffle/numerics/*,*/hushuffle/model/*,*/hushuffle/mechanisms/*,*/hushuffle/questions/*' --fail-under=100
	$(BIN)/coverage report --fail-under=95

docs: .venv/.docs ## build the documentation into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

bench: .venv/.bench ## measure speed and tightness
	$(BIN)/python benchmarks/run.py
	$(BIN)/python benchmarks/tight.py
	$(BIN)/python benchmarks/blanket.py
	$(BIN)/python benchmarks/accountant.py
	$(BIN)/python benchmarks/qif_package.py
	$(BIN)/python benchmarks/local_hashing.py
	$(BIN)/python benchmarks/audit_libraries.py
	$(BIN)/python benchmarks/heavy_hitters.py
	$(BIN)/python benchmarks/messages.py
	$(BIN)/python benchmarks/sums.py
	$(BIN)/python benchmarks/linkage.py
	$(BIN)/python benchmarks/order.py
	$(BIN)/python benchmarks/mallows.py
	$(BIN)/python benchmarks/bloom.py
	$(BIN)/python benchmarks/collect.py
	$(BIN)/python benchmarks/plans.py

clean: ## remove everything that was made
	rm -rf .venv site hushuffle-out dist .coverage .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

.venv/bin/python:
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip

.venv/.examples: .venv/bin/python $(SOURCES)
	$(BIN)/python -m pip install --quiet --editable "packages/hushuffle[examples]"
	@touch $@

.venv/.%: .venv/bin/python $(SOURCES)
	$(BIN)/python -m pip install --quiet --group $* --editable "packages/hushuffle[$(WITH_$*)]" \
	  --editable packages/hushuffle-network --editable packages/hushuffle-papers --editable packages/shuffle-certificate
	@touch $@
