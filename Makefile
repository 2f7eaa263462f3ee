.DEFAULT_GOAL := help
.PHONY: help setup quickstart test sanity units integration lint format coverage test-playbooks test-soak test-properties test-rotation test-browser test-metrics test-eda test-awx test-distribution test-project test-openapi docs test-docs test-matrix galaxy benchmark java build release clean

PYTHON ?= python3
REQUIREMENTS := tests/requirements.txt tests/unit/requirements.txt

# A virtual environment works at one path with one Python, so the name of its stamp depends on both.
READY := .venv/ready-$(shell echo "$$(pwd) $(PYTHON)" | cksum | cut -d ' ' -f 1)
QUICKSTART_READY := $(subst .venv/,.venv-quickstart/,$(READY))
EDA_READY := $(subst .venv/,.venv-eda/,$(READY))
AWX_READY := $(subst .venv/,.venv-awx/,$(READY))
DISTRIBUTION_READY := $(subst .venv/,.venv-distribution/,$(READY))
PROJECT_READY := $(subst .venv/,.venv-project/,$(READY))
DOCS_READY := $(subst .venv/,.venv-docs/,$(READY))
OPENAPI_READY := $(subst .venv/,.venv-openapi/,$(READY))
BENCHMARK_READY := $(subst .venv/,.venv-benchmark/,$(READY))
RELEASE_READY := $(subst .venv/,.venv-release/,$(READY))
MATRIX_READY := $(subst .venv/,.venv-matrix/,$(READY))

ENVIRONMENTS := $(READY) $(QUICKSTART_READY) $(AWX_READY) $(DISTRIBUTION_READY) $(DOCS_READY) $(EDA_READY) $(BENCHMARK_READY) \
	$(OPENAPI_READY) $(PROJECT_READY) $(RELEASE_READY) $(MATRIX_READY)

SETUP := once, about a minute
WORKSPACE := .venv/bin/python tests/tools/workspace.py
CHECK := .venv/bin/python tests/tools/check.py

help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' Makefile | while IFS='|' read -r target text; do \
		printf '  make %-17s %s\n' "$$target" "$$text"; done

setup: $(READY) ## Create the virtual environment of the tests

quickstart: $(QUICKSTART_READY) ## Show what the modules do against a local sandbox, in a minute
	@.venv-quickstart/bin/python tests/tools/workspace.py ansible-playbook clouddb.control.quickstart $(ARGS)

test: $(READY) ## Run sanity, units, integration and disturbed rotations in parallel
	@$(CHECK) sanity units integration rotation

sanity: $(READY) ## Run ansible-test sanity; ARGS="--test pep8" or paths select tests
	@$(CHECK) $@ -- $(ARGS)

units: $(READY) ## Run the unit tests; ARGS=tests/unit/plugins/modules/ selects tests
	@$(CHECK) $@ -- $(ARGS)

integration: $(READY) ## Run the integration tests of modules and roles; ARGS=api_key selects targets
	@$(CHECK) $@ -- $(ARGS)

test-playbooks: $(READY) ## Run the integration tests that mainly start playbooks, which make integration leaves out
	@$(CHECK) playbooks -- $(ARGS)

lint: $(READY) ## Run ruff, ansible-lint, mypy, shellcheck and the linters of documentation, changelog, spelling and style
	@$(CHECK) $@

format: $(READY) ## Format the Python code and apply ruff's fixes
	@.venv/bin/ruff check --fix-only --quiet
	@.venv/bin/ruff format

coverage: $(READY) ## Measure the line and branch coverage of plugins/ by the unit tests
	@$(CHECK) $@

test-soak: $(READY) ## Run the integration tests including the parts that take minutes and the less frequent variants; ARGS=api_key selects targets
	@$(CHECK) soak -- $(ARGS)

test-rotation: $(READY) ## Test the role's variables and errors, and disturb rotations; ARGS="--cells 600" disturbs more, 0 all, for hours
	@$(CHECK) rotation -- tests/rotation $(ARGS)

test-properties: $(READY) ## Run the property and crash tests with many more examples, for an hour; ARGS=tests/unit/properties selects tests
	@$(WORKSPACE) pytest -q -p no:cacheprovider -o pythonpath=../../.. --hypothesis-profile=soak \
		$(or $(ARGS),tests/unit/properties tests/unit/sandbox \
			tests/unit/plugins/faults/test_killed.py tests/unit/plugins/faults/test_error_matrix.py)

test-browser: $(READY) docs ## Test the account report and the documentation site in Chromium, which must be installed
	@$(WORKSPACE) pytest -p no:cacheprovider tests/browser --site "$(CURDIR)/.build/docs" $(ARGS)

