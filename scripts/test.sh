#!/usr/bin/env bash
# Runs the steps of `make test`, each with its time, and says at the end which failed.
#
#   scripts/test.sh               all steps
#   scripts/test.sh lint unit     these only
#   scripts/test.sh deny          what only `make check` does
#   scripts/test.sh inputs link   inputs of many kinds, and how soon the page follows a link: for a machine without other work
#   scripts/test.sh engines       the page in Firefox and WebKit, a minute
#   scripts/test.sh platforms     compiles for the platforms of docs/platforms.md, and tests arm64 by qemu-user
#
# A step that fails does not stop the others, so that one run shows everything; what needs its result is left out. Of those that
# failed beside others, what failed is shown again at the end.
# Beside the tests, which mostly wait for packets, run peers, and what only needs the processor begins with the lowest priority.
# All steps build with the `dev` profile: the binary that the browser drives is the one that the unit tests linked to,
# optimised lightly and with its assertions on. Only the page's core has a profile of its own, the one that users get.
set -uo pipefail
cd "$(dirname "$0")/.."

first_steps=(lock format tidy)
last_steps=(lint doc browser)
all_steps=("${first_steps[@]}" page web build unit interop doors judge "${last_steps[@]}")
# cargo-deny takes minutes to install, and what it checks changes with the lock files only. Inputs play in real time, and lose pictures
# beside other work, as the page behind a link does. Browsers of other makers are large.
more_steps=(deny inputs link platforms engines)
steps=("$@")

target=${CARGO_TARGET_DIR:-target}
# What incremental builds keep takes time, and is of use only to builds that come after.
[ -d "$target/debug" ] || export CARGO_INCREMENTAL=0
summary=()
failed=()
failures=()

step_lock() { cargo metadata --locked --format-version 1 >/dev/null; }
step_format() { cargo fmt --all --check; }
# As `cargo xtask` runs it, without waiting for what Cargo builds meanwhile.
xtask() {
  [ "${has_xtask:-}" ] || cargo build --quiet --locked --package xtask || return 1
  CARGO_MANIFEST_DIR=$PWD/xtask "$target/debug/xtask" "$@"
}
step_tidy() { xtask tidy; }
# Its compilers have another target folder, so that it is built beside the rest.
step_page() { xtask web && cargo test --quiet --locked --package namecast-bindgen --target-dir "$target/wasm"; }

# `xtask/bindgen` goes apart: together with the others its dependencies would get other features, and be built twice.
each_part() {
  "$@" --workspace --exclude namecast-bindgen && "$@" --package namecast-bindgen
}
lint() { cargo clippy --quiet --locked --all-targets "$@" -- --deny warnings; }
# Fuzz targets have no tests of their own, and are linked by `cargo fuzz` only.
tests() { cargo test --quiet --locked --workspace --exclude namecast-bindgen --exclude namecast-fuzz "$@"; }
step_build() { tests --no-run; }
step_unit() { tests; }
step_lint() { each_part lint; }
step_doc() { RUSTDOCFLAGS="--deny warnings" each_part cargo doc --quiet --locked --no-deps; }

# Licences, sources and advisories of everything in the lock files. What cannot be had here is left out with a line that says so.
step_deny() {
  scripts/install.sh deny || { echo "left out: cargo-deny, which cannot be had here"; return 0; }
  deny --workspace check bans licenses sources || return 1
  if ! cargo deny fetch db >/dev/null 2>&1; then
    echo "left out: advisories, whose database cannot be fetched here"
    return 0
  fi
  deny --workspace check advisories
}
deny() { cargo deny --locked --config deny.toml "$@"; }

# web_script NAME: runs a script of web/package.json, if there is one.
web_script() {
  if ! (cd web && npm pkg get "scripts.$1") | grep -q '^"'; then
    echo "web/package.json has no script '$1'"
    return 0
  fi
  (cd web && npm run --silent "$1")
}
step_web() { web_script test; }

# The binary that the tests were linked with. Cargo lets nobody look for it while it builds something else.
binary() {
  [ "${is_built:-}" ] || step_build
}
# browser SCRIPT: the page in a browser, with the binary.
browser() {
  binary || return 1
  NAMECAST_BIN=$(realpath "$target/debug/namecast") web_script "$1"
}
# What others push, embed and open, and what is published; then what the page shows, and when, with the processors to itself.
step_doors() { browser e2e-doors; }
step_browser() { browser e2e-page; }

