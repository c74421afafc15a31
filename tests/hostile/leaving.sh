# Runs that are stopped and killed: nobody waits, nothing is left.
left() { # what is left of the run: processes of this session, files
    pgrep -f "forerun run $PWD/plan.json" | grep -v "^$$\$"
    ls -d "$TMPDIR"/forerun-?????? "$TMPDIR"/ompi.* /dev/shm/vader_segment.* 2>/dev/null
}

# leaves NAME SIGNAL STOP OPTION...: the run, whose mpirun is stopped first where
# STOP is 1, gets the signal and says so; sets `out`, `rc`.
leaves() {
    local name=$1 signal=$2 stop=$3 before mpirun supervisor waited=0
    shift 3
    before=$(ls -d /dev/shm/vader_segment.* 2>/dev/null | sort)
    # What a script starts with `&` ignores SIGINT, and SIGHUP under nohup.
    env --default-signal=INT,HUP \
        forerun run "$PWD/plan.json" --steps 1000000 --timeout 5 --json -q "$@" \
        >answer 2>error &
    supervisor=$!
    for _ in $(seq 100); do
        mpirun=$(pgrep -P $supervisor mpirun)
        [ -n "$mpirun" ] && [ "$(pgrep -c -P "$mpirun")" -ge 2 ] && break
        sleep 0.1
    done
    sleep 1
    [ "$stop" = 1 ] && kill -STOP "$mpirun"
    kill "-$signal" $supervisor
    while kill -0 $supervisor 2>/dev/null && [ $waited -lt 150 ]; do
        sleep 0.1
        waited=$((waited + 1))
    done
    kill -KILL $supervisor 2>/dev/null
    wait $supervisor 2>/dev/null
    rc=$?
    for _ in $(seq 80); do
        after=$(left)
        [ "$(printf '%s\n' "$after" | sort)" = "$before" ] && break
        sleep 0.1
    done
    if [ $waited -ge 150 ]; then
        fail "$name" "still there after 15 s"
    elif [ "$(printf '%s\n' "$after" | sort)" != "$before" ]; then
        fail "$name" "left:" "$after"
    elif [ -s answer ]; then
        fail "$name" "an answer, and exit $rc"
    elif [ "$signal" != KILL ] && ! grep -q "stopped by SIG$signal from pid $$ (" error; then
        fail "$name" "exit $rc" "$(cat error)"
    else
        pass
    fi
}

if command -v mpirun >/dev/null && command -v pgrep >/dev/null; then
    forerun tune gpt2-mini "$root/configs/clusters/this-machine.xml" --ranks 2 --budget 1s -o plan.json -q >/dev/null 2>&1
    for signal in TERM INT HUP KILL; do
        leaves "SIG$signal" $signal 0
    done
    leaves "SIGINT, elastic" INT 0 --checkpoint int --elastic 2:2
    leaves "SIGHUP, elastic" HUP 0 --checkpoint hup --elastic 2:2
    leaves "SIGTERM, mpirun stopped" TERM 1
    leaves "SIGKILL, mpirun stopped" KILL 1
else
    n_skipped=$((n_skipped + 1))
fi
