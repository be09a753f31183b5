#!/bin/sh
# Times the fused, native and OpenCV paths for one 640x640 frame, pinned to one core, and prints the ratios.
#
#   benches/color.sh            PYTHON=... chooses an interpreter with numpy and opencv-python-headless
#   CORE=1 benches/color.sh     another core
set -eu
cd "$(dirname "$0")/.."
cargo bench --bench color --no-run
out=$(mktemp)
trap 'rm -f "$out"' EXIT
taskset -c "${CORE:-0}" cargo bench --quiet --bench color | tee "$out"
taskset -c "${CORE:-0}" "${PYTHON:-python3}" benches/opencv_lut.py | tee -a "$out"
# $2 is the median. The plain OpenCV path is the one trainers run; the reused output is the fastest we could write.
awk -F '\t' '
    $1 ~ /^copy of the output/ { copy = $2 }
    $1 ~ /^fused .* u8 -> float32 nhwc$/ && !fused { fused = $2; name = $1 }
    /^opencv lut \+ astype/ { plain = $2 }
    /^opencv lut \+ multiply/ { reused = $2 }
    END {
        printf "\n%s: %.3f ms = %.1f x the copy of the output (goal: at most 5)\n", name, fused, fused / copy
        printf "OpenCV split/LUT/merge, astype(float32) / 255: %.3f ms = %.1f x as long (goal: at least 8)\n", plain, plain / fused
        printf "OpenCV split/LUT/merge into a reused float32:  %.3f ms = %.1f x as long\n", reused, reused / fused
    }' "$out"
