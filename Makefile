PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
INSTALL_LOG := $(VENV)/install.log
# Only what the user can change is worth a line, so all that pip says goes to a file, which is shown if it fails.
PIP := PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore PIP_NO_INPUT=1 \
	$(BIN)/python -m pip install --quiet --quiet --constraint constraints.txt
FAILED = { grep -v '^WARNING: Location' $(INSTALL_LOG); echo 'The installation failed: see $(INSTALL_LOG)'; exit 1; }

.PHONY: quickstart test test-slow lint types docs examples browser check clean

quickstart: $(INSTALLED)
	@echo 'Drawing a first ticket: about 4 minutes on two cores.'
	@$(BIN)/tombola quickstart

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
	@echo 'Installing into $(VENV), once. First torch: about 1 minute.'
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) torch >$(INSTALL_LOG) 2>&1 || $(FAILED)
	@echo 'Then Tombola and its tools: about 2 minutes.'
	@$(PIP) --editable '.[dev]' >>$(INSTALL_LOG) 2>&1 || $(FAILED)
	@touch $@

clean:
	rm -rf $(VENV) build dist runs quickstart
