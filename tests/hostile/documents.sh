# Files that are none, or far too much of one.
refuses 5 'is a device' forerun simulate /dev/zero dgx-h100:1
refuses 5 'is a device' forerun simulate gpt2-mini /dev/zero
refuses 5 'is a device' forerun simulate gpt2-mini dgx-h100:1 /dev/urandom
refuses 5 'is a device' forerun validate /dev/zero
refuses 5 'is a device' forerun import slurm /dev/zero
refuses 5 'is empty' forerun simulate /dev/null dgx-h100:1
mkfifo fifo
LIMIT_S=5 refuses 5 'is empty' forerun simulate fifo dgx-h100:1
refuses 5 'No such file or directory' forerun simulate / dgx-h100:1
answers 'step ' forerun simulate gpt2-mini <(forerun catalog dgx-h100:1 2>/dev/null || cat "$root/configs/clusters/dgx-h100-16.xml")

# A hole of 200 MB: too long for a document, however little it takes on disk.
truncate -s 200M large
refuses 5 'larger than 64 MiB' forerun simulate large dgx-h100:1
refuses 5 'larger than 64 MiB' forerun simulate gpt2-mini large
refuses 5 'larger than 64 MiB' forerun validate large

awk 'BEGIN { printf "[1"; for (i = 0; i < 4000000; i++) printf ",1"; print "]" }' >ones.json
refuses 5 '2,097,152 values' forerun simulate ones.json dgx-h100:1
awk 'BEGIN { for (i = 0; i < 100000; i++) printf "["; print "" }' >deep.json
refuses 5 'nested deeper' forerun simulate deep.json dgx-h100:1

layers() { # N REPEAT: a list of N entries
    awk -v n="$1" -v repeat="$2" 'BEGIN {
        printf "{\"schema\": \"forerun.model/1\", \"name\": \"m\", \"kind\": \"layers\", \"layers\": ["
        for (i = 0; i < n; i++)
            printf "%s{\"name\": \"n\", \"repeat\": %s, \"forward_flop\": 1000, \"parameters\": 10, \"activation_bytes\": 16, \"output_bytes\": 16}", i ? "," : "", repeat
        print "]}" }'
}
layers 20 100000 >many.json
refuses 5 'at most 100000' forerun simulate many.json dgx-h100:1
layers 1 1000000 >many.json
refuses 5 'repeat is 1000000' forerun simulate many.json dgx-h100:1
layers 16000 1 >long.json
answers 'step ' forerun simulate long.json dgx-h100:1
answers 'step ' forerun simulate resnet-50 dgx-a100:1 --dp 8 --global-batch 8000000000

# Operations of a list that no layer can have: refused where they stand.
cnn() { # [SED EXPRESSION]
    sed "${1-}" >cnn.json <<'END'
{"schema": "forerun.model/1", "name": "m", "kind": "layers", "image_size": 13, "n_channels": 2, "layers": [
    {"name": "stem", "ops": [
        {"op": "conv", "channels": 8, "kernel": 5, "stride": 2, "padding": 2}, {"op": "batch_norm"}, {"op": "relu"},
        {"op": "max_pool", "kernel": 3, "stride": 2, "padding": 1}]},
    {"name": "block", "repeat": 2, "ops": [
        {"op": "conv", "channels": 8, "kernel": 3, "padding": 1, "groups": 2},
        {"op": "batch_norm"}, {"op": "add"}, {"op": "relu"}]},
    {"name": "head", "ops": [
        {"op": "avg_pool", "kernel": 4}, {"op": "linear", "channels": 5, "bias": true}]}]}
END
}
cnn
answers 'step ' forerun simulate cnn.json dgx-h100:1
while IFS='|' read -r edit words; do
    cnn "$edit"
    refuses 5 "cnn.json:$words" forerun simulate cnn.json dgx-h100:1
done <<'END'
s/"kernel": 5/"kernel": 0/|3: layer 'stem': conv: kernel is 0
s/"kernel": 5/"kernel": -3/|3: layer 'stem': conv: kernel is -3
s/"kernel": 5/"kernel": 9223372036854775807/|3: layer 'stem': conv: kernel is 9223372036854775807
s/"kernel": 5/"kernel": 1e400/|3: the number 1e400 is too large
s/"kernel": 5/"kernel": NaN/|3: found 'N'
s/"kernel": 5/"kernel": 2.385/|3: 'kernel' must be a whole number
s/"stride": 2, "padding": 2/"stride": -1/|3: layer 'stem': conv: stride is -1
s/"stride": 2, "padding": 2/"stride": 4294967296/|3: layer 'stem': conv: stride is 4294967296
s/"padding": 2/"padding": 6/|3: layer 'stem': conv: padding is 6; give 0 to 2
s/"channels": 8, "kernel": 5/"channels": 0, "kernel": 5/|3: layer 'stem': conv: channels is 0
s/"channels": 8, "kernel": 5/"channels": 4611686018427387904, "kernel": 5/|3: layer 'stem': conv: channels is
s/"groups": 2/"groups": 3/|6: layer 'block': conv: 8 and 8 channels in 3 groups
s/"op": "relu"}]}/"op": "softmax"}]}/|7: unknown op 'softmax'
s/"op": "max_pool", "kernel": 3/"op": "max_pool", "kernel": 16/|4: layer 'stem': max_pool: kernel is 16
s/"kernel": 4/"kernel": 5/|9: layer 'head': avg_pool: kernel is 5; give 1 to 4
s/{"op": "avg_pool", "kernel": 4}, .*/{"op": "relu"}]}]}/|8: the last layer makes images of 4 x 4
s/"op": "add"/"op": "add", "shortcut": true/|7: layer 'block': add stands behind a batch_norm alone
s/{"op": "batch_norm"}, {"op": "add"}/{"op": "batch_norm", "shortcut": true}/|5: layer 'block': a shortcut without add
s/{"op": "add"}, {"op": "relu"}/{"op": "add"}, {"op": "batch_norm"}, {"op": "add"}/|7: layer 'block': a shortcut behind its add
s/"channels": 8, "kernel": 3/"channels": 6, "kernel": 3/|7: layer 'block': add: 6 channels of 4 x 4 and, of the shortcut, 8
s/"image_size": 13/"image_size": 0/|1: n_channels 2, image_size 0
s/"image_size": 13/"image_size": 1000000/|1: n_channels 2, image_size 1000000
s/"n_channels": 2, //|1: n_channels 0
s/"repeat": 2/"repeat": -1/|5: repeat is -1
s/{"op": "conv", .*"padding": 2}/{"from": "head"}/|3: unknown key 'from'
s/{"op": "conv", .*"padding": 2}/{}/|3: 'op' is missing
END
# What no memory holds is not asked for.
cnn 's/"channels": 8/"channels": 1024/; s/"image_size": 13/"image_size": 16384/; s/{"op": "avg_pool", "kernel": 4}, //'
answers 'DOES NOT FIT' forerun simulate cnn.json this-machine --global-batch 4 -o cnn-plan.json
refuses 3 'DOES NOT FIT' forerun run cnn-plan.json --steps 1

# Names that would turn a terminal upside down are shown as bytes.
refuses 5 'a\x1b[31mb\xff' forerun simulate $'a\x1b[31mb\xff' dgx-h100:1
refuses 5 '\xe2\x80\xae' forerun simulate $'\xe2\x80\xae' dgx-h100:1
