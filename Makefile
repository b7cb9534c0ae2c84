# SPDX-License-Identifier: Apache-2.0
SHELL := /bin/bash -o pipefail
.DEFAULT_GOAL := help
UV := .venv/bin/uv

.PHONY: help
help: ## what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

.PHONY: setup
setup: ## install what is missing: system packages, the Python environment, the native parts
	@./install-packages
	@$(MAKE) --no-print-directory .venv native

.PHONY: .venv
.venv:
	@test -x $(UV) || { python3 -m venv .venv && .venv/bin/pip install --quiet uv; }
	@$(UV) sync --quiet --locked

.PHONY: native
native: .venv ## compile the native parts into python/tare/_native
	@.venv/bin/python hatch_build.py
