# stages.sh: the stages of tests/gpu/run, which sources it.  A stage is a
# function that leaves files in $dir; what it prints last is its detail.

total_s=${GPU_CHECK_S:-480}
forerun=$BUILD/forerun

# stage NAME LIMIT FUNCTION ARGS...: runs it in a shell of its own, ends it at
# its limit or the whole check's, and notes name, verdict, seconds, detail.  The
# function finds the seconds that it has in $limit.
stage() {
    local name=$1 limit=$2 asked=$2 begin=$SECONDS status verdict detail
    shift 2
    local left=$((total_s - SECONDS - 5)) log=$dir/${name// /-}.log
    [ "$left" -ge "$limit" ] || limit=$left
    if [ "$limit" -lt 30 ] && [ "$limit" -lt "$asked" ]; then
        printf '%s\tskipped\t0\tno time was left\n' "$name" >>"$dir/stages.tsv"
        return
    fi
    # The function and what it starts are one group, ended by its number; so
    # are the guard and its sleep.  What timeout starts is a group of its own,
    # which functions end before their limit.
    set -m
    ("$@") >"$log" 2>&1 </dev/null &
    local pid=$!
    (
        sleep "$limit"
        kill -TERM -- "-$pid"
        sleep 5
        kill -KILL -- "-$pid"
    ) >/dev/null 2>&1 </dev/null &
    local guard=$!
    set +m
    wait "$pid" 2>/dev/null
    status=$?
    kill -- "-$guard" 2>/dev/null
    wait "$guard" 2>/dev/null
    detail=$(tail -n 1 "$log" | tr '\t"\\' "  '/" | cut -c1-200)
    case $status in
    0) verdict=passed ;;
    77) verdict=skipped ;;
    *) verdict=failed ;;
    esac
    if [ $((SECONDS - begin)) -ge "$limit" ] && [ $status != 0 ]; then
        detail="not over after $limit s; $detail"
    fi
    printf '%s\t%s\t%s\t%s\n' "$name" $verdict $((SECONDS - begin)) \
        "$detail" >>"$dir/stages.tsv"
    echo "$verdict: $name, $((SECONDS - begin)) s: $detail" >&2
}

# ---- the machine ------------------------------------------------------------
gpu_query() {
    nvidia-smi --query-gpu="$1" --format=csv,noheader,nounits -i 0 2>/dev/null
}

note_machine() {
    printf 'date\t%s\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)"
    printf 'kind\t%s\n' $kind
    printf 'commit\t%s\n' "$(cat "$BUILD/commit" 2>/dev/null ||
        git describe --always --dirty --abbrev=40 2>/dev/null ||
        echo unknown)"
    printf 'system\t%s\n' "$(uname -srm)"
    printf 'cores\t%s\n' "$(nproc)"
    printf 'cluster\t%s\n' "$cluster"
    [ $kind = gpu ] || return 0
    printf 'gpu\t%s\n' "$(gpu_query name)"
    printf 'driver\t%s\n' "$(gpu_query driver_version)"
    printf 'memory_mib\t%s\n' "$(gpu_query memory.total)"
    printf 'power_limit_w\t%s\n' "$(gpu_query power.limit)"
    printf 'clock_mhz\t%s\n' "$(gpu_query clocks.max.sm)"
    printf 'libraries\t%s\n' "$(ldd "$forerun" |
        awk '$1 ~ /^lib(cuda|cublas|nccl)/ {
        printf "%s%s", n++ ? " " : "", $3 }' | xargs -r -n 1 readlink -f |
        xargs)"
}

# The catalogue's node that has it, alone; nothing where no name fits.
node_of_gpu() {
    case $(gpu_query name) in
    *GH200*) echo gh200-1:1 ;;
    *H200*) echo dgx-h200:1 ;;
    *H100*PCIe*) echo h100-pcie-8:1 ;;
    *H100*) echo dgx-h100:1 ;;
    *A100*40GB*) echo dgx-a100-40g:1 ;;
    *A100*) echo dgx-a100:1 ;;
    *B200*) echo dgx-b200:1 ;;
    *B300*) echo dgx-b300:1 ;;
    esac
}

