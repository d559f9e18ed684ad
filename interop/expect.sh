# What cells are asserted with. To be sourced.

say() { printf '%s\n' "$*"; }

fail() {
    say "FAILED  $*"
    exit 1
}

# expect CELL PATTERN COMMAND…: what the command prints has to match.
expect() {
    local cell=$1 pattern=$2 printed
    shift 2
    printed=$("$@" 2>&1) || fail "$cell: $*" "$printed"
    grep -qE -- "$pattern" <<<"$printed" || fail "$cell: nothing like '$pattern' in" "$printed"
    say "ok  $cell"
}

# watch_pictures COUNT STATS COMMAND…: a watcher, until its newest figures say that it has shown that many pictures; within a minute. A
# duration would say how busy the machine is.
watch_pictures() {
    local count=$1 stats=$2 watcher
    rm -f "$stats"
    "${@:3}" --stats "$stats" --duration 60s &
    watcher=$!
    while kill -0 "$watcher" 2>/dev/null; do
        has_shown "$count" "$stats" && kill "$watcher" && break
        sleep 0.2
    done
    wait "$watcher"
}

# has_shown COUNT STATS
has_shown() {
    local shown
    shown=$(grep -oE '"video":\{[^}]*"rendered":[0-9]+' "$2" 2>/dev/null | tail -n 1)
    ((${shown##*:} + 0 >= $1))
}
