# Muster. `make help` lists the targets.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

GO ?= go
BIN := $(CURDIR)/bin

VERSION := $(shell awk '$$1 == "appVersion:" {print $$2}' charts/muster/Chart.yaml)

# The embedded control plane reports the Kubernetes version that is linked in here.
KUBE_VERSION := $(shell awk '$$1 == "k8s.io/kubernetes" {print $$2}' local/go.mod)
KUBE_MINOR := $(word 2,$(subst ., ,$(KUBE_VERSION)))
KUBE_LDFLAGS := -s -w -X main.version=$(VERSION) -X github.com/musterhq/muster/cmd/muster/command.version=$(VERSION) \
	$(foreach p,k8s.io/component-base/version k8s.io/client-go/pkg/version,\
	-X $(p).gitVersion=$(KUBE_VERSION) -X $(p).gitMajor=1 -X $(p).gitMinor=$(KUBE_MINOR) -X $(p).gitTreeState=clean -X $(p).gitCommit=)

# Tools are pinned in tools/go.mod.
TOOL := $(GO) tool -modfile=$(CURDIR)/tools/go.mod
PACKAGES := ./...

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: muster operator agent local ## Build bin/muster, bin/muster-operator, bin/muster-agent and bin/muster-local

.PHONY: go
go:
	@command -v $(GO) >/dev/null || { echo "muster needs Go $$(awk '$$1 == "go" {print $$2}' go.mod) or newer: see https://go.dev/dl, then run make again" >&2; exit 1; }

.PHONY: muster
muster: go ## Build bin/muster alone, the command line
	@$(call build,., ./cmd/muster,muster,the command line,$(KUBE_LDFLAGS))
	@ln -sf muster $(BIN)/kubectl-muster

.PHONY: operator
operator: go
	@$(call build,., ./cmd/muster-operator,muster-operator,the operator,$(KUBE_LDFLAGS))

.PHONY: agent
agent: go
	@export CGO_ENABLED=0; $(call build,., ./cmd/muster-agent,muster-agent,the agent,-s -w)

.PHONY: local
local: go
	@$(call build,local, ./cmd/muster-local,muster-local,the embedded Kubernetes (the first time this takes 5 to 12 minutes on two cores),$(KUBE_LDFLAGS))

.PHONY: node
node: go
	@$(call build,local, ./cmd/muster-node,muster-node,the kubelet,$(KUBE_LDFLAGS))
	@$(call build,test/node/coredns, .,coredns,CoreDNS,-s -w)

# build MODULE PACKAGE BINARY WHAT LDFLAGS: prints what is built and, every hundred packages, its progress. Lines that
# name no package are the compiler's messages.
define build
	echo "building $(4)"; \
	cd $(1) && $(GO) build -v -ldflags '$(5)' -o $(BIN)/$(3) $(2) 2>&1 | \
	awk '/^[^ :#]+(\/[^ :]+)*$$/ {if (++n % 100 == 0) {print "  " n " packages compiled"; fflush()} next} {print; fflush()}'
endef

# Helm in the version that the tests of the chart use as a library, as a Go tool in Go's cache.
.PHONY: helm
helm: go
	@mkdir -p $(BIN)
	@helm=$$(cd test/chart && $(GO) tool -n helm) && ln -sf "$$helm" $(BIN)/helm

# Programs of the image must not need shared libraries.
.PHONY: image
image: go ## Build the operator's image without a daemon, as bin/image.tar
	@mkdir -p $(BIN)/image
	@export CGO_ENABLED=0; $(foreach p,muster-operator muster-agent muster,$(call build,., ./cmd/$(p),image/$(p),$(p) for the image,$(KUBE_LDFLAGS)) &&) true
	@cd tools && $(GO) run ./image -most 60 muster-operator:$(VERSION) $(BIN)/image.tar $(foreach p,muster-operator muster-agent muster,$(BIN)/image/$(p))

.PHONY: bundle
bundle: go ## Write the chart as one file for kubectl, as bin/muster.yaml
	@mkdir -p $(BIN)
	@cd test/chart && $(GO) run ./bundle ../../charts/muster $(BIN)/muster.yaml

.PHONY: demo
demo: build ## Start a cluster, run the examples on it and stop it: under two minutes after the build
	@$(BIN)/muster demo

# RACE=-race builds the tests that `make race` runs with the race detector, instead of running them a second time.
RACE :=

.PHONY: test
test: build units ## Run all tests, those on the embedded control plane included
	@# These mostly wait: for clusters to start and for timeouts.
	@$(MAKE) --no-print-directory -j 3 scenarios modules $(if $(RACE),race-scenarios)

# Tests of the main module that need a cluster but no containers. With RACE, race-scenarios runs some of them instead.
.PHONY: scenarios
scenarios:
	$(GO) test -timeout 20m -p 3 -parallel 8 $$($(GO) list ./test/... | grep -v -e '/test/node$$' $(if $(RACE),-e '/test/scenario$$'))

.PHONY: modules
modules:
	cd test/chart && $(GO) test -timeout 30m ./...
	cd test/alerts && $(GO) test ./...
	cd local && $(GO) test -timeout 20m ./... && $(GO) test -count=1 -timeout 20m ./internal/rules
	cd tools && $(GO) test -timeout 20m ./...
	@if command -v python3 >/dev/null; then python3 -m unittest discover -s python; \
	else echo "python's tests are left out: there is no python3 on this machine"; fi

# WORLDS is how many random worlds the rest property of the engine plays; the tests of `make test` play 2,000.
WORLDS := 100000

