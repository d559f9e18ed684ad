#!/usr/bin/env bash
# Our forwarder and ndnd's on one link, each in a network namespace of its own, with nothing between them but NDN's UDP
# multicast group. To be run where this user is root and the network is the script's own:
#
#   unshare --user --map-root-user --net --mount interop/ndnd/multicast.sh NAMECAST NDND DIRECTORY
#
# Prints a line for each cell that holds; the first that does not ends it.
set -euo pipefail

namecast=$1 ndnd=$2 home=$3
group=udp4://224.0.23.170:56363
started=()
trap 'kill "${started[@]}" 2>/dev/null || true; wait' EXIT

fail() {
    printf 'FAILED  %s\n' "$*"
    tail -n 5 "$home"/multicast-*.log
    exit 1
}

# await WHAT COMMAND…: until it succeeds, for a minute at most.
await() {
    for _ in $(seq 300); do
        "${@:2}" >/dev/null 2>&1 && return
        sleep 0.2
    done
    fail "$1"
}

# The far end of the link, in a namespace that lives as long as its first process.
unshare --net sleep 600 &
far=$!
started+=("$far")
there() { nsenter --target "$far" --net "$@"; }
is_apart() { [[ $(readlink "/proc/$far/ns/net") != $(readlink /proc/self/ns/net) ]]; }
await "a second namespace" is_apart
# The forwarder serves its page on this machine.
ip link set lo up
ip link add near0 type veth peer name far0
ip link set far0 netns "$far"
ip address add 192.0.2.1/24 dev near0
ip link set near0 up
there ip address add 192.0.2.2/24 dev far0
there ip link set far0 up
# ndnd leaves the choice of an interface for what it sends to a group to the routing table.
there ip route add 224.0.0.0/4 dev far0

cat >"$home/multicast.toml" <<TOML
listen = { udp = [], tcp = [], unix = ["$home/ours.sock"] }
multicast = [{ interface = "near0" }]
route = [{ prefix = "/interop/theirs", face = "$group" }]
TOML
"$namecast" forwarder --quiet --port 0 --config "$home/multicast.toml" >"$home/multicast-ours.log" 2>&1 &
started+=($!)
cat >"$home/multicast.yml" <<YAML
core: { log_level: WARN }
faces:
  udp: { enabled_unicast: false, enabled_multicast: true }
  tcp: { enabled: false }
  unix: { enabled: true, socket_path: $home/theirs.sock }
  websocket: { enabled: false }
fw: { threads: 1 }
YAML
there "$ndnd" fw run "$home/multicast.yml" >"$home/multicast-theirs.log" 2>&1 &
started+=($!)
await "our forwarder" test -S "$home/ours.sock"
await "ndnd's forwarder" test -S "$home/theirs.sock"
ours=unix://$home/ours.sock theirs=unix://$home/theirs.sock
"$namecast" route add /interop/ours "$group" --forwarder "$theirs" >"$home/multicast-route.log" 2>&1 || fail "ndnd's face to the group"

# stream CELL NAME PRODUCER CONSUMER: from one forwarder's application to the other's, by the group.
stream() {
    local stats=$home/multicast.json
    "$namecast" publish "$2" --ladder 200k --quiet --connect "$3" >"$home/multicast-publish.log" 2>&1 &
    started+=($!)
    "$namecast" watch "$2" --quiet --connect "$4" --duration 10s --stats "$stats" --output "$home/multicast.mkv" \
        >"$home/multicast-watch.log" 2>&1 || fail "$1"
    grep -qE '"rendered":[1-9][0-9]' <<<"$(tail -n 1 "$stats")" || fail "$1: frames"
    grep -q '"verification_failures":0,"video"' <<<"$(tail -n 1 "$stats")" || fail "$1: all verified"
    printf 'ok  %s\n' "$1"
}

stream "multicast: a publisher at ours, a consumer at ndnd" /interop/ours "$ours" "$theirs"
stream "multicast: a publisher at ndnd, a consumer at ours" /interop/theirs "$theirs" "$ours"
