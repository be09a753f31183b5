# `make run` and `make test` are all that a fresh clone needs; both install what is missing first.

SHELL := bash
.DEFAULT_GOAL := help
.PHONY: help run test property soak lint setup

# Settings of `make run`.
DATA ?= data/photos
EPOCHS ?= 3
BATCH ?= 8
SEED ?= 0

# Through the environment, so that no character of a path is read by a shell; `value` keeps make from expanding a `$`.
run: export EPOCHFEED_DATA = $(value DATA)
run: export EPOCHFEED_EPOCHS = $(value EPOCHS)
run: export EPOCHFEED_BATCH = $(value BATCH)
run: export EPOCHFEED_SEED = $(value SEED)

help:
	@echo 'make run     build, then prepare the bundled photographs: batches, a table, out/preview.png'
	@echo '             DATA=folder-or-list EPOCHS=3 BATCH=8 SEED=0'
	@echo 'make test    everything that must hold: format, clippy, all tests'
	@echo 'make soak    1,000 repetitions of what can hang, and long runs for what can leak (minutes)'
	@echo 'make property the property test of the epoch boundary, CASES=20000 random lives for each door'
	@echo 'make lint    format, clippy, licences and sources of the dependencies, documentation'
	@echo 'make setup   install what the above need and this machine lacks'

run:
	@scripts/setup.sh run
	cargo build --release --locked
	cargo build --release --locked --example preview
	@scripts/run.sh

test:
	@scripts/setup.sh test
	@scripts/test.sh

soak:
	@scripts/setup.sh test
	@scripts/soak.sh

# `make test` plays 1,000 for each door.
CASES ?= 20000
property: export EPOCHFEED_PROPERTY_CASES = $(CASES)
property: export G_DEBUG = fatal_warnings
property:
	@scripts/setup.sh test
	cargo test --release --locked --test boundary_property

lint:
	@scripts/setup.sh test
	@scripts/lint.sh

setup:
	@scripts/setup.sh test
