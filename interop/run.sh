#!/usr/bin/env bash
# The forwarder and its commands against other implementations of NDN, and killed and started again. Each cell is asserted;
# the first that fails ends it.
#
#   interop/run.sh            all; who cannot be had here is left out, with a line that says so
#   interop/run.sh restart    only what has to come back after kill -9, without other implementations
#   interop/run.sh python     only python-ndn
#   interop/run.sh schemas    only 10 000 verdicts of trust schemas beside python-ndn's: a fifth of them are among all
#   interop/run.sh duckdb     only DuckDB, which reads the runs of an experiment for the figure in docs/notebooks: large packages, so not
#                             among all
#   interop/run.sh ndnts      only NDNts
#   interop/run.sh ndnd       only ndnd
#   interop/run.sh nfd        only NFD with ndn-tools, where `nfd`, `nfdc`, `ndnping` and so on are on the path: no registry has them
#   interop/run.sh nlsr       only NLSR, likewise
#   interop/run.sh marks      only congestion marks beside the simulator's: ours on both sides, and a measurement of minutes, so
#                             not among all
#   interop/run.sh dumbbell   only a flow over the kernel's token bucket filter beside the simulator's, likewise
#
# What it needs goes into target/interop, and nothing into the system. NAMECAST names another binary than the one that is
# built here.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
target=${CARGO_TARGET_DIR:-$root/target}
tools=$target/interop
mkdir -p "$tools"
home=$(mktemp -d)
# Keys, and those that are remembered of others, go with the run.
export XDG_DATA_HOME=$home/data
socket=$home/node.sock
started=()

stop() {
    local process
    for process in "${started[@]}"; do
        kill "$process" 2>/dev/null || true
    done
    # Whoever does not end by itself.
    for _ in $(seq 100); do
        [[ -n $(jobs -pr) ]] || break
        sleep 0.1
    done
    for process in $(jobs -pr); do
        kill -KILL "$process" 2>/dev/null || true
    done
    wait
    rm -rf "$home"
}
trap stop EXIT
# A signal from outside: the step took too long.
trap 'fail "ended after the cell above, in: $BASH_COMMAND"' TERM INT

source "$here/expect.sh"

# eventually CELL PATTERN COMMAND…: the same, within a minute.
eventually() {
    local pattern=$2
    for _ in $(seq 120); do
        if "${@:3}" 2>&1 | grep -qE -- "$pattern"; then
            break
        fi
        sleep 0.5
    done
    expect "$@"
}

# await FILE: waits until there is something in it, or a socket.
await() {
    for _ in $(seq 600); do
        if [[ -s $1 || -S $1 ]]; then
            return
        fi
        sleep 0.1
    done
    fail "nothing came of $1"
}

build_namecast() {
    if [[ -z ${NAMECAST:-} ]]; then
        cargo build --locked --release --package namecast-cli --manifest-path "$root/Cargo.toml"
        NAMECAST=$target/release/namecast
    fi
}

# start_namecast NODE [OPTION…]: a forwarder on the Unix socket NODE.sock.
start_namecast() {
    "$NAMECAST" forwarder --json --port 0 --udp 127.0.0.1:0 --tcp 127.0.0.1:0 --unix "$home/$1.sock" "${@:2}" >"$home/$1.json" &
    started+=($!)
    await "$home/$1.json"
}

# port SCHEME [NODE]: where the forwarder listens.
port() { grep -oE "$1://127.0.0.1:[0-9]+" "$home/${2:-node}.json" | head -1 | grep -oE '[0-9]+$'; }

# fetch LOG COMMAND…: runs it for at most five minutes, and shows what it printed only if it failed.
fetch() {
    local log=$tools/$1.log
    timeout 300 "${@:2}" >"$log" 2>&1 || { tail -n 20 "$log"; return 1; }
}

# Need nothing that is not there.
build_restart() { :; }
build_marks() { :; }

restart_cells() { python3 "$here/restart/cells.py" "$NAMECAST" "$home"; }

build_dumbbell() { :; }

dumbbell_cells() { in_namespaces "dumbbell" "$here/dumbbell/cells.sh" "$NAMECAST" "$home"; }

marks_cells() { in_namespaces "marks" "$here/marks/cells.sh" "$NAMECAST" "$home"; }

