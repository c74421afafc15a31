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

# Names that would turn a terminal upside down are shown as bytes.
refuses 5 'a\x1b[31mb\xff' forerun simulate $'a\x1b[31mb\xff' dgx-h100:1
refuses 5 '\xe2\x80\xae' forerun simulate $'\xe2\x80\xae' dgx-h100:1
