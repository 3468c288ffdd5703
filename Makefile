PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.PHONY: quickstart test test-slow lint types check bench clean

quickstart: $(INSTALLED)
	$(BIN)/tombola quickstart

test: $(INSTALLED)
	HF_HUB_OFFLINE=1 $(BIN)/python -m pytest -n 2

test-slow: $(INSTALLED)
	HF_HUB_OFFLINE=1 $(BIN)/python -m pytest -m slow

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(INSTALLED)
	$(BIN)/mypy

check: lint types test

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) build dist runs quickstart
