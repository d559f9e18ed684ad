#!/usr/bin/env bash
# Checks what docs/platforms.md says: the library and the command compile without warnings for each platform, the tests of the core
# crates pass on arm64, and a static arm64 binary publishes, forwards and watches, both by qemu-user.
#
#   scripts/platforms.sh               all of it; `scripts/test.sh platforms` does the same
#   scripts/platforms.sh macos run     these parts only: linux, macos, windows, core, run
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/install.sh platforms
tools=$(realpath -m "${CARGO_TARGET_DIR:-target}/platforms")
export PATH="$tools/bin:$PATH"
export CARGO_INCREMENTAL=0 CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_RUNNER=qemu-aarch64
arm=aarch64-unknown-linux-musl
core=(units packet forward stream apps netem)
command=(--package namecast-cli --package namecast)

# zig TARGET COMMAND ARGUMENT...: a command of cargo for another platform; warnings are errors.
zig() {
  local target=$1
  echo "-- $*"
  shift
  RUSTFLAGS="--deny warnings" cargo-zigbuild "$1" --quiet --locked --target "$target" "${@:2}"
}

part_linux() {
  local target
  for target in aarch64-unknown-linux-gnu x86_64-unknown-linux-musl "$arm"; do zig "$target" check "${command[@]}"; done
}
part_macos() { zig aarch64-apple-darwin check "${command[@]}"; }
part_windows() { zig x86_64-pc-windows-gnu check "${command[@]}" --no-default-features; }
part_core() { zig "$arm" test "${core[@]/#/--package=namecast-}" --lib --tests; }

# fail WHAT: says what is wrong, with what the programs said.
fail() {
  echo "FAILED: $1"
  tail -n 5 "$home"/*.log
  exit 1
}

# Eight seconds of live pictures through a forwarder, which begin when all has started; ffmpeg is this machine's.
part_run() {
  local binary
  pids=()
  zig "$arm" build --package namecast-cli --no-default-features
  binary=${CARGO_TARGET_DIR:-target}/$arm/debug/namecast
  file "$binary" | grep -q 'ARM aarch64.*static' || { file "$binary"; exit 1; }
  home=$(mktemp -d)
  trap 'kill "${pids[@]}" 2>/dev/null; wait; rm -r "$home"' EXIT
  # In place of the shell, so that it is what is ended.
  emulated() { exec env HOME="$home" XDG_DATA_HOME="$home" qemu-aarch64 "$binary" "$@"; }
  emulated forwarder --port 0 --udp 127.0.0.1:0 --tcp 127.0.0.1:0 --unix "$home/n.sock" >"$home/forwarder.log" 2>&1 &
  pids+=($!)
  emulated publish /cam --input test --connect "unix://$home/n.sock" >"$home/publish.log" 2>&1 &
  pids+=($!)
  (emulated watch /cam --duration 24s --output "$home/out.mkv" --connect "unix://$home/n.sock") >"$home/watch.log" 2>&1 || fail "watch"
  local frames
  frames=$(ffprobe -v error -count_packets -select_streams v -show_entries stream=nb_read_packets -of csv=p=0 "$home/out.mkv")
  [ "${frames:-0}" -ge 240 ] || fail "$frames pictures in 24 s"
  echo "-- static arm64 binary by qemu-user: $frames pictures in 24 s"
}

parts=("$@")
[ ${#parts[@]} != 0 ] || parts=(linux macos windows core run)
for part in "${parts[@]}"; do "part_$part"; done
