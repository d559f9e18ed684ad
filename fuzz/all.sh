#!/bin/sh
# Fuzzes targets in turn, each for an equal share of the time: `all.sh MINUTES TARGET…`. What each found stays in corpus/. Reports at the
# end which targets failed. A target that failed gets no further turn.
set -u

minutes=$1
shift
# Longest turn in seconds, so that each target has run soon.
turn=120

share=$((minutes * 60 / $#))
if [ "$share" -lt 1 ]; then
    echo "MINUTES=$minutes leaves less than a second for each of $# targets: give at least $((($# + 59) / 60))" >&2
    exit 2
fi
rounds=$(((share + turn - 1) / turn))
failed=
round=1
while [ "$round" -le "$rounds" ]; do
    # What division leaves over goes to the later rounds.
    seconds=$((share * round / rounds - share * (round - 1) / rounds))
    for target; do
        case " $failed " in
        *" $target "*) continue ;;
        esac
        echo "[fuzz] $target: round $round of $rounds, $seconds s"
        ${MAKE:-make} --no-print-directory "$target" SECONDS="$seconds" || failed="$failed $target"
    done
    round=$((round + 1))
done
if [ -n "$failed" ]; then
    echo "[fuzz] failed:$failed; inputs in fuzz/artifacts/" >&2
    exit 1
fi
echo "[fuzz] $# targets passed, $share s each"
