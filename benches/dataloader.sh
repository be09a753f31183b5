#!/usr/bin/env bash
# A folder of photographs to float32 NHWC batches of 640x640, epochfeed beside PyTorch's DataLoader, in turn, in one run.
#
#   PYTHON=<an interpreter with torch and OpenCV> benches/dataloader.sh [SAMPLES]
#
# Three rounds; each prints samples a second of both, and the wait for an epoch's first batch.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/lib.sh"
cd "$root"
samples=${1:-400}
cargo build --release --locked --quiet
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
while ((samples > 0)); do
  for photo in "$root"/data/photos/*.jpg; do
    ((samples-- > 0)) && echo "$photo"
  done
done >"$work/list.txt" || true
export GST_PLUGIN_PATH=$target/release
printf 'what\tsamples/s\tfirst batch, ms\n'
for _ in 1 2 3; do
  gst-launch-1.0 -q epochsrc location="$work/list.txt" epochs=4 ! epochdecode ! \
    video/x-raw,format=RGB,width=640,height=640 ! hsvquantize ! nhwcpack batch-size=8 ! \
    epochsink silent=true report="$work/report.jsonl"
  grep '"type":"epoch"' "$work/report.jsonl" | tail -n 3 | "${PYTHON:-python3}" -c '
import json, statistics, sys
epochs = [json.loads(line) for line in sys.stdin]
rate = statistics.median(epoch["samples_per_s"] for epoch in epochs)
wait = statistics.median(epoch["boundary_wait_ns"] for epoch in epochs) / 1e6
print(f"epochfeed\t{rate:.1f}\t{wait:.1f}")'
  "${PYTHON:-python3}" benches/dataloader.py "$work/list.txt"
done
