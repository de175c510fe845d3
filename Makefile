# make setup   create .venv in this folder with ppo-tui, its tools and veRL, as pinned
# make run     start a real PPO run on this machine's CPU; PRESET=gsm8k-0.5b-24gb for a GPU
# make check   run the quick checks while you work: lint, types and the fast tests
# make test    run everything that .ci/run checks; `nightly` tests where their inputs changed
# make test-all  run all tests
#
# veRL for the CPU and veRL for GPUs need different builds of torch; one .venv holds one of them. PRESET selects
# it, or EXTRA=cpu|gpu. A .venv with the GPU build keeps it; toy-cpu runs with it, too.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PRESET ?= toy-cpu
ARGS ?=
NIGHTLY := changed

ifneq ($(filter-out toy-cpu,$(PRESET))$(wildcard .venv/.installed-gpu),)
EXTRA ?= gpu
else
EXTRA ?= cpu
endif
VERSIONS := $(if $(filter gpu,$(EXTRA)),3.12 3.11 3.10,3.11 3.12)

PYTHON := .venv/bin/python
PIP := $(PYTHON) -m pip --disable-pip-version-check install
DATA := $(foreach set,gsm8k math,$(if $(findstring $(set),$(PRESET)),$(set)))
BENCHES := $(filter-out bench/health% bench/evidence%,$(wildcard bench/*.py))
GALLERY = $(shell sed -n "s/ = .*//p" tools/gallery.toml)
SCRIPT := PYTHONPATH=tests/support:tools:campaigns:bench:. $(PYTHON)
STAMP := .venv/.installed-$(EXTRA)
# Always keep bytecode: without it, each test process compiles ppo-tui and rewrites the assertions of all
# tests again
export PYTHONDONTWRITEBYTECODE :=
# pip installs torch: it alone finds a build that lies on the machine. uv installs the rest in a quarter of pip's time
UV := .venv/bin/uv pip install --python $(PYTHON) --no-deps
PINS := -r <(grep -vE '^(--|torch==)' launcher/verl/requirements-cpu.txt) -r requirements-dev.txt

.PHONY: help setup run lock watch check test test-all lint types fast pytest pages docs docs-record matrix bench bench-health bench-million corpus corpus-answers fuzz golden pictures strings faults clean

help:
	@sed -n 's/^# \{0,1\}//p;/^$$/q' Makefile

setup: $(STAMP)

$(PYTHON):
	@for version in $(VERSIONS); do \
	  if python=$$(python$$version -c 'import sys, venv, ensurepip; print(sys.executable)' 2>/dev/null); then \
	    echo "setup 1/4: .venv with Python $$version"; exec $$python -m venv .venv; \
	  fi; \
	done; \
	echo "setup: veRL needs one of Python $(VERSIONS), with its venv module" >&2; exit 1

.venv/.installed-cpu: pyproject.toml launcher/verl/requirements-cpu.txt requirements-dev.txt | $(PYTHON)
	@echo "setup 2/4: torch for the CPU, about 190 MB"
	@$(PIP) --no-compile --no-deps --retries 1 -c launcher/verl/requirements-cpu.txt torch
	@echo "setup 3/4: veRL for the CPU, ppo-tui and its tools, about 300 MB"
	@index=$$($(PYTHON) -m pip config list | sed -n "s/^.*\.index-url='\(.*\)'$$/\1/p" | head -n 1); \
	[ -z "$$index" ] || export UV_DEFAULT_INDEX="$$index"; \
	if ! { $(PIP) -q -c requirements-dev.txt uv && $(UV) $(PINS) -e . 2>&1 | sed '/^ [+~-] /d; /Downloaded/d'; }; then \
	  echo "setup: uv failed; pip installs the same versions in more time"; $(PIP) -q --no-deps $(PINS) -e .; \
	fi
	@echo "setup 4/4: the first import, which compiles torch and veRL"
	@$(PYTHON) -c 'import logging; logging.disable(30); import torch, verl.trainer.main_ppo'
	@touch $@

.venv/.installed-gpu: pyproject.toml requirements-dev.txt | $(PYTHON)
	@echo "setup 2/3: veRL, vLLM and torch with CUDA, about 10 GB"
	@$(PIP) 'verl[vllm]==0.9.1'
	@echo "setup 3/3: ppo-tui and its tools"
	@$(PIP) -q -c requirements-dev.txt -e '.[gpu,dev]'
	@rm -f .venv/.installed-cpu
	@touch $@

lock: setup  # pin what pyproject.toml asks for; ARGS="--upgrade-package textual" raises a pin
	@.ci/lock $(ARGS)

run: setup $(DATA:%=$(HOME)/data/%/train.parquet)
	@.venv/bin/ppo-tui run $(PRESET) $(ARGS)

$(HOME)/data/%/train.parquet: | setup  # where the shipped presets expect the data
	@.venv/bin/ppo-tui data $*

test: lint types pytest

test-all: NIGHTLY := all
test-all: test

check: setup
	@$(MAKE) --no-print-directory -j3 lint types fast

fast: setup
	@$(PYTHON) -m pytest -n 2 --dist loadgroup -m "not slow and not e2e" --hypothesis-profile=check $(ARGS)

lint: setup
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check .
	@.venv/bin/lint-imports --no-cache --no-logo
	@$(SCRIPT) tools/words.py
	@$(SCRIPT) tools/budget.py
	@$(SCRIPT) tools/subjects.py

types: setup
	@.venv/bin/mypy

pytest: setup
	@$(PYTHON) -m pytest -n 4 --dist loadgroup --no-loadscope-reorder --nightly $(NIGHTLY) $(ARGS)  # real runs first; the other tests run while these wait

docs-record: setup  # what the commands of the pages print, below them, with those that train the toy; ARGS="howto/fix" selects
	@$(SCRIPT) tools/page_outputs.py --toy $(ARGS)

pages: setup  # the generated parts of docs/, from the code, its tables and recorded results
	@$(SCRIPT) tools/pages.py

docs: setup pages  # the documentation as static HTML with search, in site/
	@.venv/bin/zensical build --clean
	@$(SCRIPT) tools/site_search.py site

watch: setup  # what another veRL has that our tables lack; VERL is a wheel or a checkout. FRAMEWORK=trl SOURCE=DIR: of another framework
	@$(SCRIPT) tools/$(if $(FRAMEWORK),framework_watch.py $(FRAMEWORK) $(SOURCE),verl_watch.py $(VERL))

matrix: setup  # every estimator, loss, trainer and recipe on the CPU toy; ARGS="-j 2 rloo" runs some
	@$(SCRIPT) campaigns/matrix.py $(ARGS)

bench: setup
	@for script in $(BENCHES) bench/terminal; do echo "== $$script"; $(PYTHON) $$script; done

bench-health: setup
	@$(PYTHON) bench/health.py $(ARGS)
	@$(PYTHON) bench/health_bank.py $(ARGS)
	@$(SCRIPT) bench/health_limits.py

bench-million: setup
	@$(PYTHON) bench/open_run.py --million $(ARGS)

corpus: setup  # broken presets that need a real run; an hour; ARGS="storage_units" selects some
	@$(SCRIPT) campaigns/corpus_run.py $(ARGS)

corpus-answers: setup  # ask the real veRL about the corpus again, after a change of a preset, a translation or the probe
	@$(SCRIPT) campaigns/corpus_answers.py

pictures: setup  # draw pictures and animations of the docs, and every page into .pictures/; ARGS="queue --size 80x24" selects
	@$(SCRIPT) tools/screenshot.py docs/pictures
	@$(SCRIPT) tools/casts.py docs/casts
	@$(SCRIPT) tools/page_pictures.py docs/pictures/pages $(GALLERY) --size 80x24 --look dark
	@$(SCRIPT) tools/page_pictures.py .pictures $(ARGS)

golden: setup  # print how what commands and pages show differs from tests/data/golden.json.xz, and store it; ARGS="logs" selects
	@$(SCRIPT) tests/support/golden.py $(ARGS)

strings: setup  # print every string that users read, file by file
	@$(SCRIPT) tools/strings.py

faults: setup  # fail every change of the disk, and die there; 15 minutes; ARGS="fork" selects
	@$(SCRIPT) campaigns/faults.py $(ARGS)

fuzz: setup
	@$(SCRIPT) campaigns/fuzz_runs.py --edits 1000 $(ARGS)
	@$(SCRIPT) campaigns/fuzz_keys.py --presses 20000 $(ARGS)

clean:  # everything generated here except .venv
	rm -rf build dist site .cache *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis snapshot_report.html
	find . -name __pycache__ -type d -not -path './.venv/*' -prune -exec rm -rf {} +