# python_environment NAME PINS: Python with the packages that a file lists, in target/interop/NAME.
python_environment() {
    local directory=$tools/$1 pins=$2
    cmp -s "$pins" "$directory/requirements.txt" && return
    rm -rf "$directory"
    fetch "$1-venv" python3 -m venv "$directory" &&
        fetch "$1-pip" "$directory/bin/pip" install --quiet --requirement "$pins" &&
        cp "$pins" "$directory/"
}

build_schemas() { build_python; }

schemas_cells() { schema_verdicts 10000; }

build_python() { python_environment python "$here/python/requirements.txt"; }

build_duckdb() { python_environment duckdb "$root/docs/notebooks/requirements.txt"; }

# At 8 ms the adaptive rate control uses more than nine tenths of the link, in each of two runs.
duckdb_cells() {
    "$NAMECAST" experiment run arc/figure05 --quick --quiet --out "$home/results"
    expect "runs.parquet, as DuckDB reads it" "^ARC, 8, 0\\.9[0-9]+, 0\\.[0-9]+, 2$" "$tools/duckdb/bin/python" \
        "$root/docs/notebooks/arc_figure05.py" "$home/results/arc/figure05/runs.parquet" "$home/figure05.svg"
    expect "its figure" "</svg>" tail -n 1 "$home/figure05.svg"
}

python_cells() {
    "$tools/python/bin/python" "$here/python/management.py" "$socket" "$(port tcp4)" "$(port udp4)"
    "$tools/python/bin/python" "$here/python/metrics.py" "http://127.0.0.1:$(port http)"
    export NDN_CLIENT_TRANSPORT=unix://$socket
    expect "pynfdc: Get-Status" "namecast-" "$tools/python/bin/pynfdc" Get-Status
    expect "pynfdc: Get-Face" "internal://management" "$tools/python/bin/pynfdc" Get-Face
    schema_verdicts 2000
}

# schema_verdicts TRIPLES: of trust schemas, beside python-ndn's, which takes 7 ms a triple.
schema_verdicts() {
    local schemas triples=$1
    # A build for tests has built this, too.
    schemas=$(dirname "$NAMECAST")/examples/schemas
    if [ ! -x "$schemas" ]; then
        cargo build --locked --release --package namecast-apps --example schemas --manifest-path "$root/Cargo.toml"
        schemas=$target/release/examples/schemas
    fi
    "$tools/python/bin/python" "$here/python/schemas.py" live 7 "$triples" "$schemas"
}

build_ndnts() {
    local directory=$tools/ndnts
    mkdir -p "$directory"
    cp "$here"/ndnts/{package.json,cells.js,objects.js,stranger.js} "$directory/"
    cmp -s "$here/ndnts/package-lock.json" "$directory/installed.json" && return
    cp "$here/ndnts/package-lock.json" "$directory/"
    (cd "$directory" && fetch ndnts-npm npm ci --ignore-scripts --no-audit --no-fund) &&
        cp "$directory/package-lock.json" "$directory/installed.json"
}

# NDNts takes a peer over UDP or WebSocket for another machine, and registers under /localhop there.
ndnts_cells() {
    local at=$home/ndnts.sock
    cat >"$home/ndnts.toml" <<TOML
listen = { udp = ["127.0.0.1:0"], tcp = ["127.0.0.1:0"], unix = ["$at"] }
management = { localhop = true }
web = { websocket-local = true }
TOML
    "$NAMECAST" forwarder --json --port 0 --config "$home/ndnts.toml" >"$home/ndnts.json" &
    started+=($!)
    await "$home/ndnts.json"
    node "$tools/ndnts/cells.js" "$at" "$(port tcp4 ndnts)" "$(port udp4 ndnts)" "$(port http ndnts)"
    node "$tools/ndnts/objects.js" "$NAMECAST" "$at"
}

build_ndnd() {
    local directory=$tools/ndnd
    ndnd=$directory/ndnd
    mkdir -p "$directory"
    [[ -x $ndnd ]] && cmp -s "$here/ndnd/go.mod" "$directory/built.mod" && return
    cp "$here/ndnd/go.mod" "$directory/"
    (cd "$directory" && GOFLAGS=-mod=mod fetch ndnd-go go build -o ndnd github.com/named-data/ndnd/cmd/ndnd) &&
        cp "$here/ndnd/go.mod" "$directory/built.mod"
}

ndnd_cells() {
    ndnd_tools
    ndnd_objects
    ndnd_forwarder
    ndnd_support
    ndnd_stream
    ndnd_send
    ndnd_people
    ndnd_multicast
    ndnd_strangers
    ndnd_routing
    ndnd_schemas
    ndnd_group
}

