#!/usr/bin/env bash
# Everything that must hold before a change lands. One profile (release) throughout: it is what users run, the full colour
# cube is too slow without optimisation, and a second profile would build the dependencies twice.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$root"

step() {
  local name=$1 start=$SECONDS
  shift
  printf '\n== %s: %s\n' "$name" "$*"
  "$@"
  printf '== %s: %d s\n' "$name" $((SECONDS - start))
}

step format cargo fmt --all --check
step clippy cargo clippy --release --locked --workspace --all-targets -- -D warnings
# The black-box tests load the plugin, which `cargo test` alone does not build, nor the examples that have unit tests.
step build cargo build --release --locked --lib --examples

# A critical or warning of GLib's is a failed test; the user's own registry stays untouched.
export G_DEBUG=fatal_warnings
export GST_REGISTRY=$target/tmp/registry.bin
export GST_PLUGIN_PATH=$target/release
mkdir -p "$target/tmp"
EPOCHFEED_PYTHON=$(python_path)
export EPOCHFEED_PYTHON
# All of it also where something fails: on another system or version, one run says all that differs.
step tests cargo test --release --locked --workspace --no-fail-fast

# Published vectors must be readable by someone else's program: each reader recomputes its vectors without our code.
shopt -s nullglob
for reader in tests/vectors/read_*.py; do
  step "$(basename "$reader")" "$EPOCHFEED_PYTHON" "$reader"
done

# The committed PTX is what the sources give, and exact; no GPU needed.
step kernels "$EPOCHFEED_PYTHON" kernels/generate.py --check
step quotients "$EPOCHFEED_PYTHON" kernels/quotients.py

printf '\nAll passed in %d s.\n' "$SECONDS"
