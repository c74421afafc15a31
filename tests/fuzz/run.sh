#!/bin/bash
# run.sh PROGRAM...: lets each libFuzzer program search for FUZZ_S seconds,
# starting from its corpus; what crashes stays in $BUILD/crash-*.
set -u
cd "$(dirname "$0")/../.." || exit 1
n_failed=0
for program in "$@"; do
    name=${program##*/fuzz_}
    found=$BUILD/corpus-$name
    mkdir -p "$found"
    if "$program" -max_total_time="${FUZZ_S:-20}" -timeout=10 \
        -rss_limit_mb=2048 -close_fd_mask=1 -artifact_prefix="$BUILD/crash-" \
        "$found" "tests/fuzz/corpus/$name" >"$BUILD/fuzz-$name.txt" 2>&1; then
        echo "fuzz $name: $(grep -oE 'Done [0-9]+ runs' \
            "$BUILD/fuzz-$name.txt" | tail -n 1)"
    else
        n_failed=$((n_failed + 1))
        echo "fuzz $name: FAILED"
        tail -n 30 "$BUILD/fuzz-$name.txt"
    fi
done
[ $n_failed = 0 ]
