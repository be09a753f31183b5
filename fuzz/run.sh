#!/usr/bin/env bash
# Runs one fuzz target, from the seeds and what earlier runs found.
#
#   fuzz/run.sh TARGET [SECONDS]     coco, yolo_labels, data_yaml, state or decode; 630 seconds
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

target=${1:?usage: fuzz/run.sh TARGET [SECONDS]}
seconds=${2:-630}

# The versions that the library is built with, in place of the newest. Only where they changed: cargo adds its own to them.
[[ Cargo.lock -nt ../Cargo.lock ]] || cp ../Cargo.lock Cargo.lock

corpora=("corpus/$target" "seeds/$target")
limits=(-rss_limit_mb=1024 -timeout=10 -max_len=4096)
if [[ $target == decode ]]; then
  corpora+=(../tests/data/jpeg ../tests/data/cases/img)
  # No single request above what the decoders may ask for besides pixels.
  limits=(-rss_limit_mb=1024 -malloc_limit_mb=80 -timeout=10 -max_len=8192)
fi
mkdir -p "${corpora[0]}"
# A dataset is made for each execution of two targets: a disk would be most of the time.
if [[ -z ${TMPDIR:-} && -d /dev/shm ]]; then
  export TMPDIR=/dev/shm
fi
exec cargo +nightly fuzz run --fuzz-dir . "$target" "${corpora[@]}" -- \
  "${limits[@]}" -dict="dictionaries/$target.dict" -max_total_time="$seconds" -print_final_stats=1
