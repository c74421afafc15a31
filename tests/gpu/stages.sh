# stages.sh: the stages of tests/gpu/run, which sources it.  A stage is a
# function that leaves files in $dir; what it prints last is its detail.

total_s=${GPU_CHECK_S:-480}
forerun=$BUILD/forerun

# stage NAME LIMIT FUNCTION ARGS...: runs it in a shell of its own, ends it at
# its limit or the whole check's, and notes name, verdict, seconds, detail.
stage() {
    local name=$1 limit=$2 begin=$SECONDS status verdict detail
    shift 2
    local left=$((total_s - SECONDS - 5)) log=$dir/${name// /-}.log
    [ "$left" -ge "$limit" ] || limit=$left
    if [ "$limit" -le 0 ]; then
        printf '%s\tskipped\t0\tno time was left\n' "$name" >>"$dir/stages.tsv"
        return
    fi
    # The function and all that it starts are one group, ended by its number;
    # so are the guard and its sleep.
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
    printf 'commit\t%s\n' "$(git rev-parse HEAD 2>/dev/null || echo unknown)"
    printf 'system\t%s\n' "$(uname -srm)"
    printf 'cores\t%s\n' "$(nproc)"
    printf 'cluster\t%s\n' "$cluster"
    [ $kind = gpu ] || return 0
    printf 'gpu\t%s\n' "$(gpu_query name)"
    printf 'driver\t%s\n' "$(gpu_query driver_version)"
    printf 'memory_mib\t%s\n' "$(gpu_query memory.total)"
    printf 'power_limit_w\t%s\n' "$(gpu_query power.limit)"
    printf 'clock_mhz\t%s\n' "$(gpu_query clocks.max.sm)"
    printf 'libraries\t%s\n' "$(ldd "$forerun" | awk '/cuda|cublas|nccl/ {
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
kernel_tests() {
    ls "$kernels"/test_cuda_* | grep -v '\.[a-z]*$'
}

# NCCL's topology of the machine is left for the stage after this one.
run_kernels() {
    NCCL_TOPO_DUMP_FILE=$dir/nccl-topology.xml TEST_JOBS=${1:-2} TEST_TIMEOUT=140 tests/run.sh $(kernel_tests)
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

# Predicted with the profile, then trained; the fitted model sees neither.
train_plan() {
    local name=$1 model options plan=$dir/$1.plan.json
    read -r _ _ model options <<<"$(grep "^$name " $cases)"
    if [ ! -e "$profile" ]; then
        echo "there is no profile"
        return 1
    fi
    if [ -z "$cluster" ]; then
        echo "no node of the catalogue has a $(gpu_query name): CLUSTER=NODE:1"
        return 1
    fi
    # shellcheck disable=SC2086
    "$forerun" simulate "$(model_of "$model")" "$cluster" -p "$profile" \
        $precision $options --steps 14 --json -o "$plan" \
        >"$dir/$name.simulate.json" || return 1
    "$forerun" run "$plan" --backend $backend --json -q \
        >"$dir/$name.run.json" || return 1
    echo "$plan"
}

# Two ranks of a tensor-parallel plan on one device, which meet over sockets,
# against one rank.
share() {
    local options="--seq 64 --global-batch 8 --micro-batch 4 --steps 8"
    local plain="--precision f32" rank pids=() status=0
    [ $backend = cpu ] || plain="$plain --kernels forerun --flash-attention"
    for plan in alone shared; do
        local tp=1
        [ $plan = alone ] || tp=2
        # shellcheck disable=SC2086
        "$forerun" simulate gpt2-tiny "${cluster/:1/:8}" $plain $options \
            --tp $tp --json -o "$dir/$plan.plan.json" >/dev/null || return 1
    done
    "$forerun" run "$dir/alone.plan.json" --backend $backend --json -q \
        >"$dir/alone.run.json" || return 1
    if [ $backend = cpu ]; then
        "$forerun" run "$dir/shared.plan.json" --json -q \
            >"$dir/shared.run.json"
        return
    fi
    for rank in 1 0; do
        RANK=$rank WORLD_SIZE=2 LOCAL_RANK=$rank LOCAL_WORLD_SIZE=2 \
            MASTER_ADDR=127.0.0.1 MASTER_PORT=29517 FORERUN_BOOTSTRAP=tcp \
            "$forerun" run "$dir/shared.plan.json" --backend cuda \
            --share-gpu --json -q >"$dir/shared.$rank.json" &
        pids+=($!)
    done
    for pid in "${pids[@]}"; do
        wait "$pid" || status=1
    done
    mv "$dir/shared.0.json" "$dir/shared.run.json"
    return $status
}

# Memory first, then races in shared memory; the small tests, one at a time.
sanitize() {
    local test
    if ! command -v compute-sanitizer >/dev/null; then
        echo "compute-sanitizer is not installed"
        return 77
    fi
    for tool in memcheck racecheck; do
        for test in layers optim compress attention; do
            echo "$tool: $test"
            compute-sanitizer --tool $tool --error-exitcode 99 -q \
                "$kernels/test_cuda_$test" || return 1
        done
    done
    echo "memcheck and racecheck found nothing"
}