test-metrics: $(READY) ## Test the metrics, the alert rules and the dashboard with promtool, which must be installed
	@$(WORKSPACE) pytest -q -p no:cacheprovider -o pythonpath=../../.. --numprocesses 2 tests/metrics $(ARGS)

test-eda: java $(EDA_READY) ## Test the event source with ansible-rulebook; needs Java 17 or later
	@.venv-eda/bin/python -m pytest -q -p no:cacheprovider tests/eda $(ARGS)

test-awx: $(AWX_READY) ## Test the AWX files and the examples as jobs of ansible-runner
	@.venv-awx/bin/python -m pytest -q -p no:cacheprovider --numprocesses 2 tests/awx $(ARGS)

test-distribution: $(DISTRIBUTION_READY) ## Test the examples that keep a rotated key in a store, each with its rollback
	@.venv-distribution/bin/python tests/tools/workspace.py pytest -q -p no:cacheprovider --numprocesses 2 tests/distribution $(ARGS)

test-project: $(PROJECT_READY) ## Test the example project with Molecule, pytest and ansible-navigator
	@.venv-project/bin/python tests/tools/workspace.py pytest -q -p no:cacheprovider --numprocesses 2 tests/project $(ARGS)

test-openapi: $(OPENAPI_READY) ## Test the sandbox with the OpenAPI document and with clients of the public service
	@.venv-openapi/bin/python tests/tools/workspace.py pytest -q -p no:cacheprovider -o pythonpath=../../.. tests/openapi $(ARGS)

docs: $(DOCS_READY) ## Build the documentation site in .build/docs
	@.venv-docs/bin/python docs/site/build.py

test-docs: java $(DOCS_READY) ## Run the code blocks of the guides; ARGS="-k waiting" selects guides
	@.venv-docs/bin/python tests/tools/workspace.py pytest -q -n auto --dist loadfile -p no:cacheprovider tests/docs $(ARGS)

test-matrix: $(MATRIX_READY) ## Run the tests on all supported versions with the Pythons found, for hours
	@.venv-matrix/bin/nox $(ARGS)

galaxy: $(RELEASE_READY) ## Build a test release and check it with galaxy-importer
	@.venv-release/bin/python tests/tools/workspace.py pytest -q -p no:cacheprovider tests/release $(ARGS)

benchmark: $(BENCHMARK_READY) ## Measure speed and update the page Performance, in 20 minutes; ARGS=task_cost selects measurements
	@.venv-benchmark/bin/python tests/tools/workspace.py python tests/benchmark/run.py --docs "$(CURDIR)/docs/docsite/rst" $(ARGS)

java:
	@java -version 2>&1 | grep -Eq 'version "(1[7-9]|[2-9][0-9])' \
		|| { echo 'ansible-rulebook needs Java 17 or later. On Debian, install openjdk-17-jre-headless.' >&2; exit 1; }

build: $(READY) ## Build the collection's tarball in .build/dist
	@.venv/bin/python tests/tools/release.py

release: $(READY) ## Build the tarball of a release if tag, metadata and changelog match VERSION
	@test -n "$(VERSION)" || { echo 'VERSION is missing. Run: make release VERSION=1.2.3' >&2; exit 1; }
	@.venv/bin/python tests/tools/release.py "$(VERSION)"

clean: ## Remove the files that the other targets created
	rm -rf .venv .venv-* .nox .build

$(READY): $(REQUIREMENTS)
$(QUICKSTART_READY): tests/quickstart/requirements.txt
$(AWX_READY): tests/awx/requirements.txt tests/unit/requirements.txt
$(DISTRIBUTION_READY): tests/distribution/requirements.txt roles/sandbox/files/requirements.txt
$(EDA_READY): tests/eda/requirements.txt tests/unit/requirements.txt
$(DOCS_READY): tests/docs/requirements.txt tests/unit/requirements.txt
$(BENCHMARK_READY): tests/benchmark/requirements.txt tests/unit/requirements.txt
$(OPENAPI_READY): tests/openapi/requirements.txt tests/unit/requirements.txt
$(PROJECT_READY): tests/project/requirements.txt examples/project/requirements.txt
$(RELEASE_READY): tests/release/requirements.txt
$(MATRIX_READY): tests/matrix/requirements.txt
$(QUICKSTART_READY): SETUP := ansible-core and requests, 75 MB, once, about half a minute
$(ENVIRONMENTS): tests/ansible-core.txt
$(ENVIRONMENTS):
	@"$(PYTHON)" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' \
		|| { echo 'Python 3.11, 3.12 or 3.13 is needed. Select one with make PYTHON=...' >&2; exit 1; }
	@echo "Setting up $(@D) ($(SETUP))…"
	@"$(PYTHON)" -m venv --clear $(@D)
	@$(@D)/bin/python -m pip install -qq --disable-pip-version-check --requirement $<
	@touch $@
