#!/usr/bin/env bash
# Congestion marks of two of our forwarders, each in a network namespace of its own with 10 Mbit/s between them, beside those of
# the simulator. To be run where this user is root and the network is the script's own:
#
#   unshare --user --map-root-user --net interop/marks/cells.sh NAMECAST DIRECTORY [OPTION of `namecast bench marks`…]
#
# Prints both medians and their ratio for each rule; more than a tenth apart, it fails.
set -euo pipefail

namecast=$1 home=$2 name=marks
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../link.sh"
make_link
there ip link set lo up
# What the kernel holds of a socket's datagrams has room in it.
tc qdisc add dev near0 root tbf rate 10mbit burst 3000 limit 4mb

# start_forwarders RULE: the producer's, which marks by that rule, and the consumer's at the far end.
start_forwarders() {
    cat >"$home/marks-producer.toml" <<TOML
listen = { udp = ["192.0.2.1:6363"], tcp = [], unix = ["$home/producer-$1.sock"] }
faces = { congestion = "$1" }
TOML
    cat >"$home/marks-consumer.toml" <<TOML
listen = { udp = [], tcp = [], unix = ["$home/consumer-$1.sock"] }
face = [{ uri = "udp4://192.0.2.1:6363" }]
route = [{ prefix = "/marks", face = "udp4://192.0.2.1:6363" }]
TOML
    "$namecast" forwarder --quiet --port 0 --config "$home/marks-producer.toml" >"$home/marks-producer.log" 2>&1 &
    started+=($!)
    run_there "$namecast" forwarder --quiet --port 0 --config "$home/marks-consumer.toml" >"$home/marks-consumer.log" 2>&1 &
    started+=($!)
    await "the producer's forwarder" test -S "$home/producer-$1.sock"
    await "the consumer's forwarder" test -S "$home/consumer-$1.sock"
}

for rule in nfd codel; do
    start_forwarders "$rule"
    "$namecast" bench marks --producer "unix://$home/producer-$rule.sock" --consumer "unix://$home/consumer-$rule.sock" \
        --device near0 --law "$rule" "${@:3}" || fail "marks by $rule"
    kill "${started[@]: -2}"
    say "ok  marks by $rule: the simulator's within a tenth"
done
