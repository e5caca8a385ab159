# `make` alone lists the targets. Programs go to bin/, tools to bin/tools/, releases to dist/.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules

GO ?= go
MODULE := github.com/holdfast-jobs/holdfast
TOOLS := bin/tools
PROTO := plugin/proto/handler.proto
# The example plugin is built if it is part of the checkout.
EXAMPLES := $(dir $(wildcard examples/handlers/echo/main.go))

.PHONY: help
help: ## List the targets
	@awk 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build bin/orchestrator, bin/handlers and the example bin/echo
	$(GO) build -trimpath -o bin/ ./cmd/... $(EXAMPLES:%=./%)

.PHONY: compile
compile: ## Compile every package for Linux and macOS, and link the programs for macOS
	# go build ./... would link every program of the tests as well.
	$(GO) list -export ./... >/dev/null
	GOOS=darwin $(GO) list -export ./... >/dev/null
	GOOS=darwin $(GO) build -o bin/darwin/ ./cmd/...

.PHONY: sdks
sdks: ## Pack the SDKs for Python and Node.js into bin/, for pip and npm
	$(GO) run ./sdk/pack bin

.PHONY: run
run: build ## Build, then serve with config.yaml
	bin/orchestrator serve --config config.yaml

# make test POSTGRES=16 tests on that major version of PostgreSQL.
ifdef POSTGRES
export PATH := /usr/lib/postgresql/$(POSTGRES)/bin:$(PATH)
endif

# By default, the race detector sleeps for a second at the exit of every process, to wait
# for other goroutines. The tests leave none behind.
RACE = GORACE="$${GORACE:-} atexit_sleep_ms=0"
# The packages that take the longest start first, and those that mostly wait are spread among
# those that compute: what is left at the end should be short.
SLOWEST = ./test/e2e ./plugin/host ./cmd/orchestrator ./test/webhooks ./store ./store/embedded ./runtime \
	./test/failover ./test/replica ./test/pooler ./test/cells ./plugin/conformance ./test/languages ./test/gates ./test/followups ./test/retention ./test/schedules
# LONG=1 adds the tests that take minutes each.
LONG ?=

.PHONY: test
test: ## Run the tests with the race detector; LONG=1 adds those that take minutes
	scripts/need.sh gcc postgres$(POSTGRES:%=-%)
	scripts/need.sh pgbouncer-1.21 || echo 'tests do without PgBouncer' >&2
	scripts/need.sh nginx haproxy || echo 'tests do without nginx or HAProxy' >&2
	# make lint runs what go vet does.
	$(RACE) $(GO) test -race -vet=off $(if $(LONG),,-short) -timeout 60m $(SLOWEST) ./...

.PHONY: test-roles
test-roles: ## Run the end-to-end tests with three processes, one for each role, in the place of each orchestrator
	scripts/need.sh gcc postgres
	HOLDFAST_TEST_ROLES=apart $(RACE) $(GO) test -race -vet=off -count=1 -timeout 40m ./test/e2e

.PHONY: test-root
test-root: ## Run the tests that need root: other users, cgroups
	@[ "$$(id -u)" = 0 ] || { echo 'make test-root is for root; others run make test' >&2; exit 1; }
	scripts/need.sh gcc postgres
	arguments=$$(scripts/root-tests.sh) && $(RACE) $(GO) test -race -count=1 -timeout 40m $$arguments

.PHONY: nightly
nightly: ## Run everything that .ci/run leaves out because it takes long
	.ci/nightly

# How many failovers of each kind.
FAILOVERS ?= 20

.PHONY: test-failover
test-failover: ## Fail over to a standby under load, FAILOVERS=20 times of each kind
	scripts/need.sh postgres
	HOLDFAST_TEST_FAILOVERS=$(FAILOVERS) $(GO) test -count=1 -timeout 60m -v -run NothingAcknowledged ./test/failover

.PHONY: failover-hosts
failover-hosts: FAILOVERS = 10
failover-hosts: ## Fail over ten times between the two hosts of a URL, judge how soon jobs end, then after hangs
	scripts/need.sh postgres
	HOLDFAST_TEST_HOST_FAILOVERS=$(FAILOVERS) $(GO) test -count=1 -timeout 60m -v -run HostsOfTheirURL ./test/failover

# How many times each crash is measured.
TIMES ?= 10

