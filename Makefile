# What a person types. Each target installs what it needs and is missing, and says so.

# Further words for `namecast demo`, as in: make demo ARGS="--port 9000 --input film.mp4"
ARGS ?=
# What `make bench` measures.
BENCH ?= stream sim
# How long `make fuzz-all` runs, in minutes: each target gets an equal share.
MINUTES ?= 60

# The quickest build that plays live video: without the laboratory, WebRTC and link-time optimisation.
DEMO := --locked --profile demo --package namecast-cli --bin namecast --no-default-features
NAMECAST := cargo run --quiet --locked --release --package namecast-cli --bin namecast --

.PHONY: help demo page build package test check fix bench interop fuzz-all

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' Makefile

demo: page ## Build what it takes, start a node with live test video, print the page's address
	@echo "[build] the program"
	@cargo build $(DEMO)
	@cargo run --quiet $(DEMO) -- demo $(ARGS)

page:
	@scripts/install.sh demo
	@echo "[build] the page: its core as WebAssembly, and the bundle"
	@cargo xtask web

build: page ## Build the page and the optimised binary
	@echo "[build] the optimised binary"
	@cargo build --locked --release --package namecast-cli

package: build ## Make a Debian package and an archive of the optimised binary, for machines without a compiler
	@packaging/package.sh

test: ## Everything that decides: format, lint, unit, scenario, page, browser, interop
	@scripts/install.sh test
	@scripts/test.sh

check: ## Format, lint, house rules, and what dependencies bring along
	@scripts/test.sh format tidy lint deny

fix: ## Format, apply what the linter can mend by itself
	@cargo fmt --all
	@cargo clippy --workspace --all-targets --fix --allow-dirty --allow-staged

interop: ## The forwarder and its commands after kill -9, and against python-ndn, NDNts and ndnd, which are fetched
	@interop/run.sh

bench: ## Measure, as ratios to a raw limit taken in the same run
	@for part in $(BENCH); do $(NAMECAST) bench $$part || exit 1; done

fuzz-all: ## Fuzz all parsers in turn, for MINUTES together, and say which failed
	@$(MAKE) --no-print-directory -C fuzz round-robin MINUTES=$(MINUTES)
