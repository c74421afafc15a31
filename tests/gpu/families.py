#!/usr/bin/env python3
"""families.py DIR: compares what tests/gpu/run left in DIR (build/gpu-check) in
two stages: kernels as published work predicts them against those that were
measured alone (calibrate), and these against a step of training, by kind of
instruction.  Prints two tables."""
import collections
import json
import pathlib
import sys


def load(path):
    with open(path) as file:
        return json.load(file)


def seconds_by_kind(path):
    """Seconds of a traced step by the name of its instructions."""
    sums = collections.Counter()
    for event in load(path)["traceEvents"]:
        if event.get("ph") == "X" and event.get("cat") != "call":
            sums[event["name"]] += event["dur"] * 1e-6
    return sums


def main(directory):
    stages = ("published", "profile", "measured")
    sums = {stage: collections.Counter() for stage in stages}
    print(f"{'step':20} {'measured':>10} {'published':>19} {'profile':>19}")
    for run in sorted(directory.glob("*.run.json")):
        name = run.name.removesuffix(".run.json")
        traces = {"published": f"{name}.published.trace.json",
                  "profile": f"{name}.profile.trace.json",
                  "measured": f"{name}.trace.json"}
        if not all((directory / t).exists() for t in traces.values()):
            continue
        for stage, trace in traces.items():
            sums[stage] += seconds_by_kind(directory / trace)
        measured = load(run)["step_s"]["median"]
        cells = ""
        for kind in ("published", "simulate"):
            predicted = load(directory / f"{name}.{kind}.json")["step_s"]
            cells += (f" {1e3 * predicted:8.2f} ms"
                      f" {100 * (predicted / measured - 1):+5.1f} %")
        print(f"{name:20} {1e3 * measured:7.2f} ms{cells}")
    print(f"\n{'kind':16} {'measured':>11} {'published/alone':>16}"
          f" {'alone/step':>11}")
    for kind, measured in sums["measured"].most_common():
        alone = sums["profile"][kind]
        if alone > 0 and measured > 1e-4:
            print(f"{kind:16} {1e3 * measured:8.2f} ms"
                  f" {sums['published'][kind] / alone:16.3f}"
                  f" {alone / measured:11.3f}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(pathlib.Path(sys.argv[1]))
