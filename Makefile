# slipway. `make` alone prints this help.

GO      ?= go
# Linters and other tools have a go.mod of their own: the library's users need none of them.
TOOL     = $(GO) tool -modfile=$(CURDIR)/tools/go.mod
# The modules that contain code. A target that runs in each of them writes: $(EACH) command; done. All tests are in the first
# module, also those of slipway-devserver-s3, so `go test ./...` runs every test.
MODULES  = . cmd/slipway-devserver-s3
EACH     = @set -e; for module in $(MODULES); do cd $(CURDIR)/$$module; echo "in $$module:";
# The last lines of a run name what was skipped, and why.
TESTSUM  = $(TOOL) gotestsum --format $(FORMAT) --format-hide-empty-pkg --hide-summary skipped \
	--jsonfile bin/tests.json --post-run-command '$(GO) run ./test/skipped' --
# Stripped, with the version and the commit of the checkout, where git knows them (worker --version).
VCS     := $(if $(shell git rev-parse HEAD 2>/dev/null),true,false)
BUILD    = $(GO) build -trimpath -buildvcs=$(VCS) -ldflags='-s -w' -o $(CURDIR)/bin/
FORMAT  ?= pkgname
PKGS    ?= ./...
FUZZTIME ?= 200000x
COUNT   ?= 1
CHAOS_JOBS ?= 150
ROUNDS  ?= 10
BURNERS ?= 4

.DEFAULT_GOAL := help

.PHONY: help
help: ## print the targets
	@awk 'BEGIN {FS = ":.*## "; print "make <target>\n"} /^[a-z0-9-]+:.*## / {printf "  %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# The first target of a new clone makes the folder.
bin:
	@echo "compiling (minutes, if the Go cache is empty)"
	@mkdir -p bin

# Without the S3 gateway: worker run needs none, and it is more than a quarter of what there is to compile. The demo compiles
# it after the job, for worker dev.
.PHONY: demo
demo: programs ## run one job from start to end on this machine, live on the terminal
	@test/demo

.PHONY: build
build: programs gateway ## build bin/worker, bin/submit, and the servers of worker dev and run

.PHONY: programs
programs: bin
	$(BUILD) ./cmd/worker ./cmd/submit ./cmd/slipway-devserver-nats

.PHONY: gateway
gateway: bin
	cd cmd/slipway-devserver-s3 && $(BUILD) .

.PHONY: test
test: bin ## every test but the end-to-end ones; what can't run here is named in the last lines
	@SLIPWAY_TEST_ENGINE=1 SLIPWAY_CHAOS_JOBS=$(CHAOS_JOBS) $(TESTSUM) -count=$(COUNT) $(if $(RACE),-race) -timeout 15m $(PKGS)

.PHONY: test-race
test-race: ## the same under the race detector
	@$(MAKE) --no-print-directory test RACE=1

.PHONY: e2e
e2e: build ## whole jobs through the binaries, on real Docker, NATS and S3
	@SLIPWAY_TEST_ENGINE=1 SLIPWAY_TEST_E2E=1 $(TESTSUM) -count=1 -timeout 30m ./test/e2e/...

.PHONY: cases
cases: build ## inputs on which other systems went wrong in public, and what comes of each
	@SLIPWAY_TEST_ENGINE=1 SLIPWAY_TEST_E2E=1 $(GO) test -count=1 -v -timeout 15m -run TestPublicCases ./test/e2e

.PHONY: lint
lint: ## linters, and the arrows between packages
	$(EACH) $(TOOL) golangci-lint run --allow-parallel-runners --config $(CURDIR)/.golangci.yml ./...; done

.PHONY: vet
vet: ## build and vet for every platform that is promised
	$(EACH) GOOS=linux GOARCH=amd64 $(GO) build -o /dev/null ./...; done
	$(EACH) GOOS=linux GOARCH=arm64 $(GO) build -o /dev/null ./...; done
	$(EACH) GOOS=darwin GOARCH=arm64 $(GO) vet ./...; done
	$(EACH) GOOS=windows GOARCH=amd64 $(GO) vet ./...; done

.PHONY: leftovers
leftovers: bin ## kill workers and a private engine, and make trees too deep for one: is anything left on an engine (root, dockerd)?
	@SLIPWAY_TEST_ENGINE=1 SLIPWAY_TEST_LONG=1 $(TESTSUM) -count=1 -timeout 45m -run 'Killed|Leftover|RemoveDeep' ./test/leftovers ./container/docker

.PHONY: deps
deps: build ## what slipway costs: sizes, modules, lines of go.mod; fails over a bound (test/deps)
	@$(GO) run ./test/deps

.PHONY: fuzz
fuzz: ## each fuzz test on FUZZTIME inputs (default 200000x)
	@test/fuzz $(FUZZTIME)

.PHONY: bench
bench: ## what slipway costs beside the raw parts: medians and ratios, interleaved
	@SLIPWAY_TEST_ENGINE=1 $(GO) run ./test/bench

.PHONY: bench-queue
bench-queue: ## what the queue costs where it grows with jobs and workers, beside the old ways (minutes; no engine)
	@$(GO) run ./test/bench/queue

.PHONY: stress
stress: ## PKGS ROUNDS times beside BURNERS threads that burn the CPU: a test that needs a quiet machine fails here
	@SLIPWAY_TEST_ENGINE=1 SLIPWAY_CHAOS_JOBS=$(CHAOS_JOBS) $(GO) run ./test/stress -rounds $(ROUNDS) -burners $(BURNERS) $(PKGS)

.PHONY: mutate
mutate: ## change PKGS in one place at a time and print what no test notices (MUTATE="-sample 50 -v", or -h)
	@$(if $(filter ./...,$(PKGS)),$(error say which package, for example: make mutate PKGS=./runner MUTATE="-sample 50"))
	@rc=0; for p in $$($(GO) list $(PKGS)); do $(GO) run ./test/mutate $(MUTATE) $$p || rc=$$?; done; exit $$rc

.PHONY: cover
cover: bin ## test coverage, in coverage.out
	@SLIPWAY_TEST_ENGINE=1 $(TESTSUM) -coverprofile=coverage.out -coverpkg=./... ./...
	$(GO) tool cover -func=coverage.out | tail -1

.PHONY: up
up: ## NATS, an S3 gateway, a worker and Prometheus, by compose
	@test/compose up

.PHONY: down
down: ## end what `make up` started, and remove its data
	@test/compose down

.PHONY: generate
generate: ## rebuild what is generated: supervisor binaries, JSON Schema, tables of docs/job.md
	$(GO) generate ./...
	$(GO) run ./container/supervisor/generate

.PHONY: check
check: ## prove that what is generated matches its sources, and go.mod files the imports
	$(GO) run ./container/supervisor/generate -check
	$(GO) test -run 'TestSchema' ./job
	$(EACH) $(GO) mod tidy -diff; done
