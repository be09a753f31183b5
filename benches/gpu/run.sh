#!/bin/sh
# The library on a GPU machine that needs nothing but the driver: correctness first, then times, tables last. Builds nothing.
#
#   benches/gpu/run.sh FOLDER      FOLDER holds the binaries, without Cargo's suffix: cuda_library, gpu_host (and other tests
#                                  named cuda_*); shared libraries that the machine lacks are in FOLDER/lib
#   GPUS=2 benches/gpu/run.sh ...  with that many devices, and failing without them (1 unless said otherwise)
#
# On the machine that builds:
#   cargo test --release --test cuda_library --no-run; cargo bench --bench gpu_host --no-run
# print where the binaries are; `strip` makes them small.
set -eu
folder=${1:?give the folder with the binaries}
export EPOCHFEED_REQUIRE_GPU="${GPUS:-1}"
if [ -d "$folder/lib" ]; then
    export LD_LIBRARY_PATH="$folder/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
fi
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader || true
for test in "$folder"/cuda_*; do
    echo "== $(basename "$test")"
    "$test" --nocapture
done
echo '== gpu_host'
"$folder/gpu_host"