# The toolkit's programs, and libraries that the loader does not find by
# itself: toolkits, wheels.
find_cuda() {
    local missing library where
    PATH=$PATH:/usr/local/cuda/bin
    missing=$(ldd "$forerun" | awk '/not found/ { print $1 }' | sort -u)
    for library in $missing; do
        where=$(find /usr/local /usr/lib /opt -name "$library" 2>/dev/null |
            head -n 1)
        [ -z "$where" ] ||
            LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}${where%/*}
    done
    export LD_LIBRARY_PATH
    # In one line here, not from every stage in the loader's words.
    missing=$(ldd "$forerun" 2>&1 | grep 'not found' | sed 's/^[ \t]*//' |
        sort -u)
    [ -z "$missing" ] && return
    echo "$forerun does not start here; build it with this machine's CUDA" \
        "and NCCL (make CUDA=1), or name their folders in LD_LIBRARY_PATH:" >&2
    echo "$missing" >&2
    return 1
}

# ---- the stages -------------------------------------------------------------
kernel_tests() { # all but the table of layouts
    ls "$kernels"/test_cuda_* | grep -v -e '\.[a-z]*$' -e layouts
}

n_jobs() {
    local n=$(($(nproc) / 2))
    echo $((n < 2 ? 2 : n))
}

# Tests end before their stage does: what would be left of them has memory of
# the device, which other stages measure.  NCCL's topology of the machine is
# left for the stage after this one.
run_kernels() {
    # shellcheck disable=SC2046
    NCCL_TOPO_DUMP_FILE=$dir/nccl-topology.xml TEST_JOBS=$(n_jobs) \
        TEST_TIMEOUT=$((limit - 10)) tests/run.sh $(kernel_tests)
}

# The table of layouts, as many of its rows as there is time for: four processes
# with two of its eight parts each.
run_layouts() {
    local part status=0 pids=()
    for part in 0 1 2 3; do
        LAYOUT_S=$(((limit - 25) / 2)) timeout $((limit - 5)) \
            "$kernels/test_cuda_layouts" "part-$part" "part-$((part + 4))" \
            >"$dir/layouts-$part.txt" 2>&1 &
        pids+=($!)
    done
    for part in "${pids[@]}"; do
        wait "$part" || status=1
    done
    grep -hv '^# ' "$dir"/layouts-?.txt | head -n 20
    awk '/^# part/ { ran += $4; left += $7; all += $NF } END {
        print ran " layouts ran, " all - left - ran " had no time" }' \
        "$dir"/layouts-?.txt
    return $status
}

import_topology() {
    "$forerun" import nccl "$dir/nccl-topology.xml" -o "$dir/cluster.xml" \
        >/dev/null && "$forerun" simulate gpt2-tiny "$dir/cluster.xml" \
        --json >/dev/null && echo "$dir/cluster.xml"
}

calibrate() {
    # shellcheck disable=SC2086
    "$forerun" calibrate $calibration -o "$profile" --json \
        >"$dir/calibration.json" && echo "$profile"
}

plan_names() {
    grep -v '^#' $cases | awk 'NF { print $1 }'
}

model_of() {
    local file=tests/gpu/models/$1.json
    if [ -e "$file" ]; then echo "$file"; else echo "$1"; fi
}