# Schemas without functions, at which ndnd stops, with python-ndn's verdicts; ours are compared with those in python_cells.
ndnd_schemas() {
    build_python || return 0
    mkdir -p "$tools/ndnd/schemas"
    cp "$here/ndnd/schemas/main.go" "$tools/ndnd/schemas/"
    (cd "$tools/ndnd" && GOFLAGS=-mod=mod fetch ndnd-schemas go build -o ndnd-schemas ./schemas)
    "$tools/python/bin/python" "$here/python/schemas.py" check 7 1000 "$tools/ndnd/ndnd-schemas"
}

# State Vector Sync v3 of ndnd, NDNts and ours in one group at our forwarder. NDNts takes vectors by the name of the Sync Interest alone, which ndnd's
# do not have: it learns of ndnd's member from ours.
ndnd_group() {
    local group=/interop/group example ndnts=()
    example=$(dirname "$NAMECAST")/examples/group
    if [ ! -x "$example" ]; then
        cargo build --locked --release --package namecast-net --example group --manifest-path "$root/Cargo.toml"
        example=$target/release/examples/group
    fi
    mkdir -p "$tools/ndnd/group"
    cp "$here/ndnd/group/main.go" "$tools/ndnd/group/"
    (cd "$tools/ndnd" && GOFLAGS=-mod=mod fetch ndnd-group go build -o ndnd-group ./group)
    "$NAMECAST" strategy set "$group" /localhost/nfd/strategy/multicast/v=1 --connect "unix://$socket" >"$home/group-strategy.log"
    "$example" "$socket" "$group" "$group/ours" 3 >"$home/group-ours.log" &
    started+=($!)
    NDN_CLIENT_TRANSPORT=unix://$socket "$tools/ndnd/ndnd-group" "$group" "$group/ndnd" 3 >"$home/group-ndnd.log" &
    started+=($!)
    if build_ndnts; then
        cp "$here/ndnts/group.js" "$tools/ndnts/"
        node "$tools/ndnts/group.js" "$socket" "$group" "$group/ndnts" 3 >"$home/group-ndnts.log" &
        started+=($!)
        ndnts=(ndnts)
    fi
    local all=" $group/ndnd=3${ndnts:+ $group/ndnts=3} $group/ours=3" member
    for member in ours ndnd "${ndnts[@]}"; do
        eventually "state vectors in one group: $member learns of all" "^vector$all\$" cat "$home/group-$member.log"
    done
}

ndnd_multicast() { in_namespaces "multicast between ours and ndnd" "$here/ndnd/multicast.sh" "$NAMECAST" "$ndnd" "$home"; }

ndnd_strangers() {
    local ndnts=
    build_ndnts && ndnts=$tools/ndnts
    in_namespaces "strangers over UDP" "$here/ndnd/strangers.sh" "$NAMECAST" "$ndnd" "$ndnts" "$home"
}

# in_namespaces WHAT COMMAND…: a command as root of a network of its own, in which it may make links; left out where none may be.
in_namespaces() {
    local apart=(unshare --user --map-root-user --net --mount) reason
    # Real-time priority, which relays take where they may, is not for those who are root in a namespace only.
    [[ $(id -u) != 0 ]] || apart=(unshare --net --mount)
    if ! reason=$("${apart[@]}" sh -c 'ip link add near0 type veth peer name far0 && command -v nsenter' 2>&1); then
        say "no $1, as no namespace with a link can be made: $reason"
        return
    fi
    "${apart[@]}" "${@:2}"
}

# ndnd's tools at our forwarder.
ndnd_tools() {
    export NDN_CLIENT_TRANSPORT=unix://$socket
    local peer=udp4://127.0.0.1:9
    expect "ndnd: fw status" "namecast-" "$ndnd" fw status
    expect "ndnd: fw face-create" "200" "$ndnd" fw face-create "remote=$peer"
    expect "ndnd: fw face-list" "$peer" "$ndnd" fw face-list
    local face
    face=$("$NAMECAST" face show "$peer" --json --connect "unix://$socket" | grep -oE '"face": [0-9]+' | grep -oE '[0-9]+')
    expect "ndnd: fw route-add" "200" "$ndnd" fw route-add prefix=/interop/ndnd "face=$face" cost=7
    expect "ndnd: fw route-list" "/interop/ndnd" "$ndnd" fw route-list
    expect "ndnd: fw fib-list" "/interop/ndnd" "$ndnd" fw fib-list
    expect "ndnd: fw route-remove" "200" "$ndnd" fw route-remove prefix=/interop/ndnd "face=$face"
    expect "ndnd: fw strategy-set" "200" "$ndnd" fw strategy-set prefix=/interop/ndnd \
        strategy=/localhost/nfd/strategy/multicast/v=1
    expect "ndnd: fw strategy-list" "multicast" "$ndnd" fw strategy-list
    expect "ndnd: fw cs-info" "[Cc]apacity" "$ndnd" fw cs-info
    expect "ndnd: fw face-destroy" "200" "$ndnd" fw face-destroy "face=$face"
}

