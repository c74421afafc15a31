# Numbers that no machine has: nothing wraps, nothing hangs, nothing aborts.
clock='takes more than 13 days'
on='dgx-h100:1 --dp 8 --tp 1 --pp 1'
refuses 3 "$clock" forerun simulate llama-3-8b dgx-h100:1 --dp 1 --tp 1 --pp 1 --global-batch 1 --seq 100000000
refuses 3 "$clock" forerun simulate llama-3-8b $on --global-batch 800000000 --micro-batch 1000000
refuses 3 "$clock" forerun simulate llama-3-8b $on --global-batch 8 --seq 4294967295
refuses 5 'bytes of activations' forerun simulate llama-3-8b $on --global-batch 8 --seq 400000000000
refuses 5 'bytes of activations' forerun simulate llama-3-8b $on --global-batch 8000000000 --micro-batch 1000000000 --seq 1000000
refuses 5 'does not fit 64 bits' forerun simulate llama-3-8b $on --global-batch 100000000000000 --seq 100000000000000
refuses 3 "$clock" forerun simulate llama-3-8b $on --global-batch 8000000000
refuses 5 'passes over layers' forerun simulate llama-3-8b dgx-h100:1 --dp 1 --tp 1 --pp 8 --schedule gpipe --global-batch 1000000
cat >deep.json <<'END'
{"model_type": "llama", "hidden_size": 4096, "intermediate_size": 11008,
 "num_hidden_layers": 512, "num_attention_heads": 32, "vocab_size": 32000,
 "max_position_embeddings": 4096, "rms_norm_eps": 1e-5}
END
# Changes that would make it fit are not simulated for as long as the plan, which
# takes 10 s of a processor.
for batch in 1024 4096; do
    LIMIT_S=60 answers 'left out, not looked at or too long' forerun simulate deep.json dgx-h100:64 --pp 512 --global-batch $batch
done
for zero in 0 1 2 3; do
    LIMIT_S=10 answers 'tokens/s' forerun simulate llama-3-8b $on --zero $zero --global-batch 1000000
done
refuses 2 'global-batch' forerun simulate llama-3-8b $on --global-batch 99999999999999999999
refuses 2 'seq' forerun simulate llama-3-8b $on --seq -1
refuses 2 'seq' forerun simulate llama-3-8b $on --seq nan
refuses 2 'seq' forerun simulate llama-3-8b $on --seq 0
answers 4096 forerun sweep llama-3-8b dgx-h100:1 --vary seq=1000000000,4096

# A profile whose numbers were edited: each has a range.
profile() { # SED EXPRESSION
    sed "$1" "$root/tests/fuzz/corpus/profile/whole" >profile.json
}
for edit in 's/"instr_overhead_s": 0/"instr_overhead_s": 1e18/' \
    's/"n_busy": [0-9]*/"n_busy": 1000000000/' \
    's/"n_threads": [0-9]*/"n_threads": 2000000000/' \
    's/"median_s": [0-9.e-]*/"median_s": 1e300/' \
    's/"jitter_frac": 0/"jitter_frac": 1e200/'; do
    profile "$edit"
    refuses 5 'profile.json:' forerun simulate gpt2-mini "$root/configs/clusters/this-machine.xml" --profile profile.json
done
profile 's/"instr_overhead_s": 0/"instr_overhead_s": 1e6/'
refuses 3 "$clock" forerun simulate gpt2-mini "$root/configs/clusters/this-machine.xml" --dp 1 --tp 1 --pp 1 --profile profile.json