.PHONY: losses
losses: ## Measure what crashes lose with an asynchronous standby and with commit: fast, TIMES=10 times each
	scripts/need.sh postgres
	HOLDFAST_TEST_LOSSES=$(TIMES) $(GO) test -count=1 -timeout 60m -v -run LossesAreMeasured ./test/failover

.PHONY: gates
gates: ## Test limits, fair turns and pauses at full length, with a kill each second
	scripts/need.sh postgres
	HOLDFAST_TEST_GATES=full $(GO) test -count=1 -timeout 60m -v ./test/gates

.PHONY: pooler
pooler: ## Run ten orchestrators at full rate through PgBouncer with transaction pooling, for two minutes
	scripts/need.sh postgres pgbouncer-1.21
	HOLDFAST_TEST_POOLER=full $(GO) test -count=1 -timeout 60m -v ./test/pooler

.PHONY: cells
cells: ## Submit 20,000 jobs to two cells behind nginx and HAProxy while a cell is killed; measure what a job costs
	scripts/need.sh postgres nginx haproxy
	HOLDFAST_TEST_CELLS=full $(GO) test -count=1 -timeout 60m -v ./test/cells

.PHONY: schedules
schedules: ## Kill orchestrators while 1,000 schedules have a tick each second; measure idle schedules
	scripts/need.sh postgres
	HOLDFAST_TEST_SCHEDULES=full $(GO) test -count=1 -timeout 60m -v ./test/schedules

.PHONY: operations
operations: ## Requeue 50,000 jobs at once, while an orchestrator is killed
	scripts/need.sh postgres
	HOLDFAST_TEST_OPERATIONS=full $(GO) test -count=1 -timeout 60m -v ./test/operations

.PHONY: followups
followups: ## Kill plugins and orchestrators, with thousands of attempts, while handlers submit jobs
	scripts/need.sh postgres
	HOLDFAST_TEST_FOLLOWUPS=full $(GO) test -count=1 -timeout 60m -v ./test/followups

.PHONY: workflows
workflows: ## Kill plugins and orchestrators while a workflow of 1,000 jobs fails and dies at random
	scripts/need.sh postgres
	HOLDFAST_TEST_WORKFLOWS=full $(GO) test -count=1 -timeout 60m -v ./test/workflows

.PHONY: retention
retention: ## Delete 10 million ended jobs while 10,000 a second are worked; needs 12 GB of memory or disk
	scripts/need.sh postgres
	HOLDFAST_TEST_RETENTION=full $(GO) test -count=1 -timeout 120m -v ./test/retention

.PHONY: transfer
transfer: ## Move a million jobs in all states while export and import are killed; needs 8 GB of memory or disk
	scripts/need.sh postgres
	HOLDFAST_TEST_TRANSFER=full $(GO) test -count=1 -timeout 60m -v ./test/transfer

.PHONY: test-containers
test-containers: ## Test how tests, and the embedded server, get PostgreSQL from containers
	scripts/test-containers.sh -run 'Container|Docker|Database|Schema|Template' ./test/pgtest ./store/embedded

.PHONY: test-openapi
test-openapi: ## Test the API's description with validators, generators and a generated client
	scripts/need.sh postgres node
	scripts/npm-ci.sh test/openapi/testdata/typescript
	# The product and npm's packages are outside the module, so go test must not cache results.
	cd test/openapi && $(GO) test -count=1 -timeout 40m ./...

.PHONY: test-ui
test-ui: ## Test the web UI in Chromium, with rules of accessibility
	scripts/need.sh postgres node chromium
	scripts/npm-ci.sh test/ui/testdata/axe
	# The product and npm's package are outside the module, so go test must not cache results.
	cd test/ui && $(GO) test -count=1 -timeout 40m ./...

.PHONY: test-model
test-model: ## Check the models of the protocol with Spin; LONG=1 allows more faults at once
	scripts/need.sh gcc spin
	HOLDFAST_TEST_MODEL=1 $(GO) test -count=1 -timeout 40m $(if $(LONG),,-short) ./test/model

# How long a chaos run injects faults, the seed of their order (a random one by default), and
# further flags, such as CHAOS='-only kill-primary,failover'; bin/chaos/chaos -help lists them.
DURATION ?= 3m
SEED ?=
CHAOS ?=