# serve COMMAND…: a server of something, for what comes after.
serve() {
    "$@" >"$home/serve.log" 2>&1 <"$home/object" &
    started+=($!)
    serving+=($!)
}

# copy_of COMMAND…: whether the command prints the object, within five minutes.
copy_of() {
    for _ in $(seq 20); do
        timeout --kill-after=1 15 "$@" >"$home/copy" 2>"$home/copy.log" && cmp "$home/object" "$home/copy" && return
        sleep 1
    done
    cat "$home/copy.log"
    return 1
}

# Objects and pings each way, through our forwarder.
ndnd_objects() {
    local at=(--connect "unix://$socket")
    export NDN_CLIENT_TRANSPORT=unix://$socket
    local serving=()
    head -c 100000 /dev/urandom >"$home/object"
    serve "$ndnd" put --expose /interop/theirs
    expect "namecast peek --object of what ndnd put serves" "" copy_of "$NAMECAST" peek /interop/theirs --object "${at[@]}"
    serve "$NAMECAST" put /interop/ours "${at[@]}"
    expect "ndnd cat of what namecast put serves" "" copy_of "$ndnd" cat /interop/ours
    serve "$NAMECAST" send "$home/object" /interop/sent "${at[@]}"
    expect "ndnd cat of what namecast send offers" "" copy_of "$ndnd" cat /interop/sent
    serve "$ndnd" pingserver --expose /interop/ping-theirs
    eventually "namecast ping, of ndnd pingserver" "2 sent, 2 answered" \
        "$NAMECAST" ping /interop/ping-theirs --count 2 --interval 100ms --lifetime 1s "${at[@]}"
    serve "$NAMECAST" ping /interop/ping-ours --serve "${at[@]}"
    eventually "ndnd ping, of namecast ping --serve" "2 received" "$ndnd" ping -c 2 /interop/ping-ours
    # Before the forwarder: without it, ndnd takes minutes to give its prefixes back.
    kill "${serving[@]}"
    for _ in $(seq 100); do
        kill -0 "${serving[@]}" 2>/dev/null || break
        sleep 0.1
    done
    kill -KILL "${serving[@]}" 2>/dev/null || true
    { wait "${serving[@]}"; } 2>/dev/null || true
}

# Our commands at ndnd's forwarder.
ndnd_forwarder() {
    local theirs=$home/ndnd.sock
    cat >"$home/ndnd.yml" <<YAML
core: { log_level: WARN }
faces:
  udp: { enabled_unicast: true, enabled_multicast: false, port_unicast: 0 }
  tcp: { enabled: false }
  unix: { enabled: true, socket_path: $theirs }
  websocket: { enabled: false }
fw: { threads: 1 }
YAML
    "$ndnd" fw run "$home/ndnd.yml" >"$home/ndnd.log" 2>&1 &
    started+=($!)
    await "$theirs"
    local at=(--connect "unix://$theirs") peer=udp4://127.0.0.1:9
    expect "namecast face create, at ndnd" "$peer" "$NAMECAST" face create "$peer" "${at[@]}"
    expect "namecast face list, at ndnd" "$peer" "$NAMECAST" face list "${at[@]}"
    expect "namecast face show, at ndnd" "this machine|another machine" "$NAMECAST" face show "$peer" "${at[@]}"
    expect "namecast route add, at ndnd" "cost 7" "$NAMECAST" route add /interop "$peer" --cost 7 "${at[@]}"
    expect "namecast route list, at ndnd" "/interop +[0-9]+ +$peer +7 +static" "$NAMECAST" route list "${at[@]}"
    expect "namecast route remove, at ndnd" "any more" "$NAMECAST" route remove /interop "$peer" "${at[@]}"
    expect "namecast strategy set, at ndnd" "multicast" "$NAMECAST" strategy set /interop \
        /localhost/nfd/strategy/multicast/v=1 "${at[@]}"
    expect "namecast strategy list, at ndnd" "/interop +/localhost/nfd/strategy/multicast" "$NAMECAST" strategy list "${at[@]}"
    expect "namecast strategy unset, at ndnd" "shorter" "$NAMECAST" strategy unset /interop "${at[@]}"
    expect "namecast cs info, at ndnd" "packets" "$NAMECAST" cs info "${at[@]}"
    expect "namecast cs config, at ndnd" "at most 99$" "$NAMECAST" cs config --capacity 99 "${at[@]}"
    expect "namecast status, at ndnd" "Content store" "$NAMECAST" status "${at[@]}"
    expect "namecast face destroy, at ndnd" "is gone" "$NAMECAST" face destroy "$peer" "${at[@]}"
}

