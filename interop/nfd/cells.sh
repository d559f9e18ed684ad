#!/usr/bin/env bash
# Our forwarder and NFD's on one link, each in a network namespace of its own. To be run where this user is root and the network
# is the script's own, with `nfd` and `nfdc` on the path:
#
#   unshare --user --map-root-user --net --mount interop/nfd/cells.sh NAMECAST DIRECTORY
#
# Prints a line for each cell that holds; the first that does not ends it.
set -euo pipefail

namecast=$1 home=$2 name=nfd
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../link.sh"
ours=unix://$home/ours.sock theirs=unix://$home/nfd.sock
udp=udp4://224.0.23.170:56363 ethernet=ether://[01:00:5e:00:17:aa]

# address_of INTERFACE [there]: its Ethernet address.
address_of() { "${@:2}" ip -brief link show "$1" | awk '{ print $3 }'; }

# The number of a face, from how it is shown as JSON.
number() { grep -oE '"face": [0-9]+' | grep -oE '[0-9]+'; }

start() {
    make_link
    cat >"$home/nfd.toml" <<TOML
listen = { udp = ["192.0.2.1:6363"], tcp = ["192.0.2.1:6363"], unix = ["$home/ours.sock"] }
multicast = [{ interface = "near0" }]
ethernet = [{ interface = "near0" }]
TOML
    "$namecast" forwarder --quiet --port 0 --config "$home/nfd.toml" >"$home/nfd-ours.log" 2>&1 &
    started+=($!)
    # NFD and its tools keep keys at home.
    export HOME=$home
    (cd "$home" && exec nsenter --target "$far" --net --wd="$home" nfd --config "$here/nfd.conf") >"$home/nfd-theirs.log" 2>&1 &
    started+=($!)
    await "our forwarder" test -S "$home/ours.sock"
    await "NFD" test -S "$home/nfd.sock"
    await "NFD's management" "$namecast" route list --connect "$theirs"
}

# NFD's tool at our forwarder.
their_tool() {
    local peer=udp4://192.0.2.2:9
    export NDN_CLIENT_TRANSPORT=$ours
    expect "nfdc: status report" "namecast-" nfdc status report
    expect "nfdc: channel list" "udp4://192.0.2.1:6363" nfdc channel list
    expect "nfdc: face create" "face-created .*$peer" nfdc face create "$peer" persistency permanent reliability on
    expect "nfdc: face create, again" "face-(exists|updated) .*$peer" nfdc face create "$peer"
    expect "nfdc: face list" "$peer" nfdc face list
    expect "nfdc: face show" "$peer" nfdc face show "$("$namecast" face show "$peer" --json --connect "$ours" | number)"
    expect "nfdc: route add" "route-add-accepted .*cost=7" nfdc route add /interop/nfd "$peer" cost 7 capture
    expect "nfdc: route list" "/interop/nfd .*cost=7" nfdc route list
    expect "nfdc: route show" "cost=7" nfdc route show /interop/nfd
    expect "nfdc: fib list" "/interop/nfd" nfdc fib list
    expect "nfdc: route remove" "route-removed" nfdc route remove /interop/nfd "$peer"
    expect "nfdc: strategy set" "strategy-set" nfdc strategy set /interop/nfd /localhost/nfd/strategy/multicast
    expect "nfdc: strategy show" "multicast" nfdc strategy show /interop/nfd
    expect "nfdc: strategy list" "/interop/nfd" nfdc strategy list
    expect "nfdc: strategy unset" "strategy-unset" nfdc strategy unset /interop/nfd
    expect "nfdc: cs config" "cs-config-updated .*capacity=99" nfdc cs config capacity 99
    expect "nfdc: cs info" "capacity=99" nfdc cs info
    expect "nfdc: cs erase" "cs-erased" nfdc cs erase /interop/nfd
    expect "nfdc: face destroy" "face-destroyed" nfdc face destroy "$peer"
    unset NDN_CLIENT_TRANSPORT
}

