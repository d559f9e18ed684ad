#!/usr/bin/env bash
# A flow over two of our forwarders, each in a network namespace of its own, with a token bucket filter of the kernel and its queue
# between them, beside the simulator. To be run where this user is root and the network is the script's own:
#
#   unshare --user --map-root-user --net interop/dumbbell/cells.sh NAMECAST DIRECTORY [OPTION of `namecast bench dumbbell`…]
#
# The queue holds 50 packets of 1074 octets and 42 of headers. The delay is netem's, where the kernel has it, else that of `namecast impair`,
# which has no rate and no queue there.
set -euo pipefail

namecast=$1 home=$2 name=dumbbell
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../link.sh"
# What is measured are milliseconds: other programs wait, where this user may say so.
urgent=()
! chrt --fifo 10 true 2>/dev/null || urgent=(chrt --fifo 10)
make_link
there ip link set lo up
# A burst of one packet: a link has none, and a frame's wait is then the same.
tc qdisc add dev near0 root tbf rate 10mbit burst 1200 limit $((50 * 1116))
producer=udp4://192.0.2.1:6363
if there tc qdisc add dev far0 root netem delay 20ms limit 1000 2>"$home/dumbbell-netem.log"; then
    say "the delay is netem's"
else
    say "this kernel has no netem: the delay is that of namecast impair"
    run_there "${urgent[@]}" "$namecast" impair --listen 127.0.0.1:6464 --to 192.0.2.1:6363 --delay 10ms --quiet >"$home/dumbbell-impair.log" 2>&1 &
    started+=($!)
    producer=udp4://127.0.0.1:6464
fi
cat >"$home/dumbbell-producer.toml" <<TOML
listen = { udp = ["192.0.2.1:6363"], tcp = [], unix = ["$home/producer.sock"] }
TOML
cat >"$home/dumbbell-consumer.toml" <<TOML
listen = { udp = [], tcp = [], unix = ["$home/consumer.sock"] }
face = [{ uri = "$producer" }]
route = [{ prefix = "/dumbbell", face = "$producer" }]
TOML
"${urgent[@]}" "$namecast" forwarder --quiet --port 0 --config "$home/dumbbell-producer.toml" >"$home/dumbbell-producer.log" 2>&1 &
started+=($!)
run_there "${urgent[@]}" "$namecast" forwarder --quiet --port 0 --config "$home/dumbbell-consumer.toml" >"$home/dumbbell-consumer.log" 2>&1 &
started+=($!)
await "the producer's forwarder" test -S "$home/producer.sock"
await "the consumer's forwarder" test -S "$home/consumer.sock"
"${urgent[@]}" "$namecast" bench dumbbell --producer "unix://$home/producer.sock" --consumer "unix://$home/consumer.sock" --device near0 "${@:3}" ||
    fail "a flow over the kernel's queue"
say "ok  a flow over the kernel's queue: utilisation and mean wait are the simulator's within a tenth"
