# make setup   one .venv in this folder with ppo-tui, its tools and veRL
# make run     a real PPO run on this machine without a GPU; PRESET=gsm8k-0.5b-24gb for one with
# make check   what a change is checked with while it is made: lint, types and the fast tests
# make test    everything that .ci/run checks
#
# veRL for the CPU and veRL for GPUs want different builds of torch, and one .venv holds one of them: PRESET
# chooses, or EXTRA=cpu|gpu. A .venv that has the GPU build keeps it; toy-cpu runs with that one, too.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PRESET ?= toy-cpu
ARGS ?=

ifneq ($(filter-out toy-cpu,$(PRESET))$(wildcard .venv/.installed-gpu),)
EXTRA ?= gpu
else
EXTRA ?= cpu
endif
VERSIONS := $(if $(filter gpu,$(EXTRA)),3.12 3.11 3.10,3.11 3.12)

PYTHON := .venv/bin/python
PIP := $(PYTHON) -m pip --disable-pip-version-check -q install
DATA := $(foreach set,gsm8k math,$(if $(findstring $(set),$(PRESET)),$(set)))
BENCHES := $(filter-out bench/health% bench/screenshot%,$(wildcard bench/*.py))
STAMP := .venv/.installed-$(EXTRA)
# Bytecode is kept whatever the environment says: without it, each test process compiles ppo-tui and rewrites
# the assertions of all tests again
export PYTHONDONTWRITEBYTECODE :=
ifeq ($(shell uname),Linux)
# 190 MB instead of several GB with CUDA; pip goes on without this index where it cannot be reached
TORCH_INDEX := --extra-index-url https://download.pytorch.org/whl/cpu --retries 1
endif

.PHONY: help setup run check test lint types pytest bench bench-health bench-million corpus fuzz pictures strings clean

help:
	@sed -n 's/^# \{0,1\}//p;/^$$/q' Makefile

setup: $(STAMP)

$(PYTHON):
	@for version in $(VERSIONS); do \
	  if python=$$(python$$version -c 'import sys, venv, ensurepip; print(sys.executable)' 2>/dev/null); then \
	    echo "setup 1/3: .venv with Python $$version"; exec $$python -m venv .venv; \
	  fi; \
	done; \
	echo "setup: veRL needs one of Python $(VERSIONS), with its venv module" >&2; exit 1

.venv/.installed-cpu: pyproject.toml constraints-cpu.txt | $(PYTHON)
	@echo "setup 2/3: torch for the CPU"
	@$(PIP) -c constraints-cpu.txt --no-deps torch $(TORCH_INDEX)
	@echo "setup 3/3: veRL for the CPU, ppo-tui and its tools"
	@$(PIP) -c constraints-cpu.txt -e '.[cpu,dev]'
	@touch $@

.venv/.installed-gpu: pyproject.toml | $(PYTHON)
	@echo "setup 2/3: veRL, vLLM and torch with CUDA: about 10 GB"
	@$(PIP) 'verl[vllm]==0.9.1'
	@echo "setup 3/3: ppo-tui and its tools"
	@$(PIP) -e '.[gpu,dev]'
	@rm -f .venv/.installed-cpu
	@touch $@

run: setup $(DATA:%=$(HOME)/data/%/train.parquet)
	@.venv/bin/ppo-tui run $(PRESET) $(ARGS)

$(HOME)/data/%/train.parquet: | setup  # where the shipped presets look for them
	@.venv/bin/ppo-tui data $*

test: lint types pytest

check: lint types
	@$(PYTHON) -m pytest -n 2 --dist loadgroup -m "not slow and not e2e" --hypothesis-profile=check $(ARGS)

lint: setup
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check .
	@.venv/bin/lint-imports --no-cache --no-logo

types: setup
	@.venv/bin/mypy

pytest: setup
	@$(PYTHON) -m pytest -n 4 --dist loadgroup $(ARGS)  # the real runs come first, the others fill their waits

bench: setup
	@for script in $(BENCHES) bench/terminal; do echo "== $$script"; $(PYTHON) $$script; done

bench-health: setup
	@$(PYTHON) bench/health.py $(ARGS)

bench-million: setup
	@$(PYTHON) bench/open_run.py --million $(ARGS)

corpus: setup  # broken presets that only a real run can judge: an hour; ARGS="storage_units" for some
	@$(PYTHON) tests/support/corpus_run.py $(ARGS)

pictures: setup  # those of the README, from recorded runs
	@PPO_TUI_HOME=$$(mktemp -d) bench/pictures.sh

strings: setup  # every sentence that a user can read, file by file
	@$(PYTHON) tests/support/strings.py

fuzz: setup
	@$(PYTHON) tests/fuzz/fuzz_console.py --edits 1000000 $(ARGS)

clean:  # all that was made here but .venv
	rm -rf build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis snapshot_report.html
	find . -name __pycache__ -type d -not -path './.venv/*' -prune -exec rm -rf {} +
