# SPDX-License-Identifier: Apache-2.0
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
PYTHON := .venv/bin/python
export CARGO_TERM_QUIET ?= true
# The tests start `tare` some hundreds of times: it should be compiled once.
unexport PYTHONDONTWRITEBYTECODE

# The preload libraries cannot be compiled with the rest: see "Native rules" in CONTRIBUTING.md.
PRELOAD := --profile preload -p tare-hook-preload -p tare-link-preload -p tare-log-library
REST := --workspace --exclude tare-hook-preload --exclude tare-link-preload --exclude tare-log-library

.PHONY: help
help: ## list what can be made
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

.PHONY: demo
demo: native ## weigh the library-level hook on a real nginx and write a report
	@$(PYTHON) -m tare run plans/hook-nginx.toml

.PHONY: native
native: environment ## compile the native parts into python/tare/_native
	@$(PYTHON) hatch_build.py

.PHONY: environment
environment:
	@setup/install-packages $(or $(PACKAGES),demo)
	@test -x .venv/bin/uv || { python3 -m venv .venv && .venv/bin/python -m pip install --quiet uv; }
	@.venv/bin/uv sync --quiet --locked

.PHONY: wheel
wheel: environment ## build a wheel with the native parts inside into dist/
	@.venv/bin/uv build --quiet --wheel --out-dir dist
	@ls dist/*.whl

.PHONY: dist
dist: PACKAGES := aarch64
dist: environment ## a wheel for glibc 2.28, its native parts alone, libraries for aarch64, sums, in dist/
	@.venv/bin/uv sync --quiet --locked --group dist
	@folder=$$(setup/build-aarch64) || [ $$? = 3 ]; $(PYTHON) setup/dist.py $$folder
	@TARE_WHEEL=$$(echo dist/*.whl) .venv/bin/pytest --quiet tests/test_wheel.py

# qemu's counter is not the one that the collector reads, it knows nothing of memory that is wiped
# in the child of a fork, joins mappings that touch, and keeps 130 KB of each thread that ended: what
# tests of times, forks, sizes and churn are about. Virtual threads are of a later Java than Debian's.
NOT_IN_QEMU := fork or closes or child or rights or median or counter or sizes or short_threads or virtual

.PHONY: test-aarch64
test-aarch64: PACKAGES := aarch64
test-aarch64: native ## the libraries for aarch64, from C and Java, under qemu
	@folder=$$(setup/build-aarch64 java) || [ $$? = 3 ]; [[ $$folder ]] || exit 0; \
	export TARE_AARCH64=$$folder TARE_LOG_LIBRARY=$$folder/libtare_log.so; \
	.venv/bin/pytest --quiet tests/{hook,link}/test_aarch64.py; \
	.venv/bin/pytest --quiet -k "not ($(NOT_IN_QEMU))" tests/log/test_{programs,threads,handlers,kills}.py; \
	.venv/bin/pytest --quiet -k "payloads or same_words" tests/log/test_java.py

.PHONY: lint
lint: PACKAGES := test
lint: native ## formatters, linters, types, import layers, rules of native parts and pages
	@cargo fmt --all --check
	@cargo clippy --locked $(REST) --all-targets -- -D warnings
	@cargo clippy --locked $(PRELOAD) -- -D warnings
	@cargo clippy --locked --profile preload -p tare-hook-preload -p tare-link-preload --tests -- -D warnings
	@cargo clippy --locked --manifest-path fuzz/Cargo.toml -- -D warnings
	@cargo update --locked --workspace --quiet --manifest-path bench/log/calls/rust/Cargo.toml
	@.venv/bin/ruff check
	@.venv/bin/ruff format --check
	@.venv/bin/mypy
	@.venv/bin/lint-imports
	@.venv/bin/pytest --quiet tests/test_library_rules.py tests/test_user_pages.py
	@if command -v cargo-deny >/dev/null; then cargo deny check bans licenses sources; \
	else echo "licences of crates are not checked: cargo-deny is not installed" >&2; fi

.PHONY: audit
audit: environment ## look dependencies up in the databases of vulnerabilities, where they can be reached
	@setup/audit

.PHONY: test
test: PACKAGES := test
test: native hello busy ## tests that need no server beyond Debian's packages
	@cargo test --locked $(REST)
	@cargo test --locked --profile preload -p tare-hook-preload -p tare-link-preload
	@RUSTFLAGS='--cfg loom' CARGO_TARGET_DIR=target/loom cargo test --locked --release -p tare-shm -p tare-link-segment loom
	@.venv/bin/pytest -n 4 --dist worksteal -m 'not (integration or exhaustive)'

.PHONY: test-exhaustive
test-exhaustive: PACKAGES := test
test-exhaustive: native hello busy ## those with all variations, large inputs or many draws
	@.venv/bin/pytest -n 4 --dist worksteal -m 'exhaustive and not integration'

.PHONY: test-integration
test-integration: PACKAGES := guests
test-integration: native java hello shop ## importers on what the tools of others write, Kieker and OpenTelemetry, the shop through Jaeger, Kafka and Elasticsearch, guests, Spark and ClickHouse; brings them
	@setup/install-peers
	@setup/install-peers kieker opentelemetry zipkin kafka kafka3 elasticsearch
	@setup/install-peers jaeger jaeger-collector jaeger-ingester jaeger-query
	@.venv/bin/uv sync --quiet --locked --group engines
	@.venv/bin/pytest -m integration tests/peers tests/shop bench tests/engines tests/link tests/map
	@.venv/bin/pytest -m integration tests/lab -k "pod or a_guest_is_booted_for_each_condition or a_computed_guest"

.PHONY: test-guests
test-guests: PACKAGES := guests
test-guests: native ## virtual machines as environments; boots many
	@.venv/bin/pytest -m integration tests/lab -k "vm or uml"

.PHONY: hello
hello: services/hello/target/built ## compile services/hello, where there is a JDK and Maven

.PHONY: shop
shop: services/shop/target/built ## compile services/shop, where there is a JDK and Maven

# A file of its own shows what is new: the jar has the time that pom.xml gives it.
.SECONDEXPANSION:
services/%/target/built: $$(shell find services/$$*/pom.xml services/$$*/src -type f)
	@if command -v mvn >/dev/null && command -v javac >/dev/null; then \
	mvn -q -B -f services/$* package && touch $@; \
	else echo "services/$* is left out: it needs a JDK 17 and Maven" >&2; fi

