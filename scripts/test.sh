#!/usr/bin/env bash
# Runs the steps of `make test`, each with its time, and says at the end which failed.
#
#   scripts/test.sh               all steps
#   scripts/test.sh lint unit     these only
#   scripts/test.sh deny          what only `make check` does
#
# A step that fails does not stop the others, so that one run shows everything; what needs its result is left out.
# What only needs the processor runs beside what mostly waits, for pictures and peers, with the lowest priority.
# All steps build with the `dev` profile: the binary that the browser drives is the one that the unit tests linked to,
# optimised lightly and with its assertions on. Only the page's core has a profile of its own, the one that users get.
set -uo pipefail
cd "$(dirname "$0")/.."

first_steps=(lock format tidy page unit)
waiting_steps=(web browser interop)
beside_steps=(lint doc fuzz)
all_steps=("${first_steps[@]}" "${waiting_steps[@]}" "${beside_steps[@]}")
# cargo-deny takes minutes to install, and what it checks changes with the lock files only.
more_steps=(deny)
steps=("$@")

target=${CARGO_TARGET_DIR:-target}
# What incremental builds keep takes time, and is of use only to builds that come after.
[ -d "$target/debug" ] || export CARGO_INCREMENTAL=0
summary=()
failed=()

step_lock() { cargo metadata --locked --format-version 1 >/dev/null; }
step_format() { cargo fmt --all --check; }
step_tidy() { cargo xtask tidy; }
step_page() { cargo xtask web; }

# `xtask/bindgen` goes apart: together with the others its dependencies would get other features, and be built twice.
each_part() {
  "$@" --workspace --exclude namecast-bindgen && "$@" --package namecast-bindgen
}
lint() { cargo clippy --quiet --locked --all-targets "$@" -- --deny warnings; }
step_lint() { each_part lint; }
step_unit() { each_part cargo test --quiet --locked; }
step_doc() { RUSTDOCFLAGS="--deny warnings" each_part cargo doc --quiet --locked --no-deps; }

step_fuzz() {
  [ -f fuzz/Cargo.toml ] || { echo "no fuzz targets"; return 0; }
  cargo check --quiet --locked --manifest-path fuzz/Cargo.toml --target-dir "$target/fuzz"
}

# Licences, sources and advisories of everything in the lock files. What cannot be had here is left out with a line that says so.
step_deny() {
  scripts/install.sh deny || { echo "left out: cargo-deny, which cannot be had here"; return 0; }
  deny --workspace check --allow license-exception-not-encountered bans licenses sources || return 1
  deny_fuzz check --allow license-not-encountered bans licenses sources || return 1
  if ! cargo deny fetch db >/dev/null 2>&1; then
    echo "left out: advisories, whose database cannot be fetched here"
    return 0
  fi
  deny --workspace check advisories && deny_fuzz check advisories
}
deny() { cargo deny --locked --config deny.toml "$@"; }
deny_fuzz() { deny --manifest-path fuzz/Cargo.toml "$@"; }

# web_script NAME: runs a script of web/package.json, if there is one.
web_script() {
  if ! (cd web && npm pkg get "scripts.$1") | grep -q '^"'; then
    echo "web/package.json has no script '$1'"
    return 0
  fi
  (cd web && npm run --silent "$1")
}
step_web() { web_script test; }

# The binary chosen like the unit tests, which gives dependencies the same features, so that nothing else is built.
binary() {
  [ "${has_binary:-}" ] || cargo build --quiet --locked --workspace --exclude namecast-bindgen --tests --bins
}
step_browser() {
  binary || return 1
  NAMECAST_BIN=$(realpath "$target/debug/namecast") web_script e2e
}

# Peers that cannot be had here, for want of their language or of the network, are left out with a line that says so.
step_interop() {
  binary || return 1
  NAMECAST=$(realpath "$target/debug/namecast") interop/run.sh
}

# needs STEP: the steps whose failure makes this one pointless.
needs() {
  case $1 in
    tidy | page | lint | unit | doc | interop | deny) echo lock ;;
    web) echo page ;;
    browser) echo page web ;;
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

# beside STEP...: runs them with what is left of the processor, and leaves what they say and how they end in the folder $apart.
beside() {
  renice -n 19 "$BASHPID" >/dev/null
  summary=()
  for name in "$@"; do run "$name"; done >"$apart/output" 2>&1
  printf '%s\n' "${summary[@]}" >"$apart/summary"
}

run_all() {
  local name apart ended
  for name in "${first_steps[@]}"; do run "$name"; done
  # Cargo lets nobody look for a binary while it builds something else.
  binary && has_binary=1
  apart=$(mktemp -d)
  beside "${beside_steps[@]}" &
  for name in "${waiting_steps[@]}"; do run "$name"; done
  wait "$!"
  cat "$apart/output"
  mapfile -t ended <"$apart/summary"
  summary+=("${ended[@]}")
  rm -r "$apart"
}

for name in "${steps[@]}"; do
  contains "$name" "${all_steps[@]}" "${more_steps[@]}" ||
    { echo "no step '$name'; there are: ${all_steps[*]} ${more_steps[*]}" >&2; exit 2; }
done
if [ ${#steps[@]} = 0 ]; then run_all; else for name in "${steps[@]}"; do run "$name"; done; fi

printf '\n'
printf '%s\n' "${summary[@]}" "total           $SECONDS s"
! printf '%s\n' "${summary[@]}" | grep -qE ' FAILED |, since '
