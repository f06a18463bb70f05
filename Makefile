# Two commands: `make demo` and `make test`. Both set up everything they need, once, in .venv.
#
#   make demo                                       compare strategies on the collection that ships with the package
#   make demo DOCS=path/ QUESTIONS=path.jsonl       compare them on yours
#   make test                                       all tests that need no server

PYTHON ?= python3
VENV ?= .venv
OUTPUT ?= demo-report
BIN := $(VENV)/bin

.PHONY: demo test check bench clean
.DELETE_ON_ERROR:

demo: $(VENV)/ready
	@$(BIN)/chunkcore compare $(if $(DOCS),--docs "$(DOCS)") $(if $(QUESTIONS),--questions "$(QUESTIONS)") --output "$(OUTPUT)"

test: $(VENV)/ready
	HAYSTACK_TELEMETRY_ENABLED=False $(BIN)/python -m pytest

check: $(VENV)/ready
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy

# Timings, printed as ratios side by side. Run by hand, on an idle machine.
bench: $(VENV)/ready
	$(BIN)/pip install --quiet "chonkie>=1.7"
	@for file in integration_tests/benchmarks/*_speed.py; do echo "== $$file"; $(BIN)/python $$file || exit 1; done

clean:
	rm -rf $(VENV) demo-report .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/ready: pyproject.toml .ci/install.py
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
	  { echo "Python 3.10 or newer is needed, and $(PYTHON) is older: make PYTHON=/path/to/python3 ..." >&2; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python .ci/install.py
	@touch $@
