# Shared by the scripts in this folder; sourced, never run.
# shellcheck shell=bash

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# Where cargo puts things: the environment's folder when there is one.
target=${CARGO_TARGET_DIR:-$root/target}
[[ $target == /* ]] || target=$PWD/$target

die() {
  printf 'epochfeed: %s\n' "$*" >&2
  exit 1
}

# The Python that the tests use: one that the user names, else the environment made by setup.sh.
python_path() {
  printf '%s' "${EPOCHFEED_PYTHON:-$root/.venv/bin/python}"
}
