#!/bin/sh
# make bench-images: images per second of ResNet-50 on two threads, beside
# PyTorch in the same rounds; result: build/bench-images.json.  ROUNDS=3,
# BATCH=16.
set -eu
cd "$(dirname "$0")/../.."
build=${BUILD:-build}
batch=${BATCH:-16}
dir=$build/bench-images
mkdir -p "$dir"
"$build/forerun" simulate resnet-50 this-machine --global-batch "$batch" \
    --micro-batch "$batch" --dp 1 --threads 2 --optimizer sgd \
    -o "$dir/plan.json" --json >/dev/null
has_peer=no
if /usr/bin/python3 -c 'import torch' 2>/dev/null; then
    has_peer=yes
else
    echo "PyTorch: python3-torch is not installed" >&2
fi
rm -f "$dir"/round.*
for i in $(seq "${ROUNDS:-3}"); do
    "$build/forerun" run "$dir/plan.json" --steps 5 --json >"$dir/round.$i.run"
    [ $has_peer = no ] || /usr/bin/python3 bench/images/pytorch_resnet.py "$batch" 224 2 4 \
        >"$dir/round.$i.torch"
done
/usr/bin/python3 - "$dir" "$build/bench-images.json" "$batch" <<'END'
import glob
import json
import statistics
import sys


def read(pattern, get):
    found = [get(json.load(open(path)))
             for path in sorted(glob.glob(sys.argv[1] + pattern))]
    return statistics.median(found) if found else None


ours = read("/round.*.run",
            lambda run: int(sys.argv[3]) / run["step_s"]["median"])
first = read("/round.*.torch", lambda peer: peer["channels_first"])
last = read("/round.*.torch", lambda peer: peer["channels_last"])
row = {"schema": "forerun.bench-images/1", "images_per_s": ours,
       "pytorch_channels_first": first, "pytorch_channels_last": last}
print("ResNet-50, fp32, SGD, 2 threads, medians")
print("  %-30s %8.2f images/s" % ("forerun", ours))
if first:
    row["ratio_pytorch"] = ours / max(first, last)
    for name, value in (("channels first", first), ("channels last", last)):
        print("  %-30s %8.2f images/s (ratio %.2f)"
              % ("PyTorch, " + name, value, ours / value))
with open(sys.argv[2], "w") as out:
    json.dump(row, out)
    out.write("\n")
END
