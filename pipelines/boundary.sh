#!/usr/bin/env bash
# The wait at the epoch boundary with and without preparation, over the same data: a table an epoch, out/boundary.png.
#
#   pipelines/boundary.sh [LOCATION] [--samples 1000] [--epochs 21] [--hold batches|frames] [--validation 1000] …
#
# Builds what it needs; `pipelines/boundary.sh --help` has all settings.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/lib.sh"
cd "$root"
cargo build --release --locked --quiet
cargo build --release --locked --quiet --example boundary
GST_PLUGIN_PATH=$target/release${GST_PLUGIN_PATH:+:$GST_PLUGIN_PATH} exec "$target/release/examples/boundary" "$@"
