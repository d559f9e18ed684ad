#!/usr/bin/env bash
# Installs what is needed and missing, in one line each; quiet when everything is there.
#
#   scripts/install.sh demo    ffmpeg, a C compiler, a WebAssembly toolchain, the page's npm packages
#   scripts/install.sh test    the same, Chromium, rustfmt and clippy, Python's virtual environments
#   scripts/install.sh wasm    the WebAssembly toolchain
#   scripts/install.sh page    what builds the page, as far as that takes no rights: rustup's toolchain, npm packages
#   scripts/install.sh deny    cargo-deny
#   scripts/install.sh engines Firefox and WebKit, and a screen and a sound server for them
#   scripts/install.sh platforms   compilers for other platforms, and qemu-user
set -euo pipefail
cd "$(dirname "$0")/.."

# How long rustup's server may take before the Debian packages are used instead, in seconds. It either answers at once
# or is cut off by a firewall, which shows as silence.
RUSTUP_SECONDS=${NAMECAST_RUSTUP_SECONDS:-20}

say() { printf '[install] %s\n' "$*" >&2; }
fail() { say "$*"; exit 1; }

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# Runs a command, and shows what it printed only if it failed.
quietly() {
  local log
  log=$(mktemp)
  if "$@" >"$log" 2>&1 </dev/null; then rm -f "$log"; return 0; fi
  cat "$log" >&2
  rm -f "$log"
  return 1
}

apt_install() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends "$@"
}

debian_packages() {
  say "Debian packages: $*"
  command -v apt-get >/dev/null || fail "no apt-get here: install by hand what these hold, then start again"
  [ "$(id -u)" = 0 ] || command -v sudo >/dev/null || fail "neither root nor sudo: run 'apt-get install $*' as root"
  # A fresh machine has no package lists, an old one stale lists; either is mended by one update.
  apt_install "$@" >/dev/null 2>&1 </dev/null && return
  quietly as_root apt-get update || fail "apt-get update failed"
  quietly apt_install "$@" || fail "apt-get could not install: $*"
}

# command_packages COMMAND=PACKAGE…: installs the packages whose command is missing.
command_packages() {
  local pair missing=()
  for pair in "$@"; do
    command -v "${pair%%=*}" >/dev/null || missing+=("${pair#*=}")
  done
  [ ${#missing[@]} = 0 ] || debian_packages "${missing[@]}"
}

rustup_target() {
  command -v rustup >/dev/null || return 1
  say "WebAssembly target by rustup (at most $RUSTUP_SECONDS s)"
  timeout --kill-after=2 "$RUSTUP_SECONDS" rustup target add wasm32-unknown-unknown >/dev/null 2>&1 </dev/null &&
    scripts/wasm-toolchain.sh >/dev/null
}

debian_toolchain() {
  debian_packages rustc-web cargo-web rust-web-src lld-22
  scripts/wasm-toolchain.sh >/dev/null || fail "no WebAssembly toolchain, although its packages are installed"
}

wasm() {
  local found=0
  scripts/wasm-toolchain.sh >/dev/null || found=$?
  case $found in
    0) return ;;
    2) exit 2 ;;
  esac
  case ${NAMECAST_WASM:-any} in
    any) rustup_target || debian_toolchain ;;
    rustup) rustup_target || fail "rustup could not add wasm32-unknown-unknown" ;;
    debian) debian_toolchain ;;
  esac
}

# rustup's minimal profile leaves these out.
rust_components() {
  cargo fmt --version >/dev/null 2>&1 && cargo clippy --version >/dev/null 2>&1 && return
  say "rustfmt and clippy by rustup"
  timeout --kill-after=2 "$((RUSTUP_SECONDS * 6))" rustup component add rustfmt clippy >/dev/null 2>&1 </dev/null ||
    fail "could not add rustfmt and clippy: install them, then start again"
}

# cargo_program NAME: a program from crates.io.
cargo_program() {
  command -v "$1" >/dev/null && return
  say "$1 by cargo, which takes some minutes"
  quietly cargo install --locked "$1" || fail "could not install $1"
}

# For the peers of the interop step; where it cannot be had, python-ndn is left out there.
python_environments() {
  ! command -v python3 >/dev/null || python3 -c 'import ensurepip, venv' 2>/dev/null || (debian_packages python3-venv) || true
}

# zig is a C compiler and linker for all of them; as Python packages it needs no rights.
platforms() {
  local tools=${CARGO_TARGET_DIR:-target}/platforms
  command -v rustup >/dev/null || fail "no rustup: it has the standard library of other platforms"
  quietly rustup target add aarch64-apple-darwin x86_64-pc-windows-gnu aarch64-unknown-linux-gnu aarch64-unknown-linux-musl x86_64-unknown-linux-musl ||
    fail "rustup could not add the targets"
  [ -x "$tools/bin/cargo-zigbuild" ] && return
  say "cargo-zigbuild and zig from PyPI"
  python3 -m venv "$tools"
  quietly "$tools/bin/pip" install --quiet cargo-zigbuild==0.24.1 ziglang==0.17.1 || fail "pip could not install cargo-zigbuild"
}

npm_packages() {
  [ -f web/package-lock.json ] || return 0
  # npm writes this file last, so an interrupted installation is taken up again.
  [ web/node_modules/.package-lock.json -nt web/package-lock.json ] && return
  command -v npm >/dev/null || fail "no npm: Node.js 20 or later is needed"
  say "npm packages of the page"
  (cd web && quietly npm ci --no-audit --no-fund) || fail "npm ci failed"
  touch web/node_modules/.package-lock.json
}

case ${1:-} in
  demo)
    command_packages cc=build-essential ffmpeg=ffmpeg
    wasm
    npm_packages
    ;;
  test)
    command_packages cc=build-essential ffmpeg=ffmpeg chromium=chromium python3=python3
    python_environments
    rust_components
    wasm
    npm_packages
    ;;
  wasm) wasm ;;
  page)
    scripts/wasm-toolchain.sh >/dev/null || rustup_target || fail "no WebAssembly toolchain: 'scripts/install.sh wasm' installs one"
    npm_packages
    ;;
  deny) cargo_program cargo-deny ;;
  engines) command_packages firefox-esr=firefox-esr WebKitWebDriver=webkit2gtk-driver Xvfb=xvfb pulseaudio=pulseaudio ;;
  platforms)
    command_packages qemu-aarch64=qemu-user file=file ffprobe=ffmpeg
    python_environments
    platforms
    ;;
  *) sed -n '2,10s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
