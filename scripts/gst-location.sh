#!/usr/bin/env bash
# Prints a path so that gst-launch-1.0 hands it to a `location` property unchanged.
#
#   scripts/gst-location.sh PATH
#
# gst-launch-1.0 reads spaces, quotes, `!`, backslashes and more itself, and refuses bytes that are not UTF-8. A path of plain
# characters is printed as it is; any other becomes a file:// URI in which every other byte is percent-encoded, so that
# nothing is left to quote. A file:// URI is printed as it is.
set -euo pipefail
# Paths are bytes: one "character" must be one byte, and `[A-Z]` must not depend on a collation.
export LC_ALL=C

path=${1-}
if [[ -z $path ]]; then
  echo 'usage: scripts/gst-location.sh PATH' >&2
  exit 2
fi
if [[ $path =~ ^[A-Za-z0-9/._-]+$ || $path =~ ^file:///[A-Za-z0-9/._~%-]*$ ]]; then
  printf '%s\n' "$path"
  exit
fi
[[ $path == /* ]] || path=$PWD/$path
uri=file://
for ((i = 0; i < ${#path}; i++)); do
  byte=${path:i:1}
  if [[ $byte == [A-Za-z0-9/._~-] ]]; then
    uri+=$byte
  else
    # `'x` is the value of the byte x.
    printf -v byte '%%%02X' "'$byte"
    uri+=$byte
  fi
done
printf '%s\n' "$uri"
