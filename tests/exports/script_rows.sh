# shellcheck shell=bash disable=SC2154
# script_rows.sh: what test_scripts.sh runs: plans of forerun, and scripts that shall train
# alike.  Sourced.
trained gpt2 gpt2-tiny --dp 2 --micro-batch 1
trained llama llama-tiny --dp 2 --micro-batch 2 --optimizer sgd --lr 0.05 \
    --lr-schedule cosine --warmup 2 --clip 0.5 --seed 7
trained zero1 gpt2-tiny --dp 2 --micro-batch 2 --zero 1 --no-gather-overlap \
    --lr-schedule linear --lr-rule sqrt --lr-base-batch 2
trained lamb llama-tiny --dp 2 --micro-batch 4 --optimizer lamb --lr 0.01 \
    --lr-schedule inverse-sqrt
trained lars gpt2-tiny --dp 2 --micro-batch 4 --optimizer lars --lr 0.5
trained text gpt2-tiny --dp 2 --micro-batch 4 --data "$root/README.md"
trained bf16 gpt2-tiny --dp 2 --micro-batch 2 --compress bf16

script ddp-gpt2 ddp gpt2 gpt2 --save-weights "$work/gpt2.safetensors"
plan parts gpt2-tiny --dp 2 --micro-batch 1 --recompute selective \
    --recompute-parts attention,mlp --bucket 100kB
script ddp-weights ddp parts gpt2 --weights "$work/gpt2.safetensors"
script ddp-llama ddp llama llama --save-weights "$work/llama.safetensors"
# What forerun saved after five steps, in one file or in several, and both go on.
saved() { # NAME PLAN: its weights, and losses of five steps from there
    forerun run "$work/$2.json" --save "$work/$1" -q >/dev/null &&
        forerun run "$work/$2.json" --init "$work/$1" --json -q \
            >"$work/$1.run"
}
saved saved-gpt2 gpt2
script ddp-saved ddp parts saved-gpt2 --weights "$work/saved-gpt2"
saved saved-llama llama
"${python:-python3}" "$here/split_safetensors.py" "$work/saved-llama"
script ddp-saved-in-parts ddp llama saved-llama --weights "$work/saved-llama"
plan later llama-tiny --dp 2 --micro-batch 2 --optimizer sgd --lr 0.05 \
    --lr-schedule cosine --warmup 2 --clip 0.5 --seed 7 --recompute full \
    --recompute-layers 3 --no-overlap --bucket 64kB
script ddp-llama-weights ddp later llama --weights "$work/llama.safetensors"
script ddp-zero1 ddp zero1 zero1
script ddp-lamb ddp lamb lamb
script ddp-lars ddp lars lars
plan offload gpt2-tiny --dp 2 --micro-batch 4 --data "$root/README.md" \
    --offload-activations 0.5 --bucket 0B --flash-attention
script ddp-text ddp offload text
script ddp-sent-as-bf16 ddp bf16 bf16
plan bf16later gpt2-tiny --dp 2 --micro-batch 2 --compress bf16 --no-overlap
script ddp-summed-later-bf16 ddp bf16later bf16
plan halves gpt2-tiny --dp 2 --micro-batch 1 --precision bf16
script ddp-precision-bf16 ddp halves gpt2
plan powersgd gpt2-tiny --dp 2 --micro-batch 1 --compress powersgd:4
script ddp-powersgd-lossy ddp powersgd gpt2

# Horovod, Ray, JAX and TensorFlow are stubs (script_stubs*.py): what is run is the
# script around them.  fully_shard is one of the tests' own, which shards.
plan shards llama-tiny --dp 2 --micro-batch 2 --zero 3 --optimizer sgd \
    --lr 0.05 --lr-schedule cosine --warmup 2 --clip 0.5 --seed 7 \
    --zero-prefetch 2 --recompute full
script fsdp2 fsdp2 shards llama --save-weights "$work/shards.safetensors"
trained zero3 gpt2-tiny --dp 2 --micro-batch 2 --zero 3 --clip 0.5
script fsdp2-zero3 fsdp2 zero3 zero3
plan hybrid gpt2-tiny --dp 2 --micro-batch 1 --zero 3 --zero-group 2 \
    --no-zero-reshard --offload-optimizer
script fsdp2-hybrid fsdp2 hybrid gpt2 --weights "$work/gpt2.safetensors"
plan zero2 llama-tiny --dp 2 --micro-batch 1 --zero 2 --optimizer sgd \
    --lr 0.05 --lr-schedule cosine --warmup 2 --clip 0.5 --seed 7
script fsdp2-zero2 fsdp2 zero2 llama
plan sharded-state gpt2-tiny --dp 2 --micro-batch 1 --zero 1 --clip 0.5
script fsdp2-zero1 fsdp2 sharded-state zero3
script horovod horovod gpt2 gpt2
script ray ray-train bf16 bf16
script ray-fsdp2 ray-train zero3 zero3
script ray-zero2 ray-train zero2 llama
plan mesh llama-tiny --dp 2 --micro-batch 2 --optimizer sgd --lr 0.05 \
    --lr-schedule cosine --warmup 2 --clip 0.5 --seed 7 --zero 2 \
    --no-gather-overlap --recompute selective --recompute-parts attention,mlp
script jax jax mesh llama
plan whole gpt2-tiny --dp 2 --micro-batch 4 --data "$root/README.md" --zero 3
script jax-text jax whole text
plan mirror gpt2-tiny --dp 2 --micro-batch 1 --no-overlap --recompute full
script tensorflow tensorflow mirror gpt2
plan mirror-lamb llama-tiny --dp 2 --micro-batch 4 --optimizer lamb --lr 0.01 \
    --lr-schedule inverse-sqrt --no-overlap
script tensorflow-lamb tensorflow mirror-lamb lamb
plan served gpt2-tiny --dp 2 --micro-batch 1 --no-overlap \
    --collective parameter-server --server-place worker --servers 1
script tensorflow-served tensorflow served gpt2
