# Everything runs in .venv, which the first target that needs it makes.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help demo test slow scale chaos chaos-full soak bench papers fuzz oracle lint sanitize types audit lock release-check doctest docs pictures clean

# What compiles the package to bytecode once is faster: tests start thousands of short processes.
unexport PYTHONDONTWRITEBYTECODE

help:            ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# What is installed depends on pyproject.toml alone; the stamp lets second runs reuse it. The kernels
# are built with it, and anew where a C file has changed.
KERNELS := $(shell find online_svm -name '*.[ch]')

$(VENV)/.run: pyproject.toml $(KERNELS) | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e '.[service]'
	@touch $@

$(VENV)/.dev: pyproject.toml $(KERNELS) | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e '.[dev]'
	@touch $@ $(VENV)/.run

demo: $(VENV)/.run   ## the main job on real data, with an embedded Redis (half a minute; the first time it installs packages)
	$(BIN)/online-svm demo

# A file in one process, and one process more than a machine of two cores has: each of them often
# waits for a server or a timer.
# ARGS are further arguments, as in `make test ARGS=tests/docs`.
test: $(VENV)/.dev   ## the default test suite
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder $(ARGS)

slow: $(VENV)/.dev   ## the tests that take more than ten seconds each, and default tests with more inputs
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder -m "slow and not chaos and not fuzz" $(ARGS)

# It needs Redis 7 on PATH, and Ray for the tests of Ray; what is missing is skipped with the reason.
scale: $(VENV)/.dev  ## Redis Cluster, Sentinel and Ray under faults and load; long tables (an hour)
	$(BIN)/python -m pytest -m "scale and not chaos and not fuzz" -s

chaos: $(VENV)/.dev  ## kill the real worker again and again, and compare every byte (minutes)
	$(BIN)/python -m pytest -m "chaos and not chaos_full" -s

chaos-full: $(VENV)/.dev  ## the same, and workers that die at any two failpoints (eight minutes more)
	$(BIN)/python -m pytest -m chaos -s

# SOAK_EXAMPLES=10000000 for the long run.
soak: $(VENV)/.run   ## 2 million examples: memory, key sizes and rate must stay level (minutes)
	$(BIN)/python scripts/bench scale --entries $${SOAK_EXAMPLES:-2000000}

# BENCH="worker --against ../old", for one; without it their list.
bench: $(VENV)/.dev  ## a benchmark by name: make bench BENCH=worker
	$(BIN)/python scripts/bench $${BENCH:---help}

papers: $(VENV)/.dev ## the five papers' tables beside what is measured, in build/papers (an hour)
	$(BIN)/python scripts/papers all --out build/papers

# FUZZ_ENTRIES fuzzed entries in a real stream, and FUZZ_FACTOR times the examples of the suite.
fuzz: $(VENV)/.dev   ## feed everything that parses with garbage, at length (20 minutes on two busy cores)
	FUZZ_FACTOR=$${FUZZ_FACTOR:-10} $(BIN)/python -m pytest -m "fuzz or not fuzz" -s tests/fuzz

# Only where the semantics number was raised: nothing else may change a byte.
oracle: $(VENV)/.dev ## write the digests of tests/oracle anew
	PYTHONPATH=.:tests/support $(BIN)/python tests/oracle/test_oracle.py

lint: $(VENV)/.dev   ## ruff, clang-format and clang-tidy: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m scripts.building.analysis

# Needs gcc.
sanitize: $(VENV)/.dev ## tests of the kernels and the fuzzers under AddressSanitizer and UBSan
	$(BIN)/python -m scripts.building.sanitize tests/online_svm/compiled tests/online_svm/svm/exact \
		tests/fuzz/test_fuzz_parsers.py

types: $(VENV)/.dev  ## mypy, strict
	$(BIN)/mypy

# In an environment with every extra. uv looks up the hashes.
lock: $(VENV)/.dev   ## write deploy/lock and deploy/licences.md: versions, hashes and licences
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/python scripts/make_lock.py
	$(BIN)/python -m scripts.release.licences

# --python PROGRAM, again and again, for other Pythons; --quick: this platform alone, no models, demo and worker.
release-check: $(VENV)/.dev ## build the release twice, compare, install it in an empty place and use it
	$(BIN)/python -m scripts.release $(ARGS)

audit: $(VENV)/.dev  ## known vulnerabilities of the locked versions, where that can be looked up
	-$(BIN)/python -m pip install --quiet pip-audit
	$(BIN)/python scripts/audit.py

# Those of the gateway need its extra.
doctest: $(VENV)/.dev  ## the examples in the public docstrings
	$(BIN)/python -m pytest --doctest-modules online_svm workers scripts/bench scripts/papers -p no:cacheprovider \
		$$($(BIN)/python -c "import starlette, uvicorn" 2> /dev/null || echo --ignore=workers/gateway)

# A dead link or anchor, and any other warning, is an error.
docs: $(VENV)/.dev   ## the site of the documents, in build/site
	$(BIN)/python -m sphinx -q --fresh-env --fail-on-warning -c docs . build/site
	@echo "build/site/index.html"

# Needs Chromium: apt-get install chromium.
pictures: $(VENV)/.dev  ## the pictures of the concepts and of the live page, in docs/images (two minutes)
	$(BIN)/python scripts/make_concept_pictures.py
	$(BIN)/python scripts/make_pictures.py

clean:           ## remove what the targets above made
	rm -rf $(VENV) build dist demo-output *.egg-info .hypothesis .pytest_cache .mypy_cache .ruff_cache
	find online_svm workers scripts tests -name __pycache__ -prune -exec rm -rf {} +
