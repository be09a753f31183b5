#!/usr/bin/env bash
# First light: a folder of photographs becomes shuffled, jittered, channels-last float32 batches of 640x640.
#
#   pipelines/first-light.sh [LOCATION [EPOCHS [BATCH [SEED]]]]
#
# LOCATION is a folder, a text list of paths or one image (default: the bundled photographs). Build first:
# `cargo build --release`. Writes out/report.jsonl below the current folder: a line per batch and per epoch.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/lib.sh"

location=$("$root/scripts/gst-location.sh" "${1:-$root/data/photos}")
epochs=${2:-3} batch=${3:-8} seed=${4:-0}
# Anything else would reach gst-launch-1.0 as a piece of the pipeline.
[[ $epochs =~ ^(-1|[0-9]+)$ ]] || die "EPOCHS must be a whole number, or -1 for no end: got '$epochs'"
[[ $batch =~ ^[0-9]+$ ]] || die "BATCH must be a whole number: got '$batch'"
[[ $seed =~ ^[0-9]+$ ]] || die "SEED must be a whole number from 0 to 18446744073709551615: got '$seed'"
[[ -e $target/release/libgstepochfeed.so ]] || die "the plugin is not built: run \`cargo build --release\` first"

export GST_PLUGIN_PATH=$target/release${GST_PLUGIN_PATH:+:$GST_PLUGIN_PATH}
mkdir -p out
exec gst-launch-1.0 -q \
  epochsrc location="$location" epochs="$epochs" seed="$seed" ! \
  epochdecode ! video/x-raw,format=RGB,width=640,height=640 ! \
  hsvquantize ! \
  nhwcpack batch-size="$batch" ! \
  epochsink report=out/report.jsonl
