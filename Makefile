# `make demo` and `make test` are all a newcomer needs: both build .venv first when it is missing
# or older than pyproject.toml.

PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/installed
DOCS_INSTALLED := .venv/docs-installed

.PHONY: demo test docs bench measurement results lint types clean

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

# The measurement of docs/measurement.md: hours on two cores; interrupted, it goes on where it was.
# Its text is the library of Python with its tests: 15 million tokens.
measurement: $(INSTALLED)
	library=$$($(BIN)/python -c "import sysconfig; print(sysconfig.get_path('stdlib'))") && \
	$(BIN)/looped prepare --source text --out data/cpu --seq_len 128 --tokenizer bpe:512 \
		--val_fraction 0.02 \
		--paths "$$library/*.py" "$$library/[!s]*/**/*.py" "$$library/s[!i]*/**/*.py"
	$(BIN)/looped sweep run configs/sweeps/cpu.yaml configs/sweeps/cpu-seeds.yaml \
		configs/sweeps/cpu-controls.yaml configs/sweeps/cpu-more.yaml --jobs 2

# The records of its finished runs, to be committed.
results:
	cd runs && grep -slE '"status": "(complete|diverged)"' cpu/*/run.json recipe/*/run.json | \
		xargs -r cp --parents --update -t ../results

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
