#!/usr/bin/env bash
# A publisher of 3 Mbit/s at our forwarder, and consumers behind a UDP address that never shows it is where it says it is: through
# ndnd's forwarder, which returns no Nack, and with NDNts alone. Each end has a network namespace of its own, since addresses of
# the same machine are trusted. To be run where this user is root and the network is the script's own:
#
#   unshare --user --map-root-user --net --mount interop/ndnd/strangers.sh NAMECAST NDND NDNTS DIRECTORY
#
# NDNTS is a directory with NDNts installed, or "". Prints a line for each cell that holds; the first that does not ends it.
set -euo pipefail

namecast=$1 ndnd=$2 ndnts=$3 home=$4 name=strangers
source "$(dirname "$0")/../link.sh"
make_link

cat >"$home/strangers.toml" <<TOML
listen = { udp = ["192.0.2.1:6363"], tcp = [], unix = ["$home/ours.sock"] }
TOML
"$namecast" forwarder --quiet --port 0 --config "$home/strangers.toml" >"$home/strangers-ours.log" 2>&1 &
started+=($!)
await "our forwarder" test -S "$home/ours.sock"
start_ndnd "$ndnd" "enabled_unicast: true, enabled_multicast: false, port_unicast: 6363"
ours=unix://$home/ours.sock
"$namecast" route add /interop udp4://192.0.2.1:6363 --connect "$theirs" >"$home/strangers-route.log" 2>&1 || fail "ndnd's face to ours"

rate=3M
stream "a stranger: 3 Mbit/s by UDP, through ndnd" /interop/ours "$ours" "$theirs"
if [[ -n $ndnts ]]; then
    there timeout 180 node "$ndnts/stranger.js" "$home/ours.sock" 192.0.2.1 || fail "a stranger: NDNts"
fi
