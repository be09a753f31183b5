#!/usr/bin/env bash
# What `make test` does a few times, 1,000 times and more: stops, flushes, seeks and ends while everything is blocked, or at
# once with each other; stops and drops in callbacks; small epochs. Memory over 1,000 epochs; threads and descriptors after
# 1,000 feeds and pipelines.
#
# Every repetition has a time limit of its own, and every test binary one here: nothing can hang unseen.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$root"

tests=(
  lifecycle_blocked
  lifecycle_callbacks
  lifecycle_leftovers
  lifecycle_memory
  lifecycle_races
  feed_callbacks
  feed_drop
  buffer_small_epochs
)
# Seconds for one of them.
limit=1800

cargo build --release --locked
cargo test --release --locked --no-run "${tests[@]/#/--test=}"

# As in test.sh: a critical or warning of GLib's is a failed test, and the user's own registry stays untouched.
export G_DEBUG=fatal_warnings
export GST_REGISTRY=$target/tmp/registry.bin
export GST_PLUGIN_PATH=$target/release
export EPOCHFEED_SOAK=1
mkdir -p "$target/tmp"
figures=$target/tmp/soak.txt
: >"$figures"

for test in "${tests[@]}"; do
  start=$SECONDS
  printf '\n== %s\n' "$test"
  # One at a time, so that the figures are those of one thing.
  timeout "$limit" cargo test --release --locked --test "$test" -- --nocapture --test-threads=1 |
    tee >(sed -n 's/^figure: //p' >>"$figures")
  printf '== %s: %d s\n' "$test" $((SECONDS - start))
done

printf '\nAll passed in %d s.\n\n' "$SECONDS"
cat "$figures"