# The question of our links whether a neighbour speaks our link header fields.
ndnd_support() {
    expect "extension fields: ndnd passes the question over" "answers: no" python3 "$here/support.py" "$home/ndnd.sock" no
    expect "extension fields: ours answers" "answers: yes" python3 "$here/support.py" "$socket" yes
}

# start_hops HOPS NODE [TEXT]: the same with these hops, and more in its file.
start_hops() {
    local hops=$1
    shift
    cat >"$home/$1.toml" <<TOML
hops = [$hops]
listen = { udp = ["127.0.0.1:0"], tcp = [], unix = ["$home/$1.sock"] }
${2:-}
TOML
    "$NAMECAST" forwarder --json --port 0 --config "$home/$1.toml" >"$home/$1.json" &
    started+=($!)
    await "$home/$1.json"
}

# beyond SOCKET: the part of a node's file by which everything is requested through the forwarder at a Unix socket.
beyond() {
    cat <<TOML
[[face]]
uri = "unix://$1"
[[route]]
prefix = "/"
face = "unix://$1"
TOML
}

# A live stream over three forwarders, of which ndnd's is the middle one: what ours would tell of paths ends there.
ndnd_stream() {
    local theirs=$home/ndnd.sock
    # They tell consumers about paths.
    local hops='"rate-feedback", "path-labels"'
    start_hops "$hops" far
    start_hops "$hops" near "$(beyond "$theirs")"
    expect "namecast route add, at ndnd, to a publisher's forwarder" "cost 1" "$NAMECAST" route add /interop/cam \
        "udp4://127.0.0.1:$(port udp4 far)" --cost 1 --connect "unix://$theirs"
    "$NAMECAST" publish /interop/cam --ladder 200k --quiet --connect "unix://$home/far.sock" &
    started+=($!)
    watch_pictures 100 "$home/watch.json" "$NAMECAST" watch /interop/cam --quiet --connect "unix://$home/near.sock" --output "$home/film.mkv" ||
        fail "a stream over ours, ndnd and ours"
    expect "a stream over ours, ndnd and ours: frames" "" has_shown 100 "$home/watch.json"
    expect "a stream over ours, ndnd and ours: all verified" '"verification_failures":0,"video"' tail -n 1 "$home/watch.json"
    expect "the same: ndnd is not taken for a neighbour that knows our fields" '"speaks_extensions": ?false' \
        "$NAMECAST" status --json --port "$(grep -oE 'http://127.0.0.1:[0-9]+' "$home/far.json" | grep -oE '[0-9]+$')"
}

# A file for three receivers over the same three forwarders: ours count requests, and ndnd's in the middle does not. One receiver is
# killed and begins again.
ndnd_send() {
    local theirs=$home/ndnd.sock cell="files sent over ours, ndnd and ours" killed
    start_hops '"any-next"' sender
    start_hops '"any-next"' receivers "$(beyond "$theirs")"
    expect "namecast route add, at ndnd, to a sender's forwarder" "cost 1" "$NAMECAST" route add /interop/film \
        "udp4://127.0.0.1:$(port udp4 sender)" --cost 1 --connect "unix://$theirs"
    head -c 3000000 /dev/urandom >"$home/film"
    "$NAMECAST" send "$home/film" /interop/film --policy 10M --connect "unix://$home/sender.sock" >"$home/send.log" 2>&1 &
    started+=($!)
    receive_film killed >"$home/killed.log" 2>&1 &
    killed=$!
    receive_film second >"$home/second.log" 2>&1 &
    other=$!
    sleep 1
    kill -9 "$killed"
    { wait "$killed"; } 2>/dev/null || true
    expect "$cell: the first" "" receive_film first
    expect "$cell: one that was killed and begins again" "" receive_film killed
    wait "$other" || fail "$cell: the second: $(cat "$home/second.log")"
    for other in first second killed; do
        cmp "$home/film" "$home/film-$other/film" || fail "$cell: another file came to the $other"
    done
    say "ok  $cell: all have the same file"
}