# The record of a run names what was tested.
CHAOS_RUN = bin/chaos/chaos -commit "$$(git describe --always --dirty --abbrev=12 --exclude='*' 2>/dev/null)"

.PHONY: chaos-build
chaos-build:
	scripts/need.sh postgres python node
	scripts/need.sh pgbouncer || echo 'runs do without PgBouncer' >&2
	scripts/npm-ci.sh sdk/node
	mkdir -p bin/chaos
	$(GO) build -trimpath -o bin/chaos/ ./cmd/orchestrator ./test/chaos ./test/chaos/handlers
	[ ! -f test/chaos/checker/main.go ] || (cd test/chaos/checker && $(GO) build -trimpath -o $(CURDIR)/bin/chaos/checker .)

.PHONY: chaos
chaos: chaos-build ## Inject faults for DURATION=3m with SEED=..., and check that nothing is lost
	$(CHAOS_RUN) -duration $(DURATION) $(if $(SEED),-seed $(SEED)) $(CHAOS)

# The seed is always the same unless it is given, so that a run is like the one before. A slow
# machine takes up to a quarter of an hour.
.PHONY: chaos-short
chaos-short: ## Inject faults for three minutes, where the machine permits it
	if [ "$$(uname -s)" = Linux ]; then \
		$(MAKE) --no-print-directory chaos-build && $(CHAOS_RUN) -skip -seed $(or $(SEED),1) $(CHAOS); \
	else \
		echo "Skipped: chaos runs need Linux, for pidfds and PID namespaces"; \
	fi

.PHONY: chaos-aimed
chaos-aimed: chaos-build ## Stall the standby, cut or cancel what waits, and fail over; FAILOVERS=20 times of each
	$(CHAOS_RUN) -aimed $(FAILOVERS) $(if $(SEED),-seed $(SEED)) $(CHAOS)

# Options, such as BUGS='-only same-fence-again -duration 2m'.
BUGS ?=

.PHONY: chaos-controls
chaos-controls: chaos-build ## Put bugs into copies of the product, and see the chaos run catch each; 35 minutes
	cd test/chaos/checker && $(GO) test -count=1 -timeout 8m ./...
	$(GO) run ./test/chaos/bugs $(BUGS)

# How many jobs a soak has, and what its plugin leaks, memory or files, to see that it is found.
JOBS ?= 1000000
LEAK ?=

.PHONY: soak-build
soak-build:
	scripts/need.sh postgres
	mkdir -p bin/soak
	$(GO) build -trimpath -o bin/soak/ ./cmd/orchestrator ./test/soak ./test/soak/handlers

.PHONY: soak
soak: soak-build ## Run JOBS=1000000 jobs of all kinds, and check that what they use stays the same; a quarter of an hour
	bin/soak/soak -jobs $(JOBS) $(if $(LEAK),-leak $(LEAK))

.PHONY: soak-controls
soak-controls: soak-build ## Let the plugin of a soak leak memory, then files, and see the soak find each; five minutes
	for leak in memory files; do \
		code=0; bin/soak/soak -jobs 50000 -leak $$leak || code=$$?; \
		[ $$code -eq 1 ] || { echo "a soak that leaks $$leak exits with $$code, not 1" >&2; exit 1; }; \
	done

.PHONY: test-checker
test-checker: ## Test the checker of chaos runs: each of its invariants on a run that was spoiled
	cd test/chaos/checker && $(GO) test -timeout 8m ./...

# How many sequences of random steps each of two processes does; and the seed, another one each
# time unless it is given.
N ?= 5000
RANDOM_SEED = $(or $(SEED),$(shell od -An -N4 -tu4 /dev/urandom | tr -d ' '))

.PHONY: test-deep
test-deep: ## Compare the store with its model, N=5000 sequences of random steps in each of two processes; SEED= repeats a run
	scripts/need.sh postgres
	$(GO) test -c -o bin/store.test ./store
	seed=$(RANDOM_SEED); echo "SEED=$$seed"; cd store; \
	deep() { ../bin/store.test -test.v -test.timeout 10h -test.run TestTheStoreBehavesLikeItsModel -rapid.checks $(N) -rapid.seed $$1; }; \
	deep $$seed & deep $$((seed + 1000000000)) && wait $$!

