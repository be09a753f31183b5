#!/usr/bin/env bash
# The main job, behind `make run`: three epochs of batches through a stand-in trainer, and a picture of what the jitter does.
# Settings come from the environment (EPOCHFEED_DATA, _EPOCHS, _BATCH, _SEED); the Makefile sets them.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$root"

data=${EPOCHFEED_DATA:-data/photos} seed=${EPOCHFEED_SEED:-0}
[[ -e $data || $data == file://* ]] ||
  die "DATA='$data' does not exist: name a folder of images, a list of paths or an image"

pipelines/first-light.sh "$data" "${EPOCHFEED_EPOCHS:-3}" "${EPOCHFEED_BATCH:-8}" "$seed"
GST_PLUGIN_PATH=$target/release${GST_PLUGIN_PATH:+:$GST_PLUGIN_PATH} \
  "$target/release/examples/preview" "$data" out/preview.png --seed "$seed"
echo 'out/report.jsonl: one line per batch and epoch; out/preview.png: samples before and after the jitter'
