# `make demo` and `make test` are all a newcomer needs: both build .venv first when it is missing
# or older than pyproject.toml.

PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/installed
DOCS_INSTALLED := .venv/docs-installed

.PHONY: demo test docs bench lint types clean

demo: $(INSTALLED)
	$(BIN)/looped demo

test: lint types
	$(BIN)/python -m pytest

# Fails on a broken link; NO_MKDOCS_2_WARNING hides what a vendor says of another product.
docs: $(DOCS_INSTALLED)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# The table of docs/performance.md and its figures: twenty minutes on an otherwise idle machine.
bench: $(INSTALLED)
	$(BIN)/python benchmarks/table.py

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(INSTALLED)
	$(BIN)/mypy

# The stamp is written last: an installation that was interrupted is taken up again.
$(INSTALLED): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "looped needs Python 3.11 or newer; name one with: make PYTHON=python3.11" >&2; exit 2; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@

$(DOCS_INSTALLED): $(INSTALLED)
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	@touch $@

clean:
	rm -rf .venv site .mypy_cache .pytest_cache .ruff_cache