# Predicted from published kernels alone and with the profile, then trained; the
# fitted model sees neither.  Words of the options that are NAME=VALUE are the
# environment of the training.
train_plan() {
    local name=$1 model words word options="" environment=()
    local plan=$dir/$1.plan.json
    read -r _ _ model words <<<"$(grep "^$name " $cases)"
    for word in $words; do
        case $word in
        [A-Z]*=*) environment+=("$word") ;;
        *) options="$options $word" ;;
        esac
    done
    if [ ! -e "$profile" ]; then
        echo "there is no profile"
        return 1
    fi
    if [ -z "$cluster" ]; then
        echo "no node of the catalogue has a $(gpu_query name): CLUSTER=NODE:1"
        return 1
    fi
    options="$precision --dp 1 --tp 1 --pp 1 $options --steps 14 --json"
    # shellcheck disable=SC2086
    "$forerun" simulate "$(model_of "$model")" "$cluster" $options \
        --trace "$dir/$name.published.trace.json" \
        >"$dir/$name.published.json" || return 1
    # shellcheck disable=SC2086
    "$forerun" simulate "$(model_of "$model")" "$cluster" -p "$profile" \
        $options --trace "$dir/$name.profile.trace.json" -o "$plan" \
        >"$dir/$name.simulate.json" || return 1
    env "${environment[@]}" "$forerun" run "$plan" --backend $backend --json \
        -q --trace "$dir/$name.trace.json" >"$dir/$name.run.json" || return 1
    "$forerun" compare "$plan" "$dir/$name.trace.json"
}

# ---- ranks that share the GPU -----------------------------------------------
row_limit_s=50

# Names of the rows that begin anew (new) or go on (resumed), and exchange data
# by one of these.
rank_rows() { # new|resumed TRANSPORTS
    awk -v is_new="$([ "$1" = new ] && echo 1)" -v transports="$2" '
        !/^#/ && NF && ($3 == "new") == (is_new == 1) &&
        index(transports, $2) { print $1 }' tests/gpu/ranks.cases
}

# A rank that is a host of its own, to forerun and to NCCL: on one host both
# refuse two ranks on one device.
as_host() { # NUMBER COMMAND...
    local id=$dir/boot-id-$1
    printf '%08d-0000-4000-8000-000000000000\n' "$1" >"$id"
    NCCL_HOSTID=rank-$1 NCCL_SOCKET_IFNAME=lo NCCL_IB_DISABLE=1 \
        unshare -m sh -c 'mount --bind "$0" /proc/sys/kernel/random/boot_id &&
            exec "$@"' "$id" "${@:2}"
}

# The ranks of a plan, which meet over sockets.
start_ranks() { # NAME TRANSPORT N PORT OPTIONS...
    local name=$1 transport=$2 n=$3 port=$4 rank status=0 pids=() place=()
    local left=$((rows_end - SECONDS))
    [ $left -lt $row_limit_s ] || left=$row_limit_s
    if [ $left -le 0 ]; then
        echo "no time was left"
        return 1
    fi
    local run=(timeout -k 5 $left "$forerun" run "$dir/$name.plan.json"
        --backend $backend --json -q "${@:5}")
    if [ "$n" = 1 ] || [ $backend = cpu ]; then
        "${run[@]}" >"$dir/$name.run.json"
        return
    fi
    [ "$transport" = nccl ] || run+=(--share-gpu)
    for ((rank = n - 1; rank >= 0; rank--)); do
        [ "$transport" = host ] || place=(as_host $rank)
        RANK=$rank WORLD_SIZE=$n MASTER_ADDR=127.0.0.1 MASTER_PORT=$port \
            FORERUN_BOOTSTRAP=tcp "${place[@]}" "${run[@]}" \
            >"$dir/$name.rank-$rank.json" &
        pids+=($!)
    done
    for rank in "${pids[@]}"; do
        wait "$rank" || status=1
    done
    mv "$dir/$name.rank-0.json" "$dir/$name.run.json"
    return $status
}

# One row of ranks.cases: eight steps, or the last four of them.
train_ranks() { # NAME PORT
    local name=$1 transport begin options n how=() saved=$dir/$1.checkpoint
    local job="--seq 64 --global-batch 8 --micro-batch 2 --steps 8
        --precision f32 --kernels forerun --flash-attention"
    read -r _ transport begin options \
        <<<"$(grep "^$name " tests/gpu/ranks.cases)"
    # shellcheck disable=SC2086
    "$forerun" simulate gpt2-tiny "$ranks_cluster" $job $options --json \
        -o "$dir/$name.plan.json" >"$dir/$name.simulate.json" || return 1
    n=$(awk -F '[:,]' '/"ranks":/ { print $2 + 0; exit }' \
        "$dir/$name.simulate.json")
    if [ "$begin" != new ]; then
        cp -r "$dir/$begin.checkpoint" "$saved" || return 1
        rm -rf "$saved/step-8"
        echo step-4 >"$saved/latest"
        how=(--resume)
    fi
    start_ranks "$name" "$transport" "$n" "$2" --checkpoint "$saved" \
        --checkpoint-every 4 "${how[@]}"
}

