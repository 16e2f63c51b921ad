# Needs make and Python 3.11, 3.12 or 3.13; everything else is installed into .venv once.
PYTHON ?= python3
VENV := .venv
STAMP := $(VENV)/.installed
EXTRAS := dev,embedded,openai,slack
# Two test processes suit the smallest machine that the suite is meant for; more cores may take more.
TEST_WORKERS ?= 2
PYTEST_ARGS ?=
BENCH_ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help demo test lint bench simulate chaos clean install

help: ## list these targets
	@echo "Millstream. Targets:"
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | \
		while IFS='|' read -r target text; do printf '%-14s %s\n' "$$target" "$$text"; done

demo: $(STAMP) ## play a short story through real processes on this machine (two minutes, nothing left running)
	@$(VENV)/bin/millstream demo

test: $(STAMP) ## run the whole suite; PYTEST_ARGS="-k name" selects, TEST_WORKERS=4 uses more cores
	$(VENV)/bin/pytest -n $(TEST_WORKERS) --dist loadgroup $(PYTEST_ARGS)

lint: $(STAMP) ## ruff, formatting, types, import contracts
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/pyright
	$(VENV)/bin/lint-imports

bench: $(STAMP) ## measure beside bare Celery, Dramatiq, taskiq and Starlette; BENCH_ARGS=--quick is short
	@$(VENV)/bin/millstream bench $(BENCH_ARGS)

simulate: $(STAMP) ## run the simulation: SEEDS=1000 seeds, or SEED=17 alone
	@$(VENV)/bin/python -m tests.simulation.driver $(if $(SEED),--seed $(SEED),--seeds $(or $(SEEDS),1000))

chaos: $(STAMP) ## kill, freeze, cut off and fill up real processes under load (under five minutes); a table at the end
	@$(VENV)/bin/python -m tests.chaos

install: $(STAMP) ## only make .venv and install into it

clean: ## remove .venv, caches and build output; never configuration or data
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache .import_linter_cache .hypothesis *.egg-info
	find ingest workers shared tests -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamp keeps what was installed. Where only the files' times changed nothing is done; where a later installation
# fails (no network), what is there goes on serving and the next run tries again.
$(STAMP): pyproject.toml constraints.txt
	@set -e; \
	wanted=$$(cat pyproject.toml constraints.txt | cksum); \
	if [ -x $(VENV)/bin/python ] && [ "$$(cat $(STAMP) 2>/dev/null)" = "$$wanted" ]; then touch $(STAMP); exit 0; fi; \
	fits='import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))'; \
	if ! $(VENV)/bin/python -c "$$fits" 2>/dev/null; then \
		chosen=; \
		for candidate in "$(PYTHON)" python3.13 python3.12 python3.11 python3; do \
			if "$$candidate" -c "$$fits" 2>/dev/null; then chosen=$$candidate; break; fi; \
		done; \
		if [ -z "$$chosen" ]; then \
			echo "Millstream needs Python 3.11, 3.12 or 3.13, and none was found: \"$(PYTHON)\" is" \
				"$$("$(PYTHON)" --version 2>&1 | head -n 1 || true)." >&2; \
			echo "Install one of them, or name it: make PYTHON=/path/to/python3.12 TARGET" >&2; \
			exit 1; \
		fi; \
		if [ "$$chosen" != "$(PYTHON)" ]; then echo "\"$(PYTHON)\" is not Python 3.11 to 3.13; using $$chosen."; fi; \
		"$$chosen" -m venv --clear $(VENV) || { \
			echo "$$chosen cannot make a virtual environment; on Debian and Ubuntu install python3-venv." >&2; exit 1; }; \
	fi; \
	echo "Installing into $(VENV) (once; about a minute)"; \
	if $(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[$(EXTRAS)]"; then \
		echo "$$wanted" > $(STAMP); \
	elif [ -f $(STAMP) ]; then \
		echo "The installation failed; going on with what was installed before." >&2; \
	else \
		echo "The installation failed: see above. It needs the network this one time." >&2; exit 1; \
	fi