# receive_film RECEIVER: into a folder of its own, within a minute.
receive_film() {
    mkdir -p "$home/film-$1"
    exec "$NAMECAST" receive /interop/film --into "$home/film-$1" --duration 60s --connect "unix://$home/receivers.sock"
}

# Two people, one at our forwarder, which takes Data and an Interest in one packet, and one at ndnd's, which does not.
ndnd_people() {
    local theirs=unix://$home/ndnd.sock
    cat >"$home/people.toml" <<TOML
hops = ["piggyback"]
listen = { udp = ["127.0.0.1:0"], tcp = [], unix = ["$home/people.sock"] }
[[face]]
uri = "$theirs"
[[route]]
prefix = "/interop/bob"
face = "$theirs"
TOML
    "$NAMECAST" forwarder --json --port 0 --config "$home/people.toml" >"$home/people.json" &
    started+=($!)
    await "$home/people.json"
    expect "namecast route add, at ndnd, to a person's forwarder" "cost 1" "$NAMECAST" route add /interop/alice \
        "udp4://127.0.0.1:$(port udp4 people)" --cost 1 --connect "$theirs"
    local near=(--connect "unix://$home/people.sock") far=(--connect "$theirs") other
    people_exchange
    people_talk
    people_remote
}

people_exchange() {
    local cell="files that cross between ours and ndnd"
    mkdir "$home/to-alice" "$home/to-bob"
    head -c 300000 /dev/urandom >"$home/alice.bin"
    head -c 200000 /dev/urandom >"$home/bob.bin"
    "$NAMECAST" exchange /interop/bob /interop/alice "$home/bob.bin" --into "$home/to-bob" --duration 30s "${far[@]}" >"$home/exchange.log" 2>&1 &
    other=$!
    expect "$cell: at ours" "verified" "$NAMECAST" exchange /interop/alice /interop/bob "$home/alice.bin" --into "$home/to-alice" \
        --duration 30s "${near[@]}"
    wait "$other" || fail "$cell: $(cat "$home/exchange.log")"
    expect "$cell: at ndnd" "verified" cat "$home/exchange.log"
    cmp "$home/alice.bin" "$home/to-bob/alice.bin" && cmp "$home/bob.bin" "$home/to-alice/bob.bin" || fail "$cell: other files"
}

people_talk() {
    local cell="a call between ours and ndnd" heard='"packets_played":[1-9][0-9]'
    ffmpeg -loglevel error -f lavfi -i sine=frequency=330:duration=3 "$home/spoken.wav"
    local sound=(--input "$home/spoken.wav" --output)
    "$NAMECAST" talk /interop/bob --answer "${sound[@]}" "$home/bob.wav" --stats "$home/bob.json" --duration 30s "${far[@]}" >"$home/talk.log" 2>&1 &
    other=$!
    "$NAMECAST" talk /interop/alice /interop/bob "${sound[@]}" "$home/alice.wav" --stats "$home/alice.json" --quiet \
        --duration 10s "${near[@]}" || fail "$cell"
    wait "$other" || fail "$cell: $(cat "$home/talk.log")"
    expect "$cell: heard at ours" "$heard" tail -n 1 "$home/alice.json"
    expect "$cell: heard at ndnd" "$heard" tail -n 1 "$home/bob.json"
}

people_remote() {
    key_digest /interop/alice >"$home/authorised"
    "$NAMECAST" remote /interop/bob --serve --shell /bin/sh --authorised-keys "$home/authorised" "${far[@]}" >"$home/remote.log" 2>&1 &
    started+=($!)
    expect "a terminal at ndnd, from ours" "6 times 7 is 42" work_at "$(key_digest /interop/bob)" "${near[@]}"
}

