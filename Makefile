PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.PHONY: quickstart test test-slow lint types docs examples browser check clean

quickstart: $(INSTALLED)
	$(BIN)/tombola quickstart

test: $(INSTALLED) browser
	HF_HUB_OFFLINE=1 $(BIN)/python -m pytest -n 2

test-slow: $(INSTALLED)
	HF_HUB_OFFLINE=1 $(BIN)/python -m pytest -m slow

examples: $(INSTALLED)
	$(BIN)/python -m pytest -m examples -n 2

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(INSTALLED)
	$(BIN)/mypy

docs: $(INSTALLED)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet --site-dir build/site

# The report is tested in a real browser; where none is and none can be installed, those tests say so and are skipped.
browser:
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null \
		|| (apt-get update --quiet && apt-get install --yes --quiet chromium) >/dev/null 2>&1 \
		|| echo 'no Chromium, and it cannot be installed here: tests in a browser are skipped'

check: lint types docs test examples

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) build dist runs quickstart
