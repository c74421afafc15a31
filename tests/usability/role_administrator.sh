#!/bin/bash
# role_administrator.sh: two racks, described from what the machines say; which
# of the nodes is slow?
. "$(dirname "$0")/expect.sh"
import=$root/tests/golden/fixtures/import

# Templates load as they are.
for name in single-node two-tier rail torus; do
    forerun catalog --template $name >"$work/$name.xml"
    ask forerun simulate llama-3-8b "$work/$name.xml" -q
    ends_with 0
    grep -q '<!--' "$work/$name.xml"
    verdict $? "template $name has no comments"
done
ask forerun catalog --template two-racks
ends_with 2
warns 'two-tier'

# All that is wrong, at once, with lines, in the words of the file.
cat >"$work/bad.xml" <<'XML'
<cluster name="my racks">
  <device id="h100" kind="gpu" memory="80"/>
  <node-type id="n" device="h100" devices="eight">
    <intra kind="nvlinc" bandwidth="450GB/s"/>
    <nic count="8" bandwith="400Gb/s" latency="3us"/>
  </node-type>
  <group id="rack0" node-type="m" count="4"/>
  <group id="rack1" node-type="n" count="4"/>
  <fabric kind="fat-tree"><level down="4" oversubscription="2:1"/></fabric>
  <slow node="rack7-0" compute="80%"/>
</cluster>
XML
ask forerun simulate llama-3-8b "$work/bad.xml"
ends_with 5
warns 'bad.xml:1: .*my racks' "bad.xml:2: .*no unit" "bad.xml:3: .*eight" \
    'bad.xml:4: .*nvlink' "bad.xml:5: .*'bandwidth'" "bad.xml:7: .*'m'" \
    'bad.xml:9: .*2:1' 'bad.xml:10: .*rack7-0'
never_warns "Element '" facet 'atomic type' xs:
printf '<cluster name="c">\n<group id=a/>\n</cluster>' >"$work/quote.xml"
ask forerun simulate llama-3-8b "$work/quote.xml"
ends_with 5
warns 'quote.xml:2: .*quotes'

# Who hangs on which switch, and what a node is.
ask forerun import "$import/topology.conf" "$import/dump.xml" -q \
    -o "$work/mine.xml"
ends_with 0
ask forerun simulate llama-3-8b "$work/mine.xml" -q
ends_with 0
says '16 of 16 GPUs'
ask forerun import "$import/topology.conf" "$import/all_reduce.txt"
ends_with 2
warns 'cannot be joined'
ask forerun import nccl-tets "$import/all_reduce.txt"
ends_with 2
warns "did you mean 'nccl-tests'" 'memory-snapshot' 'megatron'
ask forerun import kineto
ends_with 2
warns 'of which file'
# Whatever a device calls itself, what is written can be read.
sed 's/Using devices/Using devices \xff\xff/; s/NVIDIA/NV\xff\xffIA/' \
    "$import/all_reduce.txt" >"$work/all_reduce.txt"
ask forerun import nccl-tests "$work/all_reduce.txt" -q -o "$work/links.json"
ends_with 0
ask forerun simulate llama-3-8b "$work/mine.xml" -p "$work/links.json" -q
ends_with 0
# A thousand switches of Slurm, at once.
for ((i = 0; i < 1000; i++)); do
    echo "SwitchName=leaf$i Nodes=n$i-[0-15]"
done >"$work/large.conf"
ask_timed forerun import "$work/large.conf" --node-type dgx-h100 -q -o "$work/l.xml"
ends_with 0
holds "$cpu_s < 1"

# The slow node by name, and what it costs.
sed 's#</cluster>#<slow node="rack1-2" compute="85%"/></cluster>#' \
    "$work/two-tier.xml" >"$work/slow.xml"
ask forerun explain llama-3-8b "$work/slow.xml" --dp 128 --zero 1 \
    --global-batch 128 --seq 4096 -q
ends_with 0
says 'slow: rack1-2, computes at 85 %: costs .* of every step .* USD/h'
ask forerun explain llama-3-8b "$work/two-tier.xml" --dp 128 --zero 1 \
    --global-batch 128 --seq 4096 -q
never_says '^slow'

# Equal racks are swept together.
ask forerun sweep llama-3-8b "$work/two-tier.xml" --vary nodes=4,16,32 --fixed \
    --zero 1 --global-batch 256 --seq 4096 -q
ends_with 0
says '^ *4 +32 ' '^ *16 +128 ' '^ *32 +256 '

# A plan for those GPUs is not for this machine: said first.
ask forerun simulate llama-3-8b "$work/two-tier.xml" -q -o "$work/plan.json"
ask forerun run "$work/plan.json"
ends_with 5
warns '^forerun: [^:]* is a plan for .*two-tier.xml, and this is a run on the CPUs'
ask forerun explain "$work/plan.json" dgx-h100:1 -q
ends_with 3
warns 'plan for .*two-tier.xml, not for 1 node of .dgx-h100.: 128 ranks'
# "What is missing here?"
ask forerun doctor
says 'cores' 'locked memory' 'MPI'
never_says '^missing .*(cores|memory|MPI)'
ask forerun doctor dgx-h100:2
ends_with 4
says 'cluster: GPUs .*0 here, 8 x h100-sxm'
warns 'missing, first of them'
ask forerun doctor --json
says '"forerun.doctor/1"'
if grep -qw avx2 /proc/cpuinfo; then
    ask env -u OPENBLAS_CORETYPE forerun doctor --json
    never_says 'Prescott|Barcelona|Nehalem|Sandybridge'
fi
ask forerun doctor -p "$fixtures/nobody.json"
ends_with 2

summary