# work_at DIGEST OPTION…: what a program prints at /interop/bob, whose key has this digest.
work_at() {
    echo 'echo "6 times 7 is $((6 * 7))"; exit' |
        "$NAMECAST" remote /interop/alice /interop/bob --key "$1" --duration 30s "${@:2}"
}

# key_digest NAME: the SHA-256 of its key, as people compare it.
key_digest() {
    "$NAMECAST" key "$1" >"$home/certificate"
    "$NAMECAST" key trust "$1" "$home/certificate" --known-keys "$home/compared" >/dev/null 2>&1
    tail -n 1 "$home/compared" | cut -d ' ' -f 2
}

# start_router ROUTER: a forwarder that tells a routing daemon what applications register.
start_router() {
    cat >"$home/r$1.toml" <<TOML
listen = { udp = ["127.0.0.1:0"], tcp = [], unix = ["$home/r$1.sock"] }
rib = { readvertise-nlsr = true }
TOML
    "$NAMECAST" forwarder --json --port 0 --config "$home/r$1.toml" >"$home/r$1.json" &
    started+=($!)
    await "$home/r$1.json"
}

# start_daemon ROUTER: its routing daemon; its process is $daemon.
start_daemon() {
    NDN_CLIENT_TRANSPORT=unix://$home/r$1.sock "$ndnd" dv run "$home/dv$1.yml" >"$home/dv$1.log" 2>&1 &
    daemon=$!
    started+=("$daemon")
}

# ndnd's routing daemon at two of our forwarders, which it makes neighbours.
ndnd_routing() {
    local router other daemon
    start_router 1
    start_router 2
    for router in 1 2; do
        other=$((3 - router))
        cat >"$home/dv$router.yml" <<YAML
dv:
  network: /net
  router: /net/r$router
  keychain: insecure
  advertise_interval: 1000
  router_dead_interval: 5000
  neighbors: [{ uri: "udp4://127.0.0.1:$(port udp4 r$other)" }]
YAML
        start_daemon "$router"
    done
    for router in 1 2; do
        other=$((3 - router))
        eventually "ndnd: dv at router $router reaches router $other" "now reachable.* name=/net/r$other" cat "$home/dv$router.log"
        eventually "ndnd: dv at router $router makes routes to router $other" "/net/32=DV/32=PFS/net/r$other .* nlsr" \
            "$NAMECAST" route list --connect "unix://$home/r$router.sock"
        expect "ndnd: dv at router $router chooses multicast" "32=svs +/localhost/nfd/strategy/multicast" \
            "$NAMECAST" strategy list --connect "unix://$home/r$router.sock"
    done
    ndnd_readvertised
}

# An application registers at router 2 and nowhere else; also after one of the daemons was killed.
ndnd_readvertised() {
    local application
    register_at 2 1
    kill -9 "$daemon"
    { wait "$daemon"; } 2>/dev/null || true
    eventually "the daemon at router 2 is killed: its forwarder notices" '"daemons": 0' status_of 2
    start_daemon 2
    eventually "the daemon at router 2 comes back: it is told again" '"told": [1-9]' status_of 2
    eventually "the daemon at router 2 comes back: it has announced the prefix again" \
        "Local announce.*/interop/app" cat "$home/dv2.log"
    eventually "the daemon at router 2 comes back: router 1 has a route" "/interop/app .* nlsr" routes_of 1
    kill "$application"
    eventually "the application ends: the daemon takes its prefix back" "Local withdraw.*/interop/app" cat "$home/dv2.log"
    eventually "the application ends: router 1 has no route any more" "^gone$" lost_by 1
}

routes_of() { "$NAMECAST" route list --connect "unix://$home/r$1.sock"; }
status_of() { "$NAMECAST" status --json --connect "unix://$home/r$1.sock"; }
lost_by() { routes_of "$1" | grep -q "/interop/app .* nlsr" || say gone; }

# register_at FAR NEAR: an application registers at router FAR; the daemons tell router NEAR. Its process is $application.
register_at() {
    local cell="an application registers at router $1"
    "$NAMECAST" publish /interop/app --ladder 200k --quiet --announce never --connect "unix://$home/r$1.sock" &
    application=$!
    started+=("$application")
    eventually "$cell: the daemon there is told" '"told": [1-9]' status_of "$1"
    eventually "$cell: router $2 has a route" "/interop/app .* nlsr" routes_of "$2"
    watch_pictures 10 "$home/routed.json" "$NAMECAST" watch /interop/app --quiet --connect "unix://$home/r$2.sock" --output "$home/routed.mkv" ||
        fail "$cell"
    expect "$cell: a consumer at router $2 reaches it" "" has_shown 10 "$home/routed.json"
}

