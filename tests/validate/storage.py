#!/usr/bin/env python3
"""storage.py FORERUN: accelerators that a storage keeps fed, against the rows of
MLPerf Storage v1.0 (storage.csv).

There an accelerator is emulated: it takes a batch and waits for as long as the
real one would compute (mlcommons/storage, configs/dlio/workload/*.yaml).  Here
it is a device that computes a layer for so long; the storage has the bandwidth
that was measured.  Predicted is the share of the time that the accelerators
compute (their utilisation), which must be within 10 %.

Ends with 1 where more rows than one in fifty are further away.
"""
import csv
import json
import os
import sys
import tempfile

from calls import answer

HERE = os.path.dirname(os.path.abspath(__file__))

# workload: samples of a batch, bytes of a sample, seconds of a batch.
WORKLOADS = {
    "unet3d": (7, 146600628, {"h100": 0.323, "a100": 0.636}),
    "resnet50": (400, 114660.07, {"h100": 0.224, "a100": 0.435}),
    "cosmoflow": (1, 2828486, {"h100": 0.0035, "a100": 0.00551}),
}


def write_model(path, flop):
    with open(path, "w", encoding="utf-8") as out:
        json.dump({"schema": "forerun.model/1", "name": "emulated",
                   "kind": "layers", "layers": [
                       {"name": "all", "forward_flop": flop,
                        "parameters": 16, "activation_bytes": 4,
                        "output_bytes": 4}]}, out)


def write_cluster(path, devices, bytes_per_s):
    with open(path, "w", encoding="utf-8") as out:
        out.write(f"""<cluster name="emulated">
  <node-type id="host" device="h100-sxm" devices="{devices}">
    <intra kind="nvswitch" bandwidth="450GB/s" latency="1us"/>
    <storage read="{bytes_per_s:.0f}B/s"/>
  </node-type>
  <group id="n" node-type="host"/>
</cluster>
""")


def simulate(folder, batch, devices, sample_bytes):
    """Seconds of a step and what of it waits for input."""
    step = answer("simulate", os.path.join(folder, "model.json"),
                  os.path.join(folder, "cluster.xml"), "--dp", str(devices),
                  "--micro-batch", str(batch), "--global-batch",
                  str(batch * devices), "--sample-bytes", str(sample_bytes))
    return step["step_s"], step["breakdown_s"]["data"]


def flop_of(folder, batch, seconds):
    """Of a layer with which a device alone takes so long for a batch."""
    flop = 1e12
    write_cluster(os.path.join(folder, "cluster.xml"), 1, 1e15)
    for _ in range(4):
        write_model(os.path.join(folder, "model.json"), flop)
        flop *= seconds / simulate(folder, batch, 1, 1)[0]
    return flop


def main():
    far, rows, errors = [], 0, []
    with tempfile.TemporaryDirectory() as folder:
        flops = {}
        with open(os.path.join(HERE, "storage.csv"), encoding="utf-8") as file:
            for row in csv.DictReader(file):
                batch, size, seconds = WORKLOADS[row["workload"]]
                key = row["workload"], row["accelerator"]
                if key not in flops:
                    flops[key] = flop_of(folder, batch,
                                         seconds[row["accelerator"]])
                n = int(row["accelerators"])
                write_model(os.path.join(folder, "model.json"), flops[key])
                write_cluster(os.path.join(folder, "cluster.xml"), n,
                              float(row["mib_per_s"]) * 2**20)
                step_s, waits_s = simulate(folder, batch, n, size)
                busy = 100 * (1 - waits_s / step_s)
                rows += 1
                errors.append(busy / float(row["au_pct"]) - 1)
                if abs(errors[-1]) > 0.1:
                    far.append((row, busy))
    errors.sort(key=abs)
    print(f"MLPerf Storage v1.0: {rows} rows, accelerators busy within "
          f"10 % in {rows - len(far)}; error {100 * errors[rows // 2]:.1f} % "
          f"in the middle, {100 * errors[-1]:.1f} % at most")
    for row, busy in far:
        print(f"  {row['submitter']} {row['workload']}-{row['accelerator']}, "
              f"{row['accelerators']} accelerators: predicted {busy:.1f} %, "
              f"measured {row['au_pct']} %")
    return 0 if len(far) <= rows // 50 else 1


sys.exit(main())
