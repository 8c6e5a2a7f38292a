# Everything a developer or CI runs. `make` lists the targets.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# go.mod names the toolchain; an older Go fetches it, wherever GOTOOLCHAIN=local is the default.
export GOTOOLCHAIN := auto
# All is compiled as a release is, and once for all: a checkout elsewhere finds what another has compiled. The tag leaves out pages of
# gRPC's for debugging, and what they draw in.
export GOFLAGS := $(GOFLAGS) -trimpath -tags=grpcnotrace
# Tools that .ci/install-tools puts here, Envoy among them, come before the machine's.
export PATH := $(CURDIR)/.tools/bin:$(PATH)

# For example: make demo DEMOFLAGS='--listen 127.0.0.1:9000', make test PKG=./ratelimit/..., make fuzz FUZZTIME=1m
DEMOFLAGS ?=
BENCHFLAGS ?=
COMPAREFLAGS ?=
BENCHSTAT := go run golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da
TESTFLAGS ?=
MUTANTSFLAGS ?=
PKG ?= ./...
# The packages that take longest. Of all packages they come first: go test keeps the order it is given, and the last would run alone.
LONG := $(if $(filter ./...,$(PKG)),./test/deploy ./test/envoy ./test/parity ./test/browser ./test/spend)
# What `make race` runs, under a race detector that makes a test take three to four times as long: the suites that have callers at once, and
# of these folders the packages, or tests of packages, whose goroutines share state.
SHARING = $(shell grep -rlE '"sync(/atomic)?"|\bgo func|[.]Go\b' --include=*.go gateway ratelimit policies/ledger policies/compiler policies/policyinput policies/catalog | xargs -n1 dirname | sort -u)
RACED = $(or $(filter-out ./...,$(PKG)),./test/spend $(addprefix ./,$(SHARING)) ./test/limits/... ./test/runs ./test/hostile)
# Vet is of `make check`, with the linters. GOGC saves a fifth of what compilers take, and a seventh of what tests take. Half of a suite is
# waiting: more packages run at once than there are processors.
GOTEST := GOGC=400 go test -vet=off -p $(shell echo $$(($$(getconf _NPROCESSORS_ONLN) + 1)))
FUZZTIME ?= 10s
SOAK ?= 5m
BENCH ?= .
EXAMPLES ?= 25
BIN ?= bin/tollgate
IMAGE ?= tollgate:$(VERSION)
# What `tollgate version` prints, logs and traces carry, and the platform sees in User-Agent.
VERSION ?= $(or $(shell git describe --tags --always --dirty 2> /dev/null),dev)
# The order of tests is another with each commit, and the same for all who test one: on, or a number.
SHUFFLE ?= $(or $(shell git log -1 --format=%ct 2> /dev/null),on)

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  \033[1m%-16s\033[0m %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: build ## Build, and run everything on loopback with sample keys and a week of history (DEMOFLAGS)
	@exec bin/tollgate demo --history $(DEMOFLAGS)

.PHONY: build
build: ## Build bin/tollgate, stamped with its version (BIN, VERSION)
	@[[ -x $(BIN) ]] || echo 'Compiling $(BIN): the first time, with all dependencies, takes a few minutes; later builds take seconds.'
	@go build -ldflags '-s -w -X main.stamp=$(VERSION)' -o $(BIN) ./cmd/tollgate

.PHONY: image
image: ## Build the image, stamped and labelled with its version (IMAGE, VERSION), by docker or what DOCKER names
	@$(or $(DOCKER),docker) build -f deploy/Dockerfile --build-arg VERSION=$(VERSION) --build-arg REVISION=$$(git rev-parse HEAD) -t $(IMAGE) .

.PHONY: tools
tools: ## Install what tests and linters need: Redis, Envoy, Chromium, promtool, golangci-lint, gofumpt
	@.ci/install-tools

.PHONY: test
test: export TOLLGATE_REQUIRE_REDIS=1 TOLLGATE_REQUIRE_ENVOY=1 TOLLGATE_REQUIRE_CHROMIUM=1 TOLLGATE_REQUIRE_CURL=1 TOLLGATE_REQUIRE_PROMTOOL=1 TOLLGATE_REQUIRE_KUBERNETES_SCHEMAS=1 TOLLGATE_REQUIRE_PYTHON=1 TOLLGATE_REQUIRE_OIDC_PROVIDER=1
test: ## Run all tests with a real Redis, Envoy and browser (PKG, TESTFLAGS)
	@.ci/install-tools redis envoy chromium axe curl promtool kubernetes-schemas oidc-provider
	@$(GOTEST) -shuffle=$(SHUFFLE) -timeout 20m $(TESTFLAGS) $(LONG) $(PKG)

.PHONY: race
race: ## Run the concurrent tests with the race detector and a real Redis, without the long ones (PKG, TESTFLAGS)
	@.ci/install-tools redis
	@TOLLGATE_REQUIRE_REDIS=1 $(GOTEST) -race $(if $(filter ./...,$(PKG)),-short) -shuffle=$(SHUFFLE) -timeout 20m $(TESTFLAGS) $(RACED)

.PHONY: quick
quick: ## Run what a bare machine can in a few minutes: nothing installed, no Envoy, browser or load (PKG, TESTFLAGS)
	@$(GOTEST) -short $(TESTFLAGS) $(LONG) $(PKG)

.PHONY: check
check: vet lint clean-generated ## Everything CI refuses a change for, but the tests

.PHONY: fmt
fmt: ## Format the code
	@.ci/install-tools lint
	@golangci-lint fmt

.PHONY: vet
vet: ## go vet, and go.mod without loose ends
	@go vet ./...
	@go mod verify > /dev/null

.PHONY: lint
lint: ## Formatting, linters and the layering of the packages
	@.ci/install-tools lint
	@golangci-lint run --timeout 15m --allow-parallel-runners
	@golangci-lint fmt --diff

.PHONY: generate
generate: ## Run go generate
	@go generate ./...

.PHONY: vendor-reference
vendor-reference: ## Fetch the viewers of the reference at /docs from npm, in the versions .ci/vendor-reference names
	@.ci/vendor-reference

.PHONY: golden
golden: ## Rewrite golden files; look at the diff before you commit it
	@grep -rlE 'flag\.Bool\("update"' --include='*_test.go' --exclude-dir=.tools . | xargs -n1 dirname | sort -u | \
		while read -r dir; do go test "$$dir" -update; done

.PHONY: clean-generated
clean-generated: ## Fail when generated or golden files are not what the code makes
	@before=$$(git status --porcelain; git diff | git hash-object --stdin); \
		$(MAKE) --no-print-directory generate golden > /dev/null; \
		after=$$(git status --porcelain; git diff | git hash-object --stdin); \
		if [[ $$before != "$$after" ]]; then \
			echo 'generated files are stale: run make generate golden, and commit what changes'; git status --short; exit 1; fi

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME each, 10 s by default
	@grep -rnoE '^func Fuzz[A-Za-z0-9_]+' --include='*_test.go' --exclude-dir=.tools $(patsubst %/...,%,$(PKG)) | sort | \
		while IFS=: read -r file _ func; do \
			echo "== $$(dirname "$$file") $${func#func }"; \
			go test -run '^$$' -fuzz "^$${func#func }\$$" -fuzztime $(FUZZTIME) "$$(dirname "./$${file#./}")" < /dev/null; done

.PHONY: mutants
mutants: ## Break promises of the code, one at a time, and print those that no test notices (test/mutants, MUTANTSFLAGS)
	@.ci/install-tools redis
	@TOLLGATE_REQUIRE_REDIS=1 go run ./test/mutants $(MUTANTSFLAGS)

.PHONY: contract
contract: ## What we believe of the platform, on the emulator; on a real one with TOLLGATE_CONTRACT_* set (see test/contract/doc.go)
	@go test -count=1 ./test/contract

.PHONY: clients
clients: ## Drive public client programs, unmodified, through the gateway over the emulator (TESTFLAGS)
	@.ci/install-tools clients
	@TOLLGATE_REQUIRE_CLIENTS=1 go test -count=1 $(TESTFLAGS) ./test/clients

.PHONY: schemathesis
schemathesis: build ## Hold the emulator against the API description with generated requests (EXAMPLES, 25 each)
	@.ci/install-tools schemathesis
	@test/contract/schemathesis $(EXAMPLES)

# Not part of make test: Helm takes minutes to build when it is not there yet.
.PHONY: deploy-check
deploy-check: ## Hold the Helm chart against its manifests, and the release against its promises (TESTFLAGS)
	@.ci/install-tools redis envoy promtool kubernetes-schemas helm release
	@TOLLGATE_REQUIRE_REDIS_SERVER=1 TOLLGATE_REQUIRE_ENVOY=1 TOLLGATE_REQUIRE_PROMTOOL=1 TOLLGATE_REQUIRE_KUBERNETES_SCHEMAS=1 \
		TOLLGATE_REQUIRE_HELM=1 TOLLGATE_REQUIRE_NFPM=1 TOLLGATE_REQUIRE_MINISIGN=1 go test -count=1 $(TESTFLAGS) ./test/deploy

.PHONY: release
release: ## Build a release into dist: VERSION=v1.2.3, signed with MINISIGN_KEY=file (docs/operations.md)
	@.ci/install-tools release
	@deploy/release/vulnerabilities
	@VERSION=$(VERSION) deploy/release/build

.PHONY: soak
soak: ## Run the gateway under mixed load for SOAK, and fail on what grows (test/soak); repeat races at length
	@.ci/install-tools redis
	@TOLLGATE_REQUIRE_REDIS=1 go test -count=1 -timeout 0 -run '^TestTheLastSlot$$' ./test/spend -long
	@TOLLGATE_REQUIRE_REDIS=1 go test -count=1 -v -timeout 0 -run '^TestSoak$$' ./test/soak -for $(SOAK)

.PHONY: bench
bench: build ## What the gateway costs beside a bare proxy and Envoy, into bench.json (BENCHFLAGS; docs/benchmarks.md)
	@.ci/install-tools redis envoy
	@go run ./test/bench $(BENCHFLAGS)
	@[[ -n "$(BENCHFLAGS)" ]] || $(MAKE) --no-print-directory bench-growth

# TestListsCost, TestKeysCost, TestReloadCost, TestPassCost, TestCreateCost and TestTripsToRedis hold what does not move with load: allocations, commands and exchanges.
.PHONY: bench-growth
bench-growth: ## What lists, keys, pages, reloads, creates and passes over the ledger cost as they grow (docs/capacity.md)
	@.ci/install-tools redis
	@go test -run '^$$' -bench '^Benchmark(Lists|ListsAtOnce|MakeKey|ReloadOrg)$$' -benchmem -timeout 0 ./gateway
	@go test -run '^$$' -bench '^BenchmarkPages$$' ./gateway/ui
	@go test -run '^$$' -bench '^BenchmarkReloadAll$$' -benchtime 10x -benchmem ./gateway
	@go test -run '^$$' -bench '^Benchmark(Start|Reload)$$' -benchmem ./policies
	@go test -run '^$$' -bench '^Benchmark(Pass|CreateInRedis)$$' -benchmem ./policies/ledger/redisstore

.PHONY: compare
compare: build ## The same calls by tollgate, Envoy with OPA and ratelimit, and LiteLLM, into compare.json (COMPAREFLAGS; docs/comparison.md)
	@.ci/install-tools redis envoy rivals
	@go run ./test/bench -json compare.json -idle 0 -streams 0 -time 1s -connections 8 -targets budgets,exact,cold,envoy,rival,rival-library,litellm \
		-kinds read,create,create-401,create-403,create-429,chat $(COMPAREFLAGS)

# Ratios to the bare proxy, not figures: two runs have not had the same machine.
.PHONY: bench-compare
bench-compare: ## What differs beyond noise between two runs, OLD=file NEW=file, or between the binaries of one, OLD=file
	@old=$$(mktemp); new=$$(mktemp); trap 'rm -f "$$old" "$$new"' EXIT; \
		units='.unit:(x-proxy-cpu OR redis-cpu-sec/op OR p50-sec OR p99-sec OR ready-sec OR idle-B OR loaded-B OR B/connection)'; \
		go run ./test/bench -text "$(OLD)" > "$$old"; \
		if [[ -n "$(NEW)" ]]; then \
			go run ./test/bench -text "$(NEW)" > "$$new"; $(BENCHSTAT) -filter "$$units" "$(OLD)=$$old" "$(NEW)=$$new"; \
		else $(BENCHSTAT) -filter "$$units /binary:/./" -col /binary "$$old"; fi

.PHONY: simulate
simulate: ## Quotas of 50 gateways in three regions, in virtual time, into docs/regions.svg
	@go test -count=1 -timeout 30m -v ./test/simulate -write

.PHONY: microbench
microbench: ## Run the benchmarks beside the code (BENCH, PKG)
	@go test -run '^$$' -bench '$(BENCH)' -benchmem $(PKG)

.PHONY: cover
cover: ## Statement coverage by package, and of the whole
	@mkdir -p .tools
	@go test -coverpkg=./... -coverprofile=.tools/cover.out $(PKG) > /dev/null
	@go tool cover -func=.tools/cover.out | awk '/^total/ {print; next} {split($$1, f, ":"); sub("/[^/]*$$", "", f[1]); \
		gsub("%", "", $$3); n[f[1]]++; s[f[1]] += $$3} END {for (p in n) printf "%-70s %5.1f%%\n", p, s[p]/n[p]}' | sort

.PHONY: vuln
vuln: ## Known vulnerabilities in what we import (asks the Go vulnerability database)
	@go run golang.org/x/vuln/cmd/govulncheck@v1.9.0 ./...

.PHONY: clean
clean: ## Remove what was built; installed tools stay
	@rm -rf bin
