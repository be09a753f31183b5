#!/usr/bin/env bash
# Installs what a build (and, unless told otherwise, the tests) need and this machine lacks.
#
#   scripts/setup.sh [run|test]     run: enough for `make run`; test (default): for `make test` and `make lint` too
#
# On Debian 12 or newer and its relatives the missing packages come through apt, as root or with sudo. Elsewhere the list
# is printed. What is there already is found by trying it, not by package name, so that a GStreamer built from source
# counts; when nothing is missing no package tool is started at all.
#
# The tests compare pixels with Pillow and OpenCV from .venv, pinned in tests/requirements.txt. Debian 12's python3-pil 9.4
# and python3-opencv 4.6 give the same bytes (checked on 604 random INTER_LINEAR resizes and the bundled photographs), but
# python3-opencv brings 120 packages into the system; EPOCHFEED_PYTHON=/usr/bin/python3 makes the tests use them instead.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

level=${1:-test}
[[ $level == run || $level == test ]] || die "usage: scripts/setup.sh [run|test]"

min_rust=1.92
min_gst=1.22

# --- what there is ----------------------------------------------------------------------------------------------------
has_command() { command -v "$1" >/dev/null 2>&1; }
has_module() { pkg-config --exists "$1 >= $min_gst" 2>/dev/null; }
has_element() { gst-inspect-1.0 --exists "$1" >/dev/null 2>&1; }
# The compiler and the C library's headers are two packages.
has_compiler() { has_command cc && printf '#include <stdlib.h>\n' | cc -E -x c - >/dev/null 2>&1; }
# cargo needs them to fetch crates; these are the places where its TLS library looks on Linux.
has_certificates() {
  local file
  for file in "${SSL_CERT_FILE:-}" "${CARGO_HTTP_CAINFO:-}" /etc/ssl/certs/ca-certificates.crt \
    /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/cert.pem /etc/ssl/ca-bundle.pem; do
    [[ -n $file && -s $file ]] && return
  done
  return 1
}
has_venv() { [[ -n ${EPOCHFEED_PYTHON:-} ]] || python3 -c 'import ensurepip, venv' >/dev/null 2>&1; }

# level | check | Debian packages | Fedora packages | Arch packages
needs='
run  | has_certificates                     | ca-certificates                   | ca-certificates                    | ca-certificates
run  | has_compiler                         | gcc libc6-dev                     | gcc glibc-devel                    | gcc
run  | has_command make                     | make                              | make                               | make
run  | has_command cmake                    | cmake                             | cmake                              | cmake
run  | has_command nasm                     | nasm                              | nasm                               | nasm
run  | has_command pkg-config               | pkg-config                        | pkgconf-pkg-config                 | pkgconf
run  | has_module gstreamer-check-1.0       | libgstreamer1.0-dev               | gstreamer1-devel                   | gstreamer
run  | has_module gstreamer-video-1.0       | libgstreamer-plugins-base1.0-dev  | gstreamer1-plugins-base-devel      | gst-plugins-base-libs
run  | has_command gst-launch-1.0           | gstreamer1.0-tools                | gstreamer1                         | gstreamer
run  | has_element appsink                  | gstreamer1.0-plugins-base         | gstreamer1-plugins-base            | gst-plugins-base
test | has_element videobalance             | gstreamer1.0-plugins-good         | gstreamer1-plugins-good            | gst-plugins-good
test | has_element jpegparse                | gstreamer1.0-plugins-bad          | gstreamer1-plugins-bad-free        | gst-plugins-bad
test | has_venv                             | python3-venv                      | python3                            | python
'

# Prints the given column (3 Debian, 4 Fedora, 5 Arch) of every row whose check fails.
missing() {
  local column=$1 row_level check rest
  while IFS='|' read -r row_level check rest; do
    row_level=${row_level// /}
    [[ -z $row_level || ($row_level == test && $level == run) ]] && continue
    # A check is a command line of words without quotes: splitting it is meant.
    # shellcheck disable=SC2086
    $check || printf '%s\n' "$rest" | cut -d'|' -f$((column - 2))
  done <<<"$needs" | xargs
}

# --- Rust, which no distribution has new enough -------------------------------------------------------------------------
has_command cargo || die "cargo is not in PATH: install Rust $min_rust or newer with rustup, then run this again"
rust=$(rustc --version | cut -d' ' -f2)
[[ $(printf '%s\n%s\n' "$min_rust" "$rust" | sort -V | head -n1) == "$min_rust" ]] ||
  die "Rust $rust is too old, $min_rust is needed: run \`rustup update stable\`"
if [[ $level == test ]]; then
  for tool in fmt clippy; do
    cargo "$tool" --version >/dev/null 2>&1 || die "cargo $tool is missing: run \`rustup component add rustfmt clippy\`"
  done
fi

# --- system packages --------------------------------------------------------------------------------------------------
packages=$(missing 3)
if [[ -n $packages ]]; then
  if ! has_command apt-get; then
    {
      echo "epochfeed: this system has no apt-get; install what is missing by hand, then run this again:"
      echo "  Debian, Ubuntu: $packages"
      echo "  Fedora:         $(missing 4)"
      echo "  Arch:           $(missing 5)"
      echo "GStreamer must be $min_gst or newer."
    } >&2
    exit 1
  fi
  as_root=()
  if [[ $(id -u) != 0 ]]; then
    has_command sudo || die "not root, and there is no sudo; as root: apt-get install --no-install-recommends $packages"
    as_root=(sudo)
  fi
  echo "epochfeed: installing $packages"
  apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q)
  "${apt[@]}" update
  # shellcheck disable=SC2086
  "${apt[@]}" install -y --no-install-recommends $packages </dev/null
  hash -r
  packages=$(missing 3)
  [[ -z $packages ]] || die "still missing or too old after the installation: $packages (GStreamer must be $min_gst or newer)"
fi

# --- Python for the tests ---------------------------------------------------------------------------------------------
if [[ $level == test ]]; then
  if [[ -n ${EPOCHFEED_PYTHON:-} ]]; then
    "$EPOCHFEED_PYTHON" -c 'import cv2, numpy, nvidia.cuda_nvrtc, PIL' ||
      die "EPOCHFEED_PYTHON=$EPOCHFEED_PYTHON lacks a package of tests/requirements.txt"
  # The copy is made last, so that an interrupted installation is not taken for a whole one.
  elif ! cmp -s "$root/tests/requirements.txt" "$root/.venv/requirements.txt"; then
    echo "epochfeed: making .venv from tests/requirements.txt"
    python3 -m venv --clear "$root/.venv"
    "$root/.venv/bin/python" -m pip install --quiet --disable-pip-version-check --only-binary :all: \
      -r "$root/tests/requirements.txt"
    cp "$root/tests/requirements.txt" "$root/.venv/requirements.txt"
  fi
fi