.PHONY: ui-scale
ui-scale: ## Measure the web UI beside 10 million ended jobs and a million open ones; needs 25 GB of disk
	scripts/need.sh postgres chromium
	cd test/ui && HOLDFAST_TEST_UI_SCALE=full $(GO) test -count=1 -timeout 180m -v -run 'ManyJobs|TenTabs|Viewers' .

.PHONY: screenshots
screenshots: ## Make the pictures of docs/ui.md anew
	scripts/need.sh postgres chromium
	mkdir -p docs/images
	cd test/ui && HOLDFAST_TEST_SCREENSHOTS=$(CURDIR)/docs/images $(GO) test -count=1 -run Screenshots .

.PHONY: languages
languages: ## Install what the tests of the SDKs for Python and Node.js need
	scripts/need.sh python mypy node
	scripts/npm-ci.sh sdk/node
	scripts/npm-ci.sh examples/handlers/node
	scripts/npm-ci.sh test/languages/testdata/node-otel

.PHONY: test-languages
test-languages: languages ## Test the SDKs and examples in Python and Node.js
	scripts/need.sh postgres
	HOLDFAST_TEST_LANGUAGES=1 $(GO) test -count=1 -timeout 40m ./test/languages
	HOLDFAST_TEST_LANGUAGES=1 $(GO) test -count=1 -timeout 40m -run 'OtherLanguages|PrintedCommands' ./plugin/conformance ./cmd/orchestrator

.PHONY: test-peers
test-peers: ## Test the comparison with other job queues, on few jobs
	scripts/need.sh postgres
	! command -v npm >/dev/null || scripts/npm-ci.sh test/peers/node
	cd test/peers && $(GO) test -timeout 40m ./...

.PHONY: test-deploy
test-deploy: ## Test the files in deploy: Compose, images, systemd, the Helm chart, alerts, dashboard
	scripts/need.sh postgres
	# The files are outside the module, so go test must not cache results.
	cd test/deploy && $(GO) test -count=1 -timeout 40m ./...

.PHONY: test-kind
test-kind: ## Run the Helm chart on a cluster by kind; needs docker, kind, kubectl and helm
	test/kind/run.sh

.PHONY: test-jaeger
test-jaeger: ## Read the traces of jobs back from the Jaeger of HOLDFAST_JAEGER_URL
	scripts/need.sh jaeger postgres jq
	$(GO) test -count=1 -timeout 40m ./test/jaeger

.PHONY: test-images
test-images: ## Build the images and run jobs in them; takes minutes
	scripts/test-images.sh

.PHONY: cover
cover: ## Measure the coverage of the tests, into coverage.html
	scripts/need.sh gcc postgres
	$(GO) test -timeout 40m -coverpkg=./... -coverprofile=coverage.out ./...
	$(GO) tool cover -html=coverage.out -o coverage.html
	$(GO) tool cover -func=coverage.out | tail -n 1

.PHONY: tools
tools: ## Build the linter and the generators, once for each version
	@scripts/tools.sh

.PHONY: lint
lint: tools ## Check style, errors, and which package may import which
	$(TOOLS)/golangci-lint config verify
	$(TOOLS)/golangci-lint run --allow-parallel-runners ./...
	for module in openapi peers deploy ui chaos/checker; do (cd test/$$module && $(CURDIR)/$(TOOLS)/golangci-lint run --allow-parallel-runners ./...); done

.PHONY: fmt
fmt: tools ## Format the Go code
	$(TOOLS)/golangci-lint fmt

.PHONY: generate
generate: tools ## Generate the code of the protocol
	scripts/need.sh protoc
	scripts/generate.sh .

.PHONY: licenses
licenses: ## Gather the license texts of what the programs are linked with
	$(GO) test -count=1 ./cmd/orchestrator/internal/licenses -run Linked -update

.PHONY: generate-check
generate-check: tools ## Fail if generated files are out of date
	scripts/need.sh protoc
	scripts/generate-check.sh

.PHONY: demo
demo: build ## Show the orchestrator at work
	$(GO) build -trimpath -o bin/demo ./test/demo
	bin/demo

.PHONY: bench
bench: build ## Measure every scenario on this machine, in about half an hour
	scripts/need.sh postgres
	bin/orchestrator bench

# STRICT=1 makes a figure that is worse than its bound allows an error.
STRICT ?=

.PHONY: bench-check
bench-check: build ## Compare what a job costs with test/bench/baseline.json
	scripts/need.sh postgres
	$(GO) run ./test/bench/check $(if $(STRICT),-strict)

