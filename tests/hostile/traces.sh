# What runs left behind, larger than memory may be: 500 MB of a trace and of a
# log in less than 512 MB, and what is cut off, packed or none at all.

kineto() { # MEGABYTES
    awk -v mb="$1" 'BEGIN {
        printf "{\"schemaVersion\": 1, \"traceEvents\": [\n"
        for (n = 0; n < mb * 1e6; i++) {
            s = sprintf("%s{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::mm\", \"pid\": 7, \"tid\": 7, \"ts\": %d.125, \"dur\": 3.5, \"args\": {\"External id\": %d, \"Input Dims\": [[2048, 1024], [1024, %d]], \"Input type\": [\"float\", \"float\"]}},\n{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"sgemm_128\", \"pid\": 0, \"tid\": 7, \"ts\": %d.5, \"dur\": 60.25, \"args\": {\"External id\": %d, \"stream\": 7}}\n", i ? "," : "", i * 10, i, 64 * (i % 100 + 1), i * 10 + 5, i)
            printf "%s", s
            n += length(s)
        }
        print "]}" }'
}
# Memory is that of all libraries too, which the linker maps.
bounded() {
    (ulimit -v 1500000; "$@")
}
export -f bounded
kineto 500 >large.trace
LIMIT_S=60 answers 'sgemm_128' bash -c 'bounded forerun import kineto large.trace'
head -c 300000000 large.trace >cut.trace
LIMIT_S=60 refuses 5 'cut off' bash -c 'bounded forerun import kineto cut.trace'
kineto 20 | gzip -1 >packed.gz
answers 'sgemm_128' forerun import kineto packed.gz
head -c 200000 packed.gz >cut.gz
refuses 5 'cut off' forerun import kineto cut.gz
rm -f large.trace cut.trace

awk 'BEGIN { for (i = 0; i < 3000000; i++) print " [2026-10-09 10:00:07] iteration " i "/ 60 | elapsed time per iteration (ms): 3391.5 | global batch size: 128 | lm loss: 1.2E+00 |" }' >large.log
LIMIT_S=60 answers '3.3915' bash -c 'bounded forerun import log large.log'
rm -f large.log
refuses 5 'is a folder or a device' forerun import log /dev/zero
refuses 5 'is a folder or a device' forerun import kineto /dev/zero
truncate -s 200M hole
refuses 5 'a NUL byte' forerun import log hole
refuses 5 'this is no JSON' forerun import kineto hole
awk 'BEGIN { for (i = 0; i < 100000; i++) printf "["; print "" }' >deep.json
refuses 5 'an event is an object' forerun import kineto deep.json
awk 'BEGIN { printf "[{\"args\":"; for (i = 0; i < 100000; i++) printf "["; print "" }' >deep.json
refuses 5 'nested more than 64' forerun import kineto deep.json
awk 'BEGIN { for (i = 0; i < 70000; i++) printf "%s{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k%d\",\"ts\":1,\"dur\":1}", i ? "," : "[", i; print "]" }' >many.json
refuses 5 'different kernels' forerun import kineto many.json
