#!/usr/bin/env bash
# Has ns-3 carry the packets that crates/sim/tests/ns3.rs writes, compares each packet's fate with that of our link, and writes what the
# test compares with: crates/sim/tests/fixtures/ns3.csv.
#
#   apt-get install g++ pkg-config libns3-dev libgsl-dev
#   interop/ns3/run.sh
#
# Not part of `make test`, which compares with the file.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$(dirname "$here")")
results=$root/crates/sim/tests/fixtures/ns3.csv
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT

# shellcheck disable=SC2046 # several words
g++ -O2 -std=c++17 -o "$directory/link" "$here/link.cc" \
    $(pkg-config --cflags --libs ns3-core ns3-network ns3-point-to-point)
# The test is built with the file, of which it needs nothing here.
[[ -e $results ]] || touch "$results"
NS3_SCHEDULES=$directory cargo test --quiet --locked --manifest-path "$root/Cargo.toml" --package namecast-sim --test all -- \
    --ignored --exact ns3::write_schedules

echo schedule,packet,dropped,transit-ns >"$directory/ns3.csv"
for name in one-arc one-aimd one-window 32-arc 32-aimd bursts bursts-3-mbit; do
    "$directory/link" <"$directory/$name.schedule" >"$directory/$name.ns3"
    awk -v name="$name" 'function flush() { printf "%s,%d,%d,%.0f\n", name, first, dropped, transit; dropped = transit = 0 }
        (NR - 1) % 100 == 0 { if (NR > 1) flush(); first = NR - 1 }
        $3 == "dropped" { dropped++; next } { transit += $3 - $1 } END { flush() }' "$directory/$name.ns3" >>"$directory/ns3.csv"
    paste -d ' ' "$directory/$name.ns3" "$directory/$name.ours" | awk -v name="$name" '
        { if ($3 == "dropped" || $6 == "dropped") { if ($3 != $6) otherwise++ } else { apart = $3 - $6; if (apart < 0) apart = -apart; if (apart > most) most = apart } }
        $3 == "dropped" { dropped++ }
        END { printf "%s: %d packets, %d dropped; %d with another fate; times at most %d ns apart\n", name, NR, dropped, otherwise, most }'
done
mv "$directory/ns3.csv" "$results"