.PHONY: bench-baseline
bench-baseline: build ## Measure that baseline again on this machine
	scripts/need.sh postgres
	$(GO) run ./test/bench/check -write

# The commit to compare with, and options such as AGAINST='-rounds 20 -only "submit, 64 clients"'.
COMMIT ?= HEAD~1
AGAINST ?=

.PHONY: bench-against
bench-against: build ## Compare what a job costs with COMMIT=..., by turns of a second; half an hour
	scripts/need.sh postgres
	scripts/bench-against.sh $(COMMIT) $(AGAINST)

# Options of the profile, such as PROFILE='-runs=10 -jobs=500000'.
PROFILE ?=

.PHONY: bench-profile
bench-profile: build ## Show where the time of a job goes, into docs/explanation/costs.md; a minute
	scripts/need.sh postgres
	$(GO) run ./test/bench/profile -page docs/explanation/costs.md $(PROFILE)

# Options of the measurement, such as TRACING='-rounds=1 -jobs=20000'.
TRACING ?=

.PHONY: bench-tracing
bench-tracing: build ## Show what tracing costs, into docs/explanation/tracing-cost.md; ten minutes
	scripts/need.sh postgres
	$(GO) run ./test/bench/tracing -page docs/explanation/tracing-cost.md $(TRACING)

# Options of the measurement, such as FLEET='--orchestrators 2,10 --plugins 5'.
FLEET ?=

.PHONY: bench-fleet
bench-fleet: build ## Measure 2, 10 and 50 orchestrators with 50 job types on one database; a quarter of an hour
	scripts/need.sh postgres $(if $(findstring --pgbouncer,$(FLEET)),pgbouncer-1.21)
	bin/orchestrator bench fleet --runs 1 --jobs 8000 $(FLEET)

.PHONY: bench-submit
bench-submit: ## Compare submissions that share commits with submissions that do not
	scripts/need.sh postgres
	$(GO) test ./test/bench -run '^$$' -bench Submit -benchtime 1x

# Options of the comparison, such as PEERS='-rounds=1 -jobs=20000 -pinned'.
PEERS ?=

.PHONY: bench-peers
bench-peers: build ## Compare with other job queues, into docs/explanation/performance.md; 40 minutes at most
	scripts/need.sh postgres
	! command -v npm >/dev/null || scripts/npm-ci.sh test/peers/node
	$(GO) build -C test/peers -trimpath -o $(CURDIR)/bin/peers .
	bin/peers -page docs/explanation/performance.md $(PEERS)

# The version by git, for images.
VERSION = $(shell git describe --tags --always --dirty 2>/dev/null)
COMPOSE ?= docker compose
# docker-compose 1.29 cannot wait: make compose-up COMPOSE=docker-compose WAIT=
WAIT ?= --wait

.PHONY: images
images: ## Build the container images holdfast and holdfast:slim
	docker build --file deploy/Dockerfile --build-arg VERSION=$(VERSION) --tag holdfast .
	docker build --file deploy/Dockerfile.slim --build-arg VERSION=$(VERSION) --tag holdfast:slim .

.PHONY: compose-up
compose-up: ## Run PostgreSQL, two orchestrators, Jaeger, Prometheus and Grafana in containers
	deploy/secrets.sh
	VERSION=$(VERSION) $(COMPOSE) -f deploy/compose.yaml up --build --detach $(WAIT)
	@printf '%s\n' 'API         http://127.0.0.1:8080 and :8081, login: deploy/secrets/operator' \
		'Jaeger      http://127.0.0.1:16686' 'Prometheus  http://127.0.0.1:9090' \
		'Grafana     http://127.0.0.1:3000, login: admin, deploy/secrets/grafana_password'

.PHONY: compose-down
compose-down: ## Stop them; their data stays
	$(COMPOSE) -f deploy/compose.yaml down

.PHONY: release-snapshot
release-snapshot: ## Build a release of this commit into dist/, and install it in a test
	scripts/release.sh v0.0.0-snapshot.$(shell git rev-parse --short=12 HEAD)
	cd test/deploy && HOLDFAST_TEST_DIST=$(CURDIR)/dist $(GO) test -count=1 -run ReleaseThatWasBuilt .

.PHONY: clean
clean: ## Remove everything that was built; data/ stays
	rm -rf bin dist coverage.out coverage.html