# Rows, so many side by side; says which failed.
train_rows() { # AT_ONCE ROW...
    local at_once=$1 row status=0 rows=() pids=()
    finish() {
        wait "${pids[0]}" || {
            status=1
            echo "${rows[0]}: $(tail -n 1 "$dir/${rows[0]}.log")"
        }
        pids=("${pids[@]:1}") rows=("${rows[@]:1}")
    }
    shift
    local port=29501
    for row in "$@"; do
        [ ${#pids[@]} -lt "$at_once" ] || finish
        train_ranks "$row" "$port" >"$dir/$row.log" 2>&1 &
        pids+=($!) rows+=("$row")
        port=$((port + 1))
    done
    while [ ${#pids[@]} -gt 0 ]; do
        finish
    done
    return $status
}

# Each process that uses a device takes of its queues (an H200 had none left
# for the 17 of all rows together).
share() {
    local status=0 rows_end=$((SECONDS + limit - 8))
    # shellcheck disable=SC2046
    train_rows 2 $(rank_rows new "- host") || status=1
    # shellcheck disable=SC2046
    train_rows 2 $(rank_rows resumed "- host") || status=1
    [ $status != 0 ] || echo "all trained"
    return $status
}

# One after the other: kernels of two ranks wait for each other, on a device
# that takes turns between processes.
share_by_nccl() {
    local status=0 rows_end=$((SECONDS + limit - 8))
    if ! unshare -m true 2>/dev/null; then
        echo "no mount namespaces here: not root?"
        return 77
    fi
    # shellcheck disable=SC2046
    train_rows 1 $(rank_rows new nccl) || status=1
    [ $status != 0 ] || echo "all trained"
    return $status
}

# One tool over one test of a program; a line says what came of it.
sanitize_one() { # TOOL PROGRAM TEST
    local log=$dir/sanitizer/$1-${2##*/test_cuda_}-${3// /-}.log status
    local left=$((sanitizer_end - $(date +%s)))
    timeout -k 5 $((left > 1 ? left : 1)) compute-sanitizer --tool "$1" \
        --error-exitcode 99 "$2" "$3" >"$log" 2>&1
    status=$?
    case $status in
    0 | 77) echo "well: $1 ${2##*/} $3" ;;
    124 | 137) echo "late: $1 ${2##*/} $3" ;;
    *) echo "FOUND: $1 ${2##*/} $3: $(grep -m 1 -E '^=+ [A-Z][a-z]' "$log" |
        cut -c1-120)" ;;
    esac
}

# All kernels but the library's, whose products take the tools minutes: each
# test in a process of its own, so that one without time does not hide others.
sanitize() {
    local program name tool
    if ! command -v compute-sanitizer >/dev/null; then
        echo "compute-sanitizer is not installed"
        return 77
    fi
    mkdir -p "$dir/sanitizer"
    export -f sanitize_one
    export dir sanitizer_end=$(($(date +%s) + limit - 8))
    for tool in memcheck racecheck; do
        for program in attention layers optim compress experts shares; do
            "$kernels/test_cuda_$program" --list | grep -v linear |
                while read -r name; do
                    printf '%s\0%s\0%s\0' $tool \
                        "$kernels/test_cuda_$program" "$name"
                done
        done
    done | xargs -0 -n 3 -P "$(nproc)" bash -c 'sanitize_one "$@"' - \
        >"$dir/sanitizer.txt"
    sort "$dir/sanitizer.txt"
    awk '{ n[$1]++ } END { print n["well:"] + 0 " tests without a finding, " \
        n["FOUND:"] + 0 " with, " n["late:"] + 0 " had no time" }' \
        "$dir/sanitizer.txt"
    grep -q '^well' "$dir/sanitizer.txt" && ! grep -q FOUND "$dir/sanitizer.txt"
}
