#!/usr/bin/env bash
# Installs the package into a directory of its own, starts what its service starts, and questions that.
#
#   packaging/test.sh [PACKAGE.deb]      the newest of target/package without it
set -euo pipefail
cd "$(dirname "$0")/.."

fail() { printf '[package] %s\n' "$*" >&2; exit 1; }

package=${1:-$(ls -t target/package/*.deb 2>/dev/null | head -n 1)}
[ -f "$package" ] || fail "no package: run 'make package' first"
if ! unshare --user --map-root-user --mount --net true 2>/dev/null; then
  echo "[package] NOT TESTED: no right to make namespaces here" >&2
  exit 0
fi

root=$(mktemp -d)
trap 'rm -rf --one-file-system "$root"' EXIT
export PACKAGE=$package ROOT=$root
# A network of its own, so that no port is taken and nobody is disturbed; this machine's libraries, read only.
unshare --user --map-root-user --mount --net --pid --fork --kill-child bash -euo pipefail <<'INSIDE'
fail() { printf '[package] %s\n' "$*" >&2; exit 1; }
ip link set lo up
mkdir -p "$ROOT"/{var/lib/dpkg/info,var/lib/dpkg/updates,var/lib/namecast,run/namecast,run/nfd,tmp,usr}
: >"$ROOT/var/lib/dpkg/status"
# What the package depends on is this machine's.
dpkg --root="$ROOT" --force-depends --force-not-root --force-script-chrootless --log=/dev/null --install "$PACKAGE" >"$ROOT/dpkg.log" 2>&1 </dev/null ||
  { cat "$ROOT/dpkg.log" >&2; fail "dpkg did not install it"; }
for file in usr/bin/namecast etc/namecast/forwarder.toml usr/share/man/man1/namecast-forwarder.1.gz \
  usr/share/bash-completion/completions/namecast usr/share/zsh/vendor-completions/_namecast; do
  [ -s "$ROOT/$file" ] || fail "$file is missing"
done
for library in lib lib64 usr/lib/x86_64-linux-gnu usr/lib/aarch64-linux-gnu usr/lib64; do
  [ -d "/$library" ] || continue
  mkdir -p "$ROOT/$library"
  mount --rbind "/$library" "$ROOT/$library"
done
unit=$ROOT/usr/lib/systemd/system/namecast-forwarder.service
# In tenths; without systemd nobody judges.
! command -v systemd-analyze >/dev/null || systemd-analyze security --offline=true --threshold=15 "$unit" >"$ROOT/tmp/security" 2>&1 ||
  { tail -n 1 "$ROOT/tmp/security" >&2; fail "the service is exposed more than 1.5"; }
setting() { sed -n "s/^$1=//p" "$unit"; }
read -ra command <<<"$(setting ExecStart)"
read -ra environment <<<"$(setting Environment)"
env -i "${environment[@]}" "$(command -v chroot)" "$ROOT" "${command[@]}" >"$ROOT/tmp/log" 2>&1 &
service=$!
ask() { chroot "$ROOT" /usr/bin/namecast "$@" 2>"$ROOT/tmp/asked" </dev/null; }
# It answers before it has said everything.
for _ in $(seq 100); do
  ask status --connect unix:///run/namecast/forwarder.sock >"$ROOT/tmp/status" && grep -q '^Page: ' "$ROOT/tmp/log" && break
  kill -0 "$service" 2>/dev/null || { cat "$ROOT/tmp/log" >&2; fail "the service ended"; }
  sleep 0.1
done
[ -s "$ROOT/tmp/status" ] || { cat "$ROOT/tmp/asked" "$ROOT/tmp/log" >&2; fail "the service does not answer"; }
grep -q 'Configuration: /etc/namecast/forwarder.toml' "$ROOT/tmp/log" || fail "the service did not say which file it read"
for socket in namecast/forwarder.sock nfd/nfd.sock; do
  [ "$(stat -c %a "$ROOT/run/$socket")" = 666 ] || fail "other users may not connect to /run/$socket"
done
http() { exec 3<>/dev/tcp/127.0.0.1/8080; printf 'GET %s HTTP/1.0\r\nHost: localhost\r\n\r\n' "$1" >&3; cat <&3; }
http / | grep -q '<title>Namecast' || fail "the service has no page"
http /health | tail -n 1 | grep -qx ok || fail "the service is not well: $(http /health | tail -n 1)"
kill "$service"
wait "$service" || fail "the service did not end well"
echo "[package] installed, started, answered, stopped"
INSIDE