.PHONY: java
java: environment ## compile what runs in a JVM, where there is a JDK and Maven
	@$(PYTHON) hatch_build.py java

.PHONY: busy
busy: native ## compile services/busy, a service with a known busy-wait and a known number of events
	@mkdir -p services/busy/target
	@cc -O2 -Wall -Wextra -Werror -Ipython/tare/_native/include \
	    -o services/busy/target/busy services/busy/busy.c python/tare/_native/lib/libtare_log.a

.PHONY: soak
soak: native ## the long series: fuzzing, kills, verdicts, A/A, the tests on a busy machine; written to docs/results.md
	@$(PYTHON) -m tests.soak

.PHONY: fuzz
fuzz: environment ## every fuzz target for a minute, where there is a nightly toolchain and cargo-fuzz
	@$(PYTHON) -m tests.soak fuzz --file-seconds 60 --mutations 0

.PHONY: asan
asan: native ## the preload libraries with AddressSanitizer in programs of the tests, where there is a nightly toolchain
	@$(PYTHON) -m tests.soak asan

.PHONY: miri
miri: ## memory that processes share, under Miri, where a nightly toolchain has it
	@if cargo +nightly miri --version >/dev/null 2>&1; then \
	PROPTEST_CASES=4 MIRIFLAGS=-Zmiri-disable-isolation \
	    cargo +nightly miri test --locked -p tare-shm -p tare-log-segment --lib; \
	else echo "left out: rustup component add miri rust-src --toolchain nightly" >&2; fi

.PHONY: bench
bench: PACKAGES := bench
bench: native java ## every bench, beside its peers; BENCH=quick for fewer repetitions
	@setup/install-peers oha k6 fortio benchstat otava kieker opentelemetry zipkin
	@$(PYTHON) -m bench

.PHONY: bench-hook
bench-hook: PACKAGES := test
bench-hook: native ## the hook beside plain calls and the published design
	@$(PYTHON) -m bench hook

.PHONY: bench-link
bench-link: PACKAGES := test
bench-link: native ## linked connections beside TCP, a Unix socket and a bare ring
	@$(PYTHON) -m bench link

.PHONY: bench-load
bench-load: PACKAGES := test
bench-load: native ## the load generator beside wrk and the open-loop generators that are there
	@setup/install-peers oha k6 fortio
	@$(PYTHON) -m bench load

.PHONY: bench-log
bench-log: PACKAGES := bench
bench-log: native java ## the log in every language beside what others use, on MooBench's experiment too, whose files MOOBENCH=FOLDER keeps
	@setup/install-peers kieker opentelemetry zipkin
	@$(PYTHON) -m bench log

.PHONY: bench-map
bench-map: PACKAGES := bench
bench-map: native ## what tare map costs and finds by each method; needs root and takes 45 minutes (BENCH=quick: 5)
	@$(PYTHON) -m bench map

.PHONY: bench-spans
bench-spans: PACKAGES := test
bench-spans: native ## the receiver of spans beside Jaeger and an OpenTelemetry Collector
	@setup/install-peers jaeger otelcol
	@$(PYTHON) -m bench spans

.PHONY: bench-verdict
bench-verdict: PACKAGES := test
bench-verdict: native ## verdicts beside those of others, on simulated experiments with seeds fixed
	@setup/install-peers benchstat otava
	@$(PYTHON) -m bench hard verdict

.PHONY: bench-scale
bench-scale: native ## how long comparisons of up to a billion requests take, and in how much memory
	@$(PYTHON) -m bench scale

.PHONY: clean
clean: ## remove what was built
	@rm -rf target dist .venv python/tare/_native services/*/target java/*/target fuzz/target