# Whoever has these has built them.
build_nfd() { :; }
build_nlsr() { :; }

nfd_cells() {
    ndn_tools
    in_namespaces "NFD" "$here/nfd/cells.sh" "$NAMECAST" "$home"
}

# tool COMMAND…: an application of ndn-cxx at our forwarder, with keys of its own: they do not wait for each other's.
tool() {
    mkdir -p "$home/keys-$1"
    HOME=$home/keys-$1 NDN_CLIENT_TRANSPORT=unix://$socket "$@"
}

ndn_tools() {
    tool ndnpingserver /interop/ping >"$home/ping.log" 2>&1 &
    started+=($!)
    eventually "ndn-tools: ndnping, ndnpingserver" "3 received, 0 nacked" tool ndnping -c 3 -i 100 /interop/ping
    head -c 3000000 /dev/urandom >"$home/file"
    tool ndnputchunks /interop/file <"$home/file" >"$home/chunks.log" 2>&1 &
    started+=($!)
    eventually "ndn-tools: ndnputchunks, ndncatchunks: 3 MB come whole" "^same$" catch_chunks
}

catch_chunks() { tool ndncatchunks -q /interop/file 2>/dev/null | cmp - "$home/file" && say same; }

# Two routers of NLSR at two of our forwarders, which are told of each other's prefixes and of applications' by no command.
nlsr_cells() {
    local router other application
    start_router 3
    start_router 4
    start_nlsr 3 4
    start_nlsr 4 3
    for router in 3 4; do
        other=$((7 - router))
        eventually "NLSR at router $router makes routes to what router $other advertises" "/net/site/of-r$other .* nlsr" routes_of "$router"
    done
    expect "NLSR: routes without end have none" "/localhop/net/nlsr/LSA .* nlsr .* never" routes_of 3
    register_at 4 3
    kill "$application"
    eventually "the application ends: router 3 has no route any more" "^gone$" lost_by 3
}

# start_nlsr ROUTER NEIGHBOUR: NLSR takes faces that are there.
start_nlsr() {
    local port
    port=$(port udp4 "r$2")
    "$NAMECAST" face create "udp4://127.0.0.1:$port" --connect "unix://$home/r$1.sock" >"$home/nlsr-face.log"
    mkdir "$home/nlsr$1"
    sed "s|ROUTER|r$1|; s|NEIGHBOUR|r$2|; s|PORT|$port|; s|STATE|$home/nlsr$1|" "$here/nlsr/nlsr.conf" >"$home/nlsr$1.conf"
    HOME=$home/nlsr$1 NDN_CLIENT_TRANSPORT=unix://$home/r$1.sock nlsr -f "$home/nlsr$1.conf" >"$home/nlsr$1.log" 2>&1 &
    started+=($!)
}

# obtain PEER: fetches and builds what a peer takes.
obtain() {
    local tool wants
    case $1 in
        restart | python | schemas | duckdb) wants=(python3) ;;
        marks | dumbbell) wants=(unshare nsenter ip tc) ;;
        ndnts) wants=(npm) ;;
        ndnd) wants=(go) ;;
        nfd) wants=(nfd nfdc ndnping ndnpingserver ndnputchunks ndncatchunks) ;;
        nlsr) wants=(nlsr) ;;
    esac
    for tool in "${wants[@]}"; do
        if ! command -v "$tool" >/dev/null; then
            say "no $1, as there is no $tool here"
            return 1
        fi
    done
    "build_$1"
}

peers=(restart python schemas duckdb ndnts ndnd nfd nlsr marks dumbbell)
wanted=${1:-all}
if [[ ! " all ${peers[*]} " == *" $wanted "* ]]; then
    say "expected ${peers[*]} or nothing"
    exit 2
fi
build_namecast
start_namecast node
left_out=()
for peer in "${peers[@]}"; do
    if [[ $wanted != "$peer" && ($wanted != all || " marks dumbbell duckdb schemas " == *" $peer "*) ]]; then
        continue
    elif obtain "$peer"; then
        "${peer}_cells"
    elif [[ $wanted == all ]]; then
        left_out+=("$peer")
    else
        exit 1
    fi
done
say "all cells hold${left_out[*]:+; left out, since they cannot be had here: ${left_out[*]}}"
