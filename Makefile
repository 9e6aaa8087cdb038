# Two commands are all the set-up there is: `make demo` and `make test` build .venv on first use.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)

.PHONY: demo test check static docs format slow browser release-check clean

demo: $(READY)
	$(BIN)/crossfill demo

test: $(READY)
	$(BIN)/pytest -n 2 --dist loadfile

check: static test

static: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.compose-spec compose.yaml
	$(BIN)/check-jsonschema --builtin-schema vendor.citation-file-format CITATION.cff
	$(MAKE) --no-print-directory docs

docs: $(READY)
	$(BIN)/python tools/build_site.py site
	$(BIN)/python tools/check_site.py site

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

slow: $(READY)
	$(BIN)/pytest -m slow

# Debian's Chromium, for the tests of the page; where there is none, they are skipped
browser:
	command -v chromium > /dev/null || { $(SUDO) apt-get update -q && $(SUDO) apt-get install -q --yes --no-install-recommends chromium; }

# A fresh clone, then the wheel, each in an empty environment
release-check: $(READY)
	$(BIN)/python tools/release_check.py

# torch first and exactly as pinned: an open range would pull the CUDA build
$(READY): pyproject.toml lock.txt
	$(PYTHON) -c 'import sys; sys.exit("crossfill needs Python 3.11 or later: make PYTHON=python3.12 …" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet $$(grep -o 'torch==.*' lock.txt)
	$(BIN)/pip install --quiet --require-hashes --no-deps --requirement lock.txt
	$(BIN)/pip install --quiet --no-deps --editable .
	touch $(READY)

clean:
	rm -rf .venv demo dist site
