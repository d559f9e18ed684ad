# One link between two network namespaces, for scripts that put our forwarder at its near end and another at the far end. To be
# sourced where this user is root and the network is the script's own, with $namecast, $home, and in $name what logs begin with.

source "${BASH_SOURCE%/*}/expect.sh"
started=()
trap stop_started EXIT

stop_started() {
    kill "${started[@]}" 2>/dev/null || true
    for _ in $(seq 100); do
        [[ -n $(jobs -pr) ]] || return 0
        sleep 0.1
    done
    kill -KILL $(jobs -pr) 2>/dev/null || true
}

# Shows what the logs say, too.
fail() {
    say "FAILED  $*"
    tail -n 5 "$home/$name"-*.log
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

# there COMMAND…: in the namespace of the far end, which lives as long as its first process.
there() { nsenter --target "$far" --net "$@"; }

# run_there COMMAND…: the same in the background, so that $! is the command itself and ends with it.
run_there() { exec nsenter --target "$far" --net "$@"; }

# start_ndnd NDND UDP: its forwarder at the far end, on the Unix socket $theirs; UDP is what its configuration says of that.
start_ndnd() {
    cat >"$home/$name.yml" <<YAML
core: { log_level: WARN }
faces:
  udp: { $2 }
  tcp: { enabled: false }
  unix: { enabled: true, socket_path: $home/$name-theirs.sock }
  websocket: { enabled: false }
fw: { threads: 1 }
YAML
    run_there "$1" fw run "$home/$name.yml" >"$home/$name-theirs.log" 2>&1 &
    started+=($!)
    await "ndnd's forwarder" test -S "$home/$name-theirs.sock"
    theirs=unix://$home/$name-theirs.sock
}

make_link() {
    unshare --net sleep 600 &
    far=$!
    started+=("$far")
    await "a second namespace" is_apart
    # The forwarder serves its page on this machine.
    ip link set lo up
    ip link add near0 type veth peer name far0
    ip link set far0 netns "$far"
    ip address add 192.0.2.1/24 dev near0
    ip link set near0 up
    there ip address add 192.0.2.2/24 dev far0
    there ip link set far0 up
}

is_apart() { [[ $(readlink "/proc/$far/ns/net") != $(readlink /proc/self/ns/net) ]]; }

# stream CELL NAME PRODUCER CONSUMER: from one forwarder's application to the other's, across the link; at $rate, if it is set.
stream() {
    local stats=$home/$name.json publisher
    "$namecast" publish "$2" --ladder "${rate:-200k}" --quiet --connect "$3" >"$home/$name-publish.log" 2>&1 &
    publisher=$!
    started+=("$publisher")
    watch_pictures 100 "$stats" "$namecast" watch "$2" --quiet --connect "$4" --output "$home/$name.mkv" >"$home/$name-watch.log" 2>&1 || fail "$1"
    has_shown 100 "$stats" || fail "$1: frames"
    grep -q '"verification_failures":0,"video"' <<<"$(tail -n 1 "$stats")" || fail "$1: all verified"
    say "ok  $1"
    kill "$publisher"
    { wait "$publisher"; } 2>/dev/null || true
}
