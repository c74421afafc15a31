#!/usr/bin/env python3
"""usage: script_losses.py NAME SCRIPT RUN: do the losses that a script printed equal
those of `forerun run --json`?  A NAME that ends in -bf16 may differ by 16 bits,
one that ends in -lossy need but fall."""
import json
import os
import sys

name, script, run = sys.argv[1:]
if os.path.exists(script + ".err"):
    with open(script + ".err") as file:
        sys.exit(f"{name}: {file.read()}")
losses = []
with open(script + ".out") as file:
    for line in file:
        words = line.split()
        if words[:1] == ["step"]:
            losses.append(float(words[3]))
with open(run) as file:
    wanted = json.load(file)["loss"]
bound = 2e-2 if name.endswith("-bf16") else 1e-4
if len(losses) != len(wanted):
    sys.exit(f"{name}: {len(losses)} losses, not {len(wanted)}")
if name.endswith("-lossy"):
    is_good = abs(losses[0] - wanted[0]) < 1e-4 and losses[-1] < losses[0]
else:
    is_good = all(abs(a - b) < bound for a, b in zip(losses, wanted))
if not is_good:
    sys.exit(f"{name}: losses {losses}, forerun's {wanted}")