.PHONY: long
long: go ## Run what takes too long for make test: the engine comes to rest in 100,000 random worlds
	$(GO) test -count=1 -timeout 0 -run '^TestEngineComesToRest$$' ./internal/engine -worlds $(WORLDS)

.PHONY: test-node
test-node: build node image bundle helm ## Run the tests that need real containers, as root on Debian: kubelet, containerd, runc
	$(GO) test -count=1 -v -parallel 8 -timeout 10m ./test/node

.PHONY: units
units: build ## Run the tests of the main module outside of test/
	$(GO) test $(RACE) -timeout 40m $$($(GO) list $(PACKAGES) | grep -v /test/)

.PHONY: race
race: RACE := -race
race: units race-operator ## Run the main module's tests, and the operator, with the race detector

# Most of what test/ tests runs in other processes, so these tests use an operator built with the race detector, which
# writes its reports to files.
.PHONY: race-operator
race-operator: build race-scenarios ## Run scenarios with an operator that has the race detector

.PHONY: race-scenarios
race-scenarios:
	@rm -rf $(BIN)/race && mkdir -p $(BIN)/race
	$(GO) build -race -ldflags '$(KUBE_LDFLAGS)' -o $(BIN)/race/muster-operator ./cmd/muster-operator
	@ln -s ../muster-agent $(BIN)/race/
	failed=0; \
	MUSTER_TEST_OPERATOR=$(BIN)/race/muster-operator GORACE=log_path=$(BIN)/race/report $(GO) test -count=1 -timeout 20m -parallel 8 ./test/scenario || failed=$$?; \
	if ls $(BIN)/race/report.* >/dev/null 2>&1; then cat $(BIN)/race/report.*; failed=1; fi; \
	exit $$failed

# LOG is a decision log of an operator of this version.
LOG :=

.PHONY: scene
scene: go ## Write a decision log as a scene of the engine: LOG=decisions.log
	@test -f "$(LOG)" || { echo "give the decision log: make scene LOG=decisions.log" >&2; exit 1; }
	$(GO) test -count=1 -v -run '^TestSceneFromLog$$' ./internal/engine -log $(abspath $(LOG))

# SEED is that of the first round, DURATION how long each round disturbs the world; it then takes minutes to settle.
SEED := 1
ROUNDS := 3
DURATION := 2m

.PHONY: soak
soak: build ## Disturb Muster at random and demand that it settles: SEED=1 ROUNDS=3 DURATION=2m
	@mkdir -p $(BIN)/soak
	$(GO) test -count=1 -v -timeout 0 ./test/soak -seed $(SEED) -rounds $(ROUNDS) -duration $(DURATION) -artifacts -outputdir $(BIN)/soak

.PHONY: bench
bench: build ## Measure: figures beside a floor of the same run, as in docs/develop/performance.md
	$(GO) test -run '^$$' -bench . -benchmem ./internal/engine/... ./internal/jobs/latticejob/compile
	$(GO) test -count=1 -v -p 1 -tags bench -timeout 40m -run TestReconcileTime ./internal/jobs/controller
	$(GO) test -count=1 -v -p 1 -tags bench -timeout 40m ./test/bench/...
	$(GO) test -count=1 -v -tags bench -timeout 40m -run TestLostRaces ./test/scenario/placement

# TRACES is a folder with logs of real clusters, which are no part of this project.
TRACES := ../shared/traces

.PHONY: bench-traces
bench-traces: go ## Play logs of real clusters and measure how long jobs wait: TRACES=FOLDER, under a minute
	$(GO) test -count=1 -v -tags bench -timeout 10m -run '^TestTraces$$' ./test/bench/traces -traces $(abspath $(TRACES))

# PEERS is a folder with the source of Volcano in PEERS/volcano, which is no part of this project.
PEERS :=

.PHONY: test-peers
test-peers: build ## Play the same gangs with Muster and with Volcano: PEERS=FOLDER, with Volcano's source in FOLDER/volcano
	@test -d "$(PEERS)/volcano" || { echo "give the folder that holds Volcano's source: make test-peers PEERS=FOLDER, for FOLDER/volcano" >&2; exit 1; }
	@mkdir -p $(BIN)/peers
	cd $(abspath $(PEERS))/volcano && $(GO) build -o $(BIN)/peers/ ./cmd/scheduler ./cmd/controller-manager
	$(GO) test -count=1 -v -tags peers -timeout 60m ./test/bench/peers -args -volcano $(abspath $(PEERS))/volcano

.PHONY: lint
lint: go ## Check formatting, go vet and staticcheck
	@unformatted=$$(gofmt -l api charts cmd internal test local tools examples); \
	if [ -n "$$unformatted" ]; then echo "not formatted (run gofmt -w): $$unformatted" >&2; exit 1; fi
	$(GO) vet $(PACKAGES)
	$(TOOL) staticcheck $(PACKAGES)
	cd tools && $(GO) vet ./... && $(TOOL) staticcheck ./...
	cd test/chart && $(GO) vet ./... && $(TOOL) staticcheck ./...
	cd test/alerts && $(GO) vet ./...
	cd local && $(GO) vet ./...
	cd test/node/coredns && $(GO) vet ./...
	@# Packages that link Kubernetes or Prometheus are only vetted: staticcheck would analyse all of these with them.
	cd local && $(TOOL) staticcheck $$($(GO) list -f '{{.ImportPath}} {{join .Deps " "}}' ./... | awk '!/k8s.io\/kubernetes\// {print $$1}')

.PHONY: generate
generate: go ## Generate deepcopy functions and CRDs from the API types, the operator's rights, and docs/reference/validation.md
	$(GO) generate ./api/... ./charts ./test/validation

.PHONY: clean
clean: ## Remove what was built
	rm -rf $(BIN)
