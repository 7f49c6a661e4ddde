# croft: what there is to do. All of it works on Debian and Ubuntu with Go;
# what else is needed is installed with apt, and said.

GO ?= go
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2
FUZZTIME ?= 3s
SOAKFUZZTIME ?= 5m

.PHONY: build demo test soak bench bench-mapping bench-links lint format-check clean

build:
	scripts/setup build
	$(GO) build -o bin/croft ./cmd/croft

# A federation, an aggregate, two nodes and a link, real logins, and back.
demo: build
	scripts/setup demo
	scripts/demo

# Everything, with -race; lengthy campaigns in their short form. The tests of
# drivers wait more than they compute: so three packages at a time.
test: format-check
	scripts/setup build test
	$(GO) vet ./...
	scripts/fuzz $(FUZZTIME)
	GO="$(GO)" scripts/test -race -p 3 -timeout 30m ./...

# The same with the lengthy campaigns in full: kills, races, fuzzing. Hours.
soak: format-check
	scripts/setup build test
	scripts/fuzz $(SOAKFUZZTIME)
	GO="$(GO)" CROFT_SOAK=1 scripts/test -race -timeout 6h ./...

# Calls per second over TLS, from 1 and 8 clients; advertisements of large
# testbeds that change.
bench: build
	scripts/setup test
	$(GO) test -run '^$$' -bench 'Calls|ListResources' -benchtime 5s ./internal/e2e

# Placements on testbeds of up to 4,000 hosts: time, violations, score beside
# those of a planted placement and of Emulab's assign, bytes.
bench-mapping:
	$(GO) test -run '^$$' -bench Instances -benchtime 1x ./mapping/assign

# What shaped links do against what they should, as a table, and how long rings
# of nodes take. On a machine that does nothing else.
bench-links:
	scripts/setup build test
	$(GO) test -run '^$$' -bench BenchmarkLinks -benchtime 1x -timeout 20m ./drivers/wiring
	$(GO) test -run '^$$' -bench BenchmarkRing -benchtime 1x -timeout 20m ./drivers/namespace
	$(GO) test -run '^$$' -bench RingThroughFrontDoor -benchtime 1x -timeout 30m ./internal/e2e
	$(GO) test -run '^$$' -bench LoginsUnderFlood -benchtime 50x -timeout 10m ./internal/e2e

lint: format-check
	$(GO) vet ./...
	$(GO) run $(STATICCHECK) ./...

format-check:
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then echo "gofmt -w needed:"; echo "$$unformatted"; exit 1; fi

clean:
	rm -rf bin
	$(GO) clean -testcache
