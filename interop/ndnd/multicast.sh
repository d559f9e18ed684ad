#!/usr/bin/env bash
# Our forwarder and ndnd's on one link, each in a network namespace of its own, with nothing between them but NDN's UDP
# multicast group. To be run where this user is root and the network is the script's own:
#
#   unshare --user --map-root-user --net --mount interop/ndnd/multicast.sh NAMECAST NDND DIRECTORY
#
# Prints a line for each cell that holds; the first that does not ends it.
set -euo pipefail

namecast=$1 ndnd=$2 home=$3 name=multicast
group=udp4://224.0.23.170:56363
source "$(dirname "$0")/../link.sh"
make_link
# ndnd leaves the choice of an interface for what it sends to a group to the routing table.
there ip route add 224.0.0.0/4 dev far0

cat >"$home/multicast.toml" <<TOML
listen = { udp = [], tcp = [], unix = ["$home/ours.sock"] }
multicast = [{ interface = "near0" }]
route = [{ prefix = "/interop/theirs", face = "$group" }]
TOML
"$namecast" forwarder --quiet --port 0 --config "$home/multicast.toml" >"$home/multicast-ours.log" 2>&1 &
started+=($!)
await "our forwarder" test -S "$home/ours.sock"
start_ndnd "$ndnd" "enabled_unicast: false, enabled_multicast: true"
ours=unix://$home/ours.sock
"$namecast" route add /interop/ours "$group" --connect "$theirs" >"$home/multicast-route.log" 2>&1 || fail "ndnd's face to the group"

stream "multicast: a publisher at ours, a consumer at ndnd" /interop/ours "$ours" "$theirs"
stream "multicast: a publisher at ndnd, a consumer at ours" /interop/theirs "$theirs" "$ours"