# Our commands at NFD, whose content store answers with lists of the last second.
our_commands() {
    local at=(--connect "$theirs") peer=udp4://192.0.2.1:9
    expect "namecast face create, at NFD" "$peer" "$namecast" face create "$peer" "${at[@]}"
    expect "namecast face list, at NFD" "$peer" "$namecast" face list "${at[@]}"
    expect "namecast face show, at NFD" "another machine" "$namecast" face show "$peer" "${at[@]}"
    expect "namecast face update, at NFD" "permanent" "$namecast" face update "$peer" --persistency permanent "${at[@]}"
    expect "namecast route add, at NFD" "cost 7" "$namecast" route add /interop "$peer" --cost 7 "${at[@]}"
    expect "namecast route list, at NFD" "/interop +[0-9]+ +$peer +7 +static" "$namecast" route list "${at[@]}"
    expect "namecast trace, at NFD" "$peer" "$namecast" trace /interop/x "${at[@]}"
    expect "namecast route remove, at NFD" "any more" "$namecast" route remove /interop "$peer" "${at[@]}"
    expect "namecast strategy set, at NFD" "multicast" "$namecast" strategy set /interop multicast "${at[@]}"
    expect "namecast strategy list, at NFD" "/interop +/localhost/nfd/strategy/multicast" "$namecast" strategy list "${at[@]}"
    expect "namecast strategy unset, at NFD" "shorter" "$namecast" strategy unset /interop "${at[@]}"
    expect "namecast cs config, at NFD" "at most 9999$" "$namecast" cs config --capacity 9999 "${at[@]}"
    expect "namecast cs info, at NFD" "at most 9999$" "$namecast" cs info "${at[@]}"
    expect "namecast cs erase, at NFD" "gone" "$namecast" cs erase /interop "${at[@]}"
    expect "namecast status, at NFD" "Content store" "$namecast" status "${at[@]}"
    expect "namecast top, at NFD" "INTERESTS IN" "$namecast" top --once "${at[@]}"
    expect "namecast face destroy, at NFD" "is gone" "$namecast" face destroy "$peer" "${at[@]}"
}

# streams KIND FACE-OF-OURS FACE-OF-NFD: a live stream each way by these faces and nothing else.
streams() {
    local prefix=/interop/$1
    expect "$1: our route to NFD" "cost" "$namecast" route add "$prefix/theirs" "$2" --connect "$ours"
    expect "$1: NFD's route to us" "cost" "$namecast" route add "$prefix/ours" "$3" --connect "$theirs"
    stream "$1: a publisher at ours, a consumer at NFD" "$prefix/ours" "$ours" "$theirs"
    stream "$1: a publisher at NFD, a consumer at ours" "$prefix/theirs" "$theirs" "$ours"
}

# pieces FACE FORWARDER: frames of at most 700 octets, which the peer acknowledges.
pieces() {
    expect "udp in acknowledged fragments, from $2" "reliability" \
        "$namecast" face update "$1" --reliability on --mtu 700 --connect "$2"
}

on_the_link() {
    local near far_address
    near=$(address_of near0) far_address=$(address_of far0 there)
    streams udp "udp4://192.0.2.2:6363" "udp4://192.0.2.1:6363"
    pieces "udp4://192.0.2.2:6363" "$ours"
    pieces "udp4://192.0.2.1:6363" "$theirs"
    stream "udp in acknowledged fragments: a publisher at ours, a consumer at NFD" /interop/udp/ours "$ours" "$theirs"
    stream "udp in acknowledged fragments: a publisher at NFD, a consumer at ours" /interop/udp/theirs "$theirs" "$ours"
    streams tcp "tcp4://192.0.2.2:6363" "tcp4://192.0.2.1:6363"
    streams udp-group "$udp" "$udp"
    streams ethernet-group "$ethernet" "$ethernet"
    expect "ethernet: a face of ours to NFD" "$far_address" \
        "$namecast" face create "ether://[$far_address]" --interface near0 --connect "$ours"
    expect "ethernet: a face of NFD's to us" "$near" \
        "$namecast" face create "ether://[$near]" --interface far0 --persistency permanent --connect "$theirs"
    streams ethernet "ether://[$far_address]" "ether://[$near]"
    # Short frames, such as acknowledgements and Nacks, are padded.
    grep "too short" "$home/nfd-theirs.log" && fail "ethernet: NFD takes all frames"
    say "ok  ethernet: NFD takes all frames"
}

# No route but what announcements make.
announcements() {
    local at
    for at in "$ours" "$theirs"; do
        expect "self-learning at $at" "self-learning" "$namecast" strategy set /learned self-learning --connect "$at"
    done
    stream "learned: a publisher at ours, a consumer at NFD" /learned/ours "$ours" "$theirs"
    expect "learned: NFD has a route of our announcement" "/learned/ours .* prefixann " "$namecast" route list --connect "$theirs"
    stream "learned: a publisher at NFD, a consumer at ours" /learned/theirs "$theirs" "$ours"
    expect "learned: we have a route of the announcement through NFD" "/learned/theirs .* prefixann " \
        "$namecast" route list --connect "$ours"
}

start
their_tool
our_commands
on_the_link
announcements
