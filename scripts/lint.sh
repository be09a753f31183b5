#!/usr/bin/env bash
# Formatting, clippy, licences and sources of the dependencies, documentation.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$root"

cargo fmt --all --check
cargo clippy --release --locked --workspace --all-targets -- -D warnings
RUSTDOCFLAGS='-D warnings' cargo doc --release --locked --workspace --no-deps

cargo deny --version >/dev/null 2>&1 || cargo install cargo-deny --locked
cargo deny --log-level error check licenses bans sources
# The advisory database is the one thing here that lives outside the crates registry; being offline is not a finding.
if cargo deny fetch db >/dev/null 2>&1; then
  cargo deny check advisories
else
  echo 'epochfeed: advisories NOT checked, their database could not be fetched' >&2
fi
