#!/usr/bin/env bash
# Runs the tests against the GStreamer of other Debian releases, each in a folder made by debootstrap.
#
#   scripts/gst-versions.sh [--dir DIR] [SUITE…] [-- COMMAND…]
#
#   SUITE      Debian releases; default: trixie (GStreamer 1.26) and forky (1.28)
#   --dir DIR  where the folders are kept, about 5 GB each; default: target/gst-versions
#   COMMAND    what is run in each of them instead of `make test`, e.g. `-- cargo test --release --test elements_pages`
#
# Each run copies the working tree (what git would add) into DIR/SUITE; the system, the crates and what was built stay there, so
# that a second run is quick. Delete DIR/SUITE to start over. All that is printed is in DIR/SUITE.log, too; the end is a
# table, and the exit code is not 0 if anything failed.
#
# It needs root (chroot and mounts), debootstrap, git, and a Rust toolchain of rustup's, which is lent to the folders. Not part of
# `make test`: it downloads two Debian systems and builds everything for each.
#
# The network is this machine's: proxies from the environment, its certificates (SSL_CERT_FILE, else Debian's bundle), cargo's
# config.toml. EPOCHFEED_MIRROR names another Debian mirror.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

mirror=${EPOCHFEED_MIRROR:-http://deb.debian.org/debian}

# In a mount namespace of its own: whatever ends this script, its mounts end with it.
if [[ -z ${EPOCHFEED_UNSHARED:-} ]]; then
  [[ $(id -u) == 0 ]] || die "chroot and mounts need root"
  EPOCHFEED_UNSHARED=1 exec unshare --mount --propagation private "${BASH_SOURCE[0]}" "$@"
fi
trap 'exit 130' INT
trap 'exit 143' TERM

dir=$target/gst-versions suites=() command=()
while (($#)); do
  case $1 in
    --dir) dir=${2:?--dir needs a folder} && shift 2 ;;
    --) shift && command=("$@") && break ;;
    -*) die "unknown option $1: see the head of $0" ;;
    *) suites+=("$1") && shift ;;
  esac
done
((${#suites[@]})) || suites=(trixie forky)
((${#command[@]})) || command=(make test)

for tool in debootstrap git; do
  command -v "$tool" >/dev/null || die "$tool is missing: apt-get install $tool"
done
# Asked for in the source folder, where a toolchain file may choose another one than the default.
cd "$root"
rust=$(rustc --print sysroot)
[[ -x $rust/bin/cargo && $rust != /usr ]] ||
  die "the toolchain in $rust cannot be lent to another system: it has to be one of rustup's"
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)

certificates=${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt}
[[ -s $certificates ]] || die "no certificates in $certificates: install ca-certificates or set SSL_CERT_FILE"

# --- one system -------------------------------------------------------------------------------------------------------
make_system() {
  local suite=$1 system=$dir/$1 script=()
  [[ -d $system ]] && return
  # A release that is newer than the debootstrap here is made as unstable is.
  [[ -e /usr/share/debootstrap/scripts/$suite ]] || script=(sid)
  rm -rf "$system.partial"
  debootstrap --variant=minbase "$suite" "$system.partial" "$mirror" "${script[@]}"
  # Signed all the same: a snapshot of the archive serves as well, and a testing release goes stale within a week.
  echo 'Acquire::Check-Valid-Until "false";' >"$system.partial/etc/apt/apt.conf.d/90snapshot"
  # Only a whole one gets the name.
  mv "$system.partial" "$system"
}

# The working tree as git sees it, without what other systems have built: .venv and target are this system's own.
copy_source() {
  local source=$1/epochfeed file
  mkdir -p "$source"
  find "$source" -mindepth 1 -maxdepth 1 ! -name .venv -exec rm -rf {} +
  git ls-files -z --cached --others --exclude-standard --deduplicate |
    while IFS= read -r -d '' file; do
      # Deleted, but not committed yet.
      [[ ! -e $file ]] || printf '%s\0' "$file"
    done | tar --null --files-from=- --create | tar --extract --directory="$source"
}

mount_into() {
  local system=$1
  mkdir -p "$system"/{opt/rust,cargo,target}
  mount -t proc proc "$system/proc"
  mount --rbind /dev "$system/dev"
  mount --rbind --make-rslave /sys "$system/sys"
  mount --bind -o ro "$rust" "$system/opt/rust"
  cp -L /etc/resolv.conf /etc/hosts "$system/etc/"
  cp "$certificates" "$system/etc/lent-certificates.crt"
  local config=${CARGO_HOME:-$HOME/.cargo}/config.toml
  if [[ -e $config ]]; then cp "$config" "$system/cargo/"; fi
}

# Runs a command in the system's copy of the source, with an environment of its own.
inside() {
  local system=$1 name lent=/etc/lent-certificates.crt environment=()
  shift
  for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY PIP_INDEX_URL; do
    [[ -z ${!name:-} ]] || environment+=("$name=${!name}")
  done
  for name in SSL_CERT_FILE CARGO_HTTP_CAINFO PIP_CERT REQUESTS_CA_BUNDLE CURL_CA_BUNDLE; do
    environment+=("$name=$lent")
  done
  # shellcheck disable=SC2016 # expanded inside
  chroot "$system" /usr/bin/env -i "${environment[@]}" HOME=/root LANG=C.UTF-8 TERM=dumb CARGO_HOME=/cargo \
    CARGO_TARGET_DIR=/target PATH=/opt/rust/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    bash -c 'cd /epochfeed && exec "$@"' - "$@" </dev/null
}

test_in() {
  local suite=$1 system=$dir/$1
  make_system "$suite"
  copy_source "$system"
  mount_into "$system"
  inside "$system" scripts/setup.sh test
  inside "$system" gst-launch-1.0 --version
  inside "$system" "${command[@]}"
}

# --- all of them ------------------------------------------------------------------------------------------------------
failed=0 table=''
for suite in "${suites[@]}"; do
  start=$SECONDS result=passed
  # A shell of its own, since `set -e` is off in whatever `if` asks about.
  set +e
  (
    set -e
    test_in "$suite"
  ) 2>&1 | tee "$dir/$suite.log"
  ((PIPESTATUS[0] == 0)) || result=FAILED failed=1
  set -e
  version=$(sed -n 's/^GStreamer \([0-9.]*\)$/\1/p' "$dir/$suite.log" | head -n1)
  table+=$(printf '%-10s %-12s %-8s %5d s' "$suite" "${version:-?}" "$result" $((SECONDS - start)))$'\n'
done
printf '\n%-10s %-12s %-8s\n%s' suite GStreamer result "$table"
exit $failed
