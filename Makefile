# What a developer needs, and what CI runs: `make check` is both.
#
# Modern gits for the tests come from tools/modern-git; without them the tests that need one say
# so and are skipped, unless REFAUDIT_REQUIRE_GITS=1 is set.

GO       ?= go
FUZZTIME ?= 5
# Without urfave/cli's Markdown renderer, whose tables cost every start half a millisecond.
TAGS     := urfave_cli_no_docs
SYSTEMS  := linux darwin freebsd windows
CPUS     := amd64 arm64

.NOTPARALLEL:
.PHONY: build test check fmt vet lint arch cross fuzz race bench gits

build:
	$(GO) build -trimpath -tags $(TAGS) -o bin/ ./cmd/refaudit
	ln -sf refaudit bin/git-remote-refaudit

test:
	$(GO) test ./...

# The tests come last, so that what they print closes the output.
check: fmt vet lint arch cross fuzz race

fmt:
	@bad=$$(gofmt -l .); [ -z "$$bad" ] || { echo "not in gofmt's form:"; echo "$$bad"; exit 1; }

vet:
	$(GO) vet ./...

lint:
	$(GO) tool staticcheck ./...

arch:
	$(GO) test ./internal/archtest

cross:
	@for os in $(SYSTEMS); do for cpu in $(CPUS); do \
	  echo "build for $$os/$$cpu"; \
	  CGO_ENABLED=0 GOOS=$$os GOARCH=$$cpu $(GO) build -buildvcs=false ./... || exit 1; \
	done; \
	echo "vet for $$os"; \
	CGO_ENABLED=0 GOOS=$$os GOARCH=amd64 $(GO) vet ./... || exit 1; done

# Each target for FUZZTIME seconds.
fuzz:
	GO=$(GO) tools/fuzz $(FUZZTIME)

race:
	$(GO) test -race -timeout 30m ./...

bench:
	$(GO) test -run '^$$' -bench . -benchmem ./...

gits:
	tools/modern-git