# A third of the inputs, as they are published and watched; they play in real time, so they have the processors to themselves.
step_inputs() {
  binary || return 1
  scripts/inputs quick --namecast "$target/debug/namecast"
}
step_link() { browser e2e-link; }
step_platforms() { scripts/platforms.sh; }
# The page in Firefox and WebKit.
step_engines() { scripts/install.sh engines && browser e2e-engines; }
# What judges inputs.
step_judge() { scripts/inputs judge; }

# Peers that cannot be had here, for want of their language or of the network, are left out with a line that says so.
step_interop() {
  binary || return 1
  NAMECAST=$(realpath "$target/debug/namecast") timeout --kill-after=20 15m interop/run.sh
}

# needs STEP: the steps whose failure makes this one pointless.
needs() {
  case $1 in
    tidy | page | build | lint | doc | deny | platforms) echo lock ;;
    unit | interop) echo build ;;
    web) echo page ;;
    doors | inputs | link | browser | engines) echo page build web ;;
  esac
}

contains() {
  local wanted=$1 item
  shift
  for item in "$@"; do [ "$item" != "$wanted" ] || return 0; done
  return 1
}

run() {
  local name=$1 begun=$SECONDS result=ok need
  for need in $(needs "$name"); do
    if contains "$need" "${failed[@]}"; then
      failed+=("$name")
      summary+=("$(printf '%-8s left out, since %s failed' "$name" "$need")")
      return
    fi
  done
  printf '\n== %s\n' "$name"
  "step_$name" || { result=FAILED; failed+=("$name"); }
  summary+=("$(printf '%-8s %-6s %4d s' "$name" "$result" $((SECONDS - begun)))")
  printf '== %s\n' "${summary[-1]}"
}

# beside STEP...: runs them, and leaves what they say and how they end in the folder $apart, for `collect STEP`.
beside() {
  summary=()
  for name in "$@"; do run "$name"; done >"$apart/$1.output" 2>&1
  printf '%s\n' "${summary[@]}" >"$apart/$1.summary"
  printf '%s\n' "${failed[@]}" >"$apart/$1.failed"
}
collect() {
  local lines
  cat "$apart/$1.output"
  ! grep -q ' FAILED ' "$apart/$1.summary" || failures+=("$(grep -A 3 -E 'FAILED|✖' "$apart/$1.output" | head -n 20)")
  mapfile -t lines <"$apart/$1.summary"
  summary+=("${lines[@]}")
  mapfile -t lines <"$apart/$1.failed"
  failed+=("${lines[@]}")
}

# Compiles what lint and doc will want with what tests leave of the processors, which may be nothing. Cargo must have found all tests, or
# this would keep them from running.
ahead() {
  until [ -e "$apart/unit.ended" ] || grep -q '^running' "$apart/unit.output"; do sleep 1; done
  renice -n 19 "$BASHPID"
  step_lint && step_doc
} >/dev/null 2>&1

run_all() {
  local name apart others doors
  for name in "${first_steps[@]}"; do run "$name"; done
  has_xtask=1
  apart=$(mktemp -d)
  beside page web &
  others=$!
  run build
  is_built=1
  wait "$others"
  collect page
  : >"$apart/unit.output"
  beside interop judge &
  others=$!
  beside doors &
  doors=$!
  # In a process group of its own, which is ended as a whole.
  set -m
  ahead &
  ahead=$!
  set +m
  trap 'kill -- "-$ahead" 2>/dev/null' EXIT
  run unit > >(tee "$apart/unit.output") 2>&1
  : >"$apart/unit.ended"
  wait "$others" "$doors"
  kill -- "-$ahead" 2>/dev/null
  wait "$ahead" 2>/dev/null
  trap - EXIT
  collect interop
  collect doors
  rm -r "$apart"
  for name in "${last_steps[@]}"; do run "$name"; done
}

for name in "${steps[@]}"; do
  contains "$name" "${all_steps[@]}" "${more_steps[@]}" ||
    { echo "no step '$name'; there are: ${all_steps[*]} ${more_steps[*]}" >&2; exit 2; }
done
if [ ${#steps[@]} = 0 ]; then run_all; else for name in "${steps[@]}"; do run "$name"; done; fi

[ ${#failures[@]} = 0 ] || printf '\n%s\n' "${failures[@]}"
printf '\n'
printf '%s\n' "${summary[@]}" "total           $SECONDS s"
! printf '%s\n' "${summary[@]}" | grep -qE ' FAILED |, since '
