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
