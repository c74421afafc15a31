#!/bin/bash
# role_student.sh: a laptop, a course on distributed training, no GPU.
. "$(dirname "$0")/expect.sh"
cp "$root/tests/golden/fixtures/two-cores.xml" "$work"
cpu=./two-cores.xml

# Terms of the field, one screen each; a slip of the pen finds them, too.
for term in bubble 1f1b zero mfu busbw knee pue; do
    ask forerun help $term
    ends_with 0
    [ "$(wc -l <"$work/.out")" -le 24 ]
    verdict $? "'$term' takes more than a screen"
done
ask forerun help bubble
says 'pipeline' 'micro-batch'
ask forerun help bubbel
ends_with 2
warns "did you mean 'bubble'"
# Kinds of training that do not exist here say so.
for term in asynchronous federated local-sgd diloco lora staleness; do
    ask forerun help $term
    ends_with 0
    says 'neither predicts|synchronous steps alone|no other|input for adapters'
done
ask forerun help terms
ends_with 0
says 'bubble' 'ZeRO|zero'

# The help of a command: what matters on one screen and a half, all of it apart.
ask forerun simulate --help
ends_with 0
short=$(wc -l <"$work/.out")
says '--tp' '--help=all'
ask forerun simulate --help=all
ends_with 0
holds "$short <= 40 && $(wc -l <"$work/.out") > 2 * $short"

# A pipeline as a picture: waiting is told from communicating.
ask forerun simulate gpt2-tiny "$cpu" --seq 64 --pp 2 --micro-batch 1 --gantt -q
ends_with 0
says 'waiting for another rank' 'idle' '^ +0 recv .*╌' 'bubble'
# More micro-batches: a smaller bubble.
ask forerun simulate gpt2-tiny "$cpu" --seq 64 --pp 2 --micro-batch 4 \
    --global-batch 8 -q --json
few=$(value bubble)
step_few=$(value step_s)
ask forerun simulate gpt2-tiny "$cpu" --seq 64 --pp 2 --micro-batch 1 \
    --global-batch 8 -q --json
many=$(value bubble)
step_many=$(value step_s)
holds "$many / $step_many < $few / $step_few"

# The same of a run on this machine.
ask forerun simulate gpt2-tiny this-machine --seq 64 --pp 2 --micro-batch 1 -q \
    -o "$work/pipeline.json"
ask forerun run "$work/pipeline.json" --steps 2 --gantt -q
if command -v mpirun >/dev/null; then
    ends_with 0
    says 'waiting for another rank' 'predicted +measured' '^ +1 recv '
else
    skip "a run of two ranks: there is no mpirun"
fi

# The collectives of CPUs.
ask forerun collective all_reduce 64kB..4MB "$cpu" -q
ends_with 0
says 'ring' 'busbw'

# Words that are nearly right.
ask forerun simualte gpt2-tiny "$cpu"
ends_with 2
warns "did you mean 'simulate'"
ask forerun simulate gpt2-tiny "$cpu" --mirco-batch 2
ends_with 2
warns 'micro-batch'
ask forerun simulate gpt2-tinny "$cpu"
ends_with 5
warns "did you mean 'gpt2-tiny'"

# A plan that no memory here holds is not started: it would be killed.
ask forerun simulate gpt2-124m this-machine --seq 1024 --micro-batch 2048 \
    --global-batch 2048 -q -o "$work/huge.json"
ends_with 0
ask forerun run "$work/huge.json"
ends_with 3
warns 'DOES NOT FIT: needs .* of .* sure\) on this-machine; it fits with micro-batch'

# What cannot be executed here is said before anything is started.
ask forerun simulate gpt2-tiny "$cpu" --seq 64 --dp 2 -q -o "$work/plan.json"
ends_with 0
ask forerun run "$work/plan.json" --checkpoint-every 2
ends_with 2
warns 'checkpoint'
summary
