.DEFAULT_GOAL := help
.PHONY: help setup quickstart test units integration sanity lint format test-all test-matrix mutants docs benchmark release clean

PYTHON ?= python3

# A virtual environment works at one path with one Python, so the names of the stamps depend on both.
STAMP := ready-$(shell echo "$$(pwd) $(PYTHON)" | cksum | cut -d ' ' -f 1)
READY := .venv/$(STAMP)
ALL_READY := .venv/all-$(STAMP)
QUICKSTART_READY := .venv-quickstart/$(STAMP)
RELEASE_READY := .venv-release/$(STAMP)

REQUIREMENTS := tests/requirements.txt tests/unit/requirements.txt
PIP_INSTALL = $(@D)/bin/python -m pip install -qq --disable-pip-version-check
CHECK := .venv/bin/python tests/tools/check.py

help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' Makefile | while IFS='|' read -r target text; do \
		printf '  make %-12s %s\n' "$$target" "$$text"; done

setup: $(READY) ## Create the virtual environment of the tests

quickstart: $(QUICKSTART_READY) ## Show what the modules do against a local sandbox, in a minute
	@.venv-quickstart/bin/python tests/tools/workspace.py ansible-playbook clouddb.control.quickstart $(ARGS)
	@echo 'For these commands: . .venv-quickstart/bin/activate && ansible-galaxy collection install --force .'

test: $(READY) ## Run sanity, unit and integration tests and a few rotations with failures, in parallel
	@$(CHECK) test

units: $(READY) ## Run the unit tests; ARGS=tests/unit/plugins/modules selects tests
	@$(CHECK) $@ -- $(ARGS)

integration: $(READY) ## Run the integration tests of modules and roles; ARGS=api_key selects targets
	@$(CHECK) $@ -- $(ARGS)

sanity: $(READY) ## Run ansible-test sanity; ARGS="--test pep8" or paths select tests
	@$(CHECK) $@ -- $(ARGS)

lint: $(READY) ## Run ruff, ansible-lint, mypy, shellcheck and the linters of documentation, changelog, spelling and licenses
	@$(CHECK) $@

format: $(READY) ## Format the Python code and apply ruff's fixes
	@.venv/bin/ruff check --fix-only --quiet
	@.venv/bin/ruff format

test-all: $(ALL_READY) $(RELEASE_READY) ## Run the suites that make test leaves out, for hours; SUITE=eda selects one, SUITE=smoke a few tests of each
	@$(CHECK) $(or $(SUITE),all) -- $(ARGS)

test-matrix: $(ALL_READY) ## Run the tests on all supported versions with the Pythons found, for hours
	@.venv/bin/nox $(ARGS)

mutants: $(ALL_READY) ## List changes of the code that no test notices, since the last tag or in ARGS=plugins/module_utils/_lists.py, for hours
	@.venv/bin/python tests/tools/mutants.py $(ARGS)

docs: $(ALL_READY) ## Build the documentation site in .build/docs
	@.venv/bin/python docs/site/build.py

benchmark: $(ALL_READY) ## Measure speed on an idle machine and update the table of the page Performance
	@.venv/bin/python tests/tools/workspace.py python tests/benchmark/run.py --page "$(CURDIR)/docs/docsite/rst/performance.rst" $(ARGS)

release: $(READY) ## Build the tarball of a release if tag, metadata and changelog match VERSION
	@test -n "$(VERSION)" || { echo 'VERSION is missing. Run: make release VERSION=1.2.3' >&2; exit 1; }
	@.venv/bin/python tests/tools/release.py "$(VERSION)"

clean: ## Remove the files that the other targets created
	rm -rf .venv .venv-* .nox .build

$(READY): PACKAGES := $(REQUIREMENTS:%=--requirement %)
$(QUICKSTART_READY): PACKAGES := --constraint tests/requirements.txt ansible-core requests
# galaxy-importer needs older versions of libraries than nox.
$(RELEASE_READY): PACKAGES := --constraint tests/requirements.txt ansible-core 'galaxy-importer >= 0.4.30'

$(READY) $(QUICKSTART_READY) $(RELEASE_READY): $(REQUIREMENTS)
	@"$(PYTHON)" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 15))' \
		|| { echo 'Python 3.10 to 3.15 is needed. Select one with make PYTHON=...' >&2; exit 1; }
	@test ! -L $(@D) || { echo '$(@D) is a link, and this would empty the environment that it leads to. Remove the link.' >&2; exit 1; }
	@echo 'Setting up $(@D) (once, about a minute)…'
	@"$(PYTHON)" -m venv --clear $(@D)
	@$(PIP_INSTALL) $(PACKAGES)
	@touch $@

$(ALL_READY): $(READY) tests/requirements-all.txt
	@echo 'Adding the programs of all suites to $(@D) (once, about two minutes)…'
	@$(PIP_INSTALL) $(REQUIREMENTS:%=--requirement %) --requirement tests/requirements-all.txt
	@touch $@
