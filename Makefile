# Every command here does its own set-up first: it makes .venv, installs what is missing, and then the work.
#   make demo    the main job on the built-in corpus: train, translate, score, draw
#   make test    the tests                        make check   tests, lint and types
PYTHON ?= python3
RUN := checkpoints/demo
EXAMPLES := "Wednesday, September 28, 2011" "June 6, 1987 or May 1996" "12 kilograms and 63.5%" \
  "in 22 months, 17 weeks ago, and 24 hours ago" "Spain (71%), Iceland, and Japan"
VENV_PYTHON := .venv/bin/python

.DEFAULT_GOAL := help
.PHONY: help demo test lint types format check clean

help:
	@echo "make demo    sets everything up, then trains, scores and draws on the built-in corpus (minutes)"
	@echo "make test    sets everything up, then passes the tests"
	@echo "make lint    ruff            make types   mypy            make check   test, lint and types"
	@echo "make format  rewrites the code as ruff has it              make clean   removes .venv"
	@echo "PYTHON=python3.12 make test  takes another Python than python3"

demo: .venv/run.stamp
	@"$(VENV_PYTHON)" -m nmt.train name=demo resume=auto
	@"$(VENV_PYTHON)" -m nmt.evaluate run=$(RUN)
	@printf '%s\n' $(EXAMPLES) > $(RUN)/examples.txt
	@"$(VENV_PYTHON)" -m nmt.translate run=$(RUN) input=$(RUN)/examples.txt output=$(RUN)/examples.translated.txt \
	  heatmaps=$(RUN)/examples
	@echo
	@echo "A few lines, and what the model makes of them:"
	@paste $(RUN)/examples.txt $(RUN)/examples.translated.txt | awk -F '\t' '{ print "  " $$1; print "    -> " $$2 }'
	@echo
	@echo "What the attention looked at, a picture a sentence:"
	@echo "  $(RUN)/examples/                       the lines above"
	@for folder in $(RUN)/evaluation/*/heatmaps; do echo "  $$folder/"; done
	@echo "Translations beside their references, scores and BLEU by length lie in $(RUN)/evaluation/"

test: .venv/dev.stamp
	@"$(VENV_PYTHON)" -m pytest -n 2 -q

lint: .venv/dev.stamp
	@"$(VENV_PYTHON)" -m ruff check .
	@"$(VENV_PYTHON)" -m ruff format --check .

format: .venv/dev.stamp
	@"$(VENV_PYTHON)" -m ruff check --fix .
	@"$(VENV_PYTHON)" -m ruff format .

types: .venv/dev.stamp
	@"$(VENV_PYTHON)" -m mypy

check: lint types test

clean:
	rm -rf .venv

# Stamps rather than folders: an installation that broke off is begun again, a finished one takes no time.
.venv/made.stamp:
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Python 3.11 or later is needed, and $(PYTHON) is not: PYTHON=/path/to/python3.12 make demo" >&2; exit 1; }
	@echo "Making the environment .venv with $$("$(PYTHON)" --version)"
	@"$(PYTHON)" -m venv --clear .venv
	@touch $@

.venv/run.stamp: .venv/made.stamp pyproject.toml
	@echo "Installing nmt and what it needs into .venv (once; PyTorch is large)"
	@"$(VENV_PYTHON)" -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

.venv/dev.stamp: .venv/made.stamp pyproject.toml
	@echo "Installing nmt, what it needs and the tools for tests into .venv (once; PyTorch is large)"
	@"$(VENV_PYTHON)" -m pip install --quiet --disable-pip-version-check -e ".[dev]"
	@touch .venv/run.stamp $@
