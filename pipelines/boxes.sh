#!/usr/bin/env bash
# Draws frames of a dataset with their boxes on a contact sheet, out/boxes.png: what a detector would be given.
#
#   pipelines/boxes.sh [LOCATION] [--root FOLDER] [--val] [--seed 7] [--count 16] [--size 320]
#       [--orientation apply|ignore|match] …
#
# LOCATION is a COCO JSON file, a data.yaml, or a folder with images and labels; by default the bundled photographs with
# data/photos.json. Builds what it needs; `pipelines/boxes.sh --help` has all settings.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/lib.sh"

location=$root/data/photos.json
if (($#)) && [[ $1 != -* ]]; then
  location=$1
  shift
fi
(cd "$root" && cargo build --release --locked --quiet --example boxes)
"$target/release/examples/boxes" "$location" out/boxes.png "$@"
echo 'out/boxes.png: frames with their boxes'
