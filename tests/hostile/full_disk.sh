# A disk that fills up while a run saves: the run continues, its report and one
# line say that the last state is not kept, and the checkpoints before are whole.
# It is a small tmpfs, which only root can mount.
mkdir disk
if mount -t tmpfs -o size=1m tmpfs disk 2>/dev/null; then
    trap 'umount "$scratch/full_disk/disk"; rm -rf "$scratch"' EXIT
    printf '%s' '{"model_type": "gpt2", "n_layer": 4, "n_embd": 32, "n_head": 4,
        "n_inner": 64, "n_positions": 32, "vocab_size": 61,
        "layer_norm_epsilon": 1e-5, "activation_function": "gelu_new"}' >model.json
    forerun simulate model.json "$root/configs/clusters/this-machine.xml" --threads 1 \
        --micro-batch 8 --global-batch 24 --seq 32 --steps 30 -q -o disk.json >/dev/null
    for kind in "" --checkpoint-async; do
        rm -rf disk/kept
        # shellcheck disable=SC2086
        forerun run disk.json --checkpoint disk/kept --checkpoint-every 5 --keep 90 \
            $kind -q >answer 2>error
        if [ $? = 1 ] && [ -s answer ] && [ "$(wc -l <error)" = 1 ] &&
            grep -q 'the last state is in no checkpoint: .*No space left on device' error; then
            pass
        else
            fail "full disk $kind, the run" "$(cat error)"
        fi
        if [ "$(forerun checkpoint verify disk/kept 2>/dev/null | grep -c ' whole$')" = 2 ]; then
            pass
        else
            fail "full disk $kind" "$(forerun checkpoint verify disk/kept 2>&1)"
        fi
        if [ "$(find disk/kept -name 'step-*' | wc -l)" = 2 ]; then
            pass
        else
            fail "full disk $kind, half a checkpoint stays" "$(find disk/kept)"
        fi
        rm -rf disk/kept/step-5
        if forerun run disk.json --checkpoint disk/kept --checkpoint-every 100 --keep 1 \
            --resume --json -q 2>error | grep -q '"resumed_from_step": 10'; then
            pass
        else
            fail "full disk $kind, resumed" "$(cat error)"
        fi
    done
    rm -rf disk/kept
    head -c 2M /dev/zero >disk/filler 2>/dev/null
    truncate -s -40K disk/filler
    refuses 1 "No space left on device" forerun run disk.json --save disk/weights
    if [ -z "$(find disk/weights -type f)" ]; then
        pass
    else
        fail "full disk, half the weights stay" "$(find disk/weights)"
    fi
else
    n_skipped=$((n_skipped + 1))
fi

# Shared memory that has no room for the copies of a state: a line, not SIGBUS.
if unshare -m true 2>/dev/null; then
    forerun simulate gpt2-tiny this-machine --dp 2 --global-batch 4 --seq 32 -q \
        -o two.json >/dev/null
    # shellcheck disable=SC2016
    LIMIT_S=60 refuses 1 "no room for a copy of the state" unshare -m bash -c '
        mount -t tmpfs -o size=40m tmpfs /dev/shm && exec "$@"' short forerun run two.json \
        --steps 8 --checkpoint kept --checkpoint-every 5 --elastic 2:2 --replicate-every 2
else
    n_skipped=$((n_skipped + 1))
fi
