# Every command here first sets up .venv and installs what is missing.
PYTHON ?= python3
RUN := checkpoints/demo
EXAMPLES := "Wednesday, September 28, 2011" "June 6, 1987 or May 1996" "12 kilograms and 63.5%" \
  "in 22 months, 17 weeks ago, and 24 hours ago" "Spain (71%), Iceland, and Japan"
VENV_PYTHON := .venv/bin/python
EXTRAS := serve compare export documents

.DEFAULT_GOAL := help
.PHONY: help demo test test-long test-triton test-without-extras lint types format check clean

help:
	@echo "make demo    set everything up; train, translate, score and draw on the built-in corpus"
	@echo "make test    set everything up; run the tests"
	@echo "make test-long   run the tests that take seconds each: scripts, documents, several processes"
	@echo "make lint    ruff                            make types   mypy"
	@echo "make check   lint, types, test, test-long"
	@echo "make test-triton   run the tests of the GPU kernels on the CPU (downloads Triton, 200 MB)"
	@echo "make test-without-extras   delete $(EXTRAS) in a copy, and run tests of the rest"
	@echo "make format  format the code with ruff       make clean   delete .venv"
	@echo "PYTHON=python3.12 make test   use another Python"

demo: .venv/run.stamp
	@"$(VENV_PYTHON)" -m nmt.train name=demo resume=auto
	@"$(VENV_PYTHON)" -m nmt.evaluate run=$(RUN)
	@printf '%s\n' $(EXAMPLES) > $(RUN)/examples.txt
	@"$(VENV_PYTHON)" -m nmt.translate run=$(RUN) input=$(RUN)/examples.txt output=$(RUN)/examples.translated.txt \
	  heatmaps=$(RUN)/examples
	@echo
	@echo "Example translations:"
	@paste $(RUN)/examples.txt $(RUN)/examples.translated.txt | awk -F '\t' '{ print "  " $$1; print "    -> " $$2 }'
	@echo
	@echo "Attention heatmaps, one per sentence:"
	@echo "  $(RUN)/examples/                       of the examples above"
	@for folder in $(RUN)/evaluation/*/heatmaps; do echo "  $$folder/"; done
	@echo "Translations with references, scores and BLEU by length: $(RUN)/evaluation/ (begin with test/report.html)"
	@echo
	@echo "Now look inside, in a browser:"
	@echo "  .venv/bin/pip install -e '.[serve]'"
	@echo "  .venv/bin/python -m nmt.serve run=$(RUN)"

test: .venv/dev.stamp
	@"$(VENV_PYTHON)" -m pytest -n 2 -q -m "not long and not slow and not browser"

test-long: .venv/dev.stamp
	@"$(VENV_PYTHON)" -m pytest -n 2 -q -m "long and not slow and not browser"

test-triton: .venv/triton.stamp
	@TRITON_INTERPRET=1 PYTHONPATH="$(CURDIR)/.venv/triton" "$(VENV_PYTHON)" -m pytest -q tests/kernels/test_triton.py
	@PYTHONPATH="$(CURDIR)/.venv/triton" "$(VENV_PYTHON)" scripts/triton_kernels.py

test-without-extras: .venv/dev.stamp
	@rm -rf .venv/rest && mkdir .venv/rest && git archive HEAD | tar -x -C .venv/rest
	@rm -r $(EXTRAS:%=.venv/rest/nmt/%) $(EXTRAS:%=.venv/rest/tests/%)
	@cd .venv/rest && PYTHONPATH="$$PWD" "$(CURDIR)/.venv/bin/python" -m pytest -q --collect-only > collected.txt || ! tail -n 20 collected.txt
	@cd .venv/rest && PYTHONPATH="$$PWD" "$(CURDIR)/.venv/bin/python" -m pytest -q tests/test_layers.py tests/test_configs.py tests/config \
	  tests/test_api.py

lint: .venv/dev.stamp
	@"$(VENV_PYTHON)" -m ruff check .
	@"$(VENV_PYTHON)" -m ruff format --check .

format: .venv/dev.stamp
	@"$(VENV_PYTHON)" -m ruff check --fix .
	@"$(VENV_PYTHON)" -m ruff format .

types: .venv/dev.stamp
	@"$(VENV_PYTHON)" -m mypy

check: lint types test test-long

clean:
	rm -rf .venv

# Stamps rather than folders: an interrupted installation starts again, a finished one takes no time.
.venv/made.stamp:
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "$(PYTHON) is older than Python 3.11. Name a newer one: PYTHON=/path/to/python3.12 make $(MAKECMDGOALS)" >&2; \
	  exit 1; }
	@echo "Making the environment .venv with $$("$(PYTHON)" --version)"
	@"$(PYTHON)" -m venv --clear .venv
	@touch $@

.venv/run.stamp: .venv/made.stamp pyproject.toml
	@echo "Installing nmt and its dependencies into .venv (once; PyTorch is large)"
	@"$(VENV_PYTHON)" -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

.venv/dev.stamp: .venv/made.stamp pyproject.toml
	@echo "Installing nmt, its dependencies and the test tools into .venv (once; PyTorch is large)"
	@"$(VENV_PYTHON)" -m pip install --quiet --disable-pip-version-check -e ".[dev]"
	@touch .venv/run.stamp $@

# Apart from the other packages: torch for CPUs does without Triton.
.venv/triton.stamp: .venv/dev.stamp
	@"$(VENV_PYTHON)" -m pip install --quiet --disable-pip-version-check --no-deps --upgrade \
	  --target .venv/triton "triton>=3.6"
	@touch $@
