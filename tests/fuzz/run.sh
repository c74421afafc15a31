#!/bin/bash
# run.sh PROGRAM...: lets each libFuzzer program search for FUZZ_S seconds, as
# many at once as there are processors, starting from its corpus; what crashes
# stays in $BUILD/crash-*.
set -u
cd "$(dirname "$0")/../.." || exit 1
export BUILD FUZZ_S=${FUZZ_S:-20}

search() { # PROGRAM
    local name=${1##*/fuzz_}
    local found=$BUILD/corpus-$name log=$BUILD/fuzz-$name.txt
    mkdir -p "$found"
    if "$1" -max_total_time="$FUZZ_S" -timeout=10 -rss_limit_mb=2048 \
        -close_fd_mask=1 -artifact_prefix="$BUILD/crash-" \
        "$found" "tests/fuzz/corpus/$name" >"$log" 2>&1; then
        echo "fuzz $name: $(grep -oE 'Done [0-9]+ runs' "$log" | tail -n 1)"
    else
        echo "fuzz $name: FAILED"
        tail -n 30 "$log"
        return 1
    fi
}
export -f search

printf '%s\0' "$@" | xargs -0 -n 1 -P "$(nproc)" bash -c 'search "$0"'
