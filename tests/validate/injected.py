#!/usr/bin/env python3
"""injected.py: runs with faults on purpose on this machine, against what is
predicted of them.

    injected.py FORERUN

A small model on two ranks: ranks that are killed, lost, hung and slow, data
that come slowly.  Measured before: a profile (forerun calibrate), and what a
restart takes, in a run of its own with one.  Ends with 1 where goodput is more
than 5 points away, the time until the end more than 10 %, or what is waited
for input more than 15 %.  The machine should have nothing else to do.
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

from calls import answer, forerun, steps_of, write_this_machine

STEPS, EVERY, TIMEOUT = 100, 10, 2
MODEL = {"model_type": "gpt2", "n_layer": 4, "n_embd": 256, "n_head": 4,
         "n_inner": 1024, "n_positions": 128, "vocab_size": 512,
         "layer_norm_epsilon": 1e-5, "activation_function": "gelu_new"}
SCHEDULES = [
    ("nothing", ""),
    ("killed twice", "kill:rank=1@37,kill:rank=0@68"),
    ("hung", "hang:rank=1@45"),
    ("slow rank", "slow:rank=1x2.5@20..69"),
    ("slow storage", "read:READ@20..69"),
    ("all of it", "kill:rank=0@24,slow:rank=0x2@30..49,read:READ@55..74,"
                  "kill:rank=1@83"),
]


def run(words, steps=STEPS):
    """Seconds until the end, the answer, seconds that input was waited for."""
    subprocess.run(["rm", "-rf", "checkpoints", "metrics.jsonl"], check=True)
    begin = time.time()
    told = answer(
        "run", "plan.json", "--steps", str(steps), "--data", "tokens.bin",
        "--checkpoint", "checkpoints", "--checkpoint-every", str(EVERY),
        "--elastic", "1:2", "--max-restarts", "9", "--timeout", str(TIMEOUT),
        "--metrics", "metrics.jsonl",
        *(["--inject", words] if words else []))
    wall = time.time() - begin
    of_step = {row["step"]: (row["parts_s"] or {}).get("data", 0)
               for row in steps_of("metrics.jsonl")}
    return wall, told, sum(of_step.values())


def predict(words, restart):
    return answer(
        "goodput", "plan.json", "this-machine.xml", "-p", "machine.json",
        "--steps", str(STEPS), "--checkpoint-every", str(EVERY), "--restart",
        f"{restart:.3f}s", "--timeout", str(TIMEOUT), "--inject",
        words or "slow:rank=0x1@0")


def prepare():
    with open("model.json", "w", encoding="utf-8") as out:
        json.dump(MODEL, out)
    with open("tokens.bin", "wb") as out:
        out.write(b"".join(bytes((i * 37 % 251, i % 2))
                           for i in range(1 << 19)))
    write_this_machine("this-machine.xml", "this-machine")
    forerun("calibrate", "model.json", "--ranks", "2", "-o", "machine.json")
    forerun("simulate", "model.json", "this-machine.xml", "-p", "machine.json",
            "--dp", "2", "--micro-batch", "4", "--global-batch", "16", "--seq",
            "128", "--threads", "1", "--steps", str(STEPS), "-o", "plan.json")


def say(name, predicted, wall, goodput, data):
    """A row; is all of it near enough?"""
    waited = predicted["seconds"]["input"]
    off = [abs(predicted["goodput"] - goodput) > 0.05,
           abs(predicted["wall_s"] / wall - 1) > 0.10,
           waited > 0 and abs(waited / max(data, 1e-9) - 1) > 0.15]
    mark = ["!" if it else " " for it in off]
    print(f"{name:14}{100 * predicted['goodput']:8.1f} %"
          f"{100 * goodput:8.1f} %{mark[0]}"
          f"{predicted['wall_s']:11.1f} s{wall:9.1f} s{mark[1]}"
          f"{waited:11.2f} s{data:9.2f} s{mark[2]}", flush=True)
    return not any(off)


def main():
    is_good = True
    prepare()
    # What a start takes: until the first step, and from a failure on.
    restarts = []
    for at in (5, 12):
        told = run(f"kill:rank=1@{at}", 16)[1]
        restarts += [r["seconds"] for r in told["restarts"]]
    restart = statistics.mean(restarts)
    step = predict("", restart)["step_s"]
    # Twice as slow as would be hidden.
    rate = f"{8 * 129 * 2 / (2 * step):.0f}B/s"
    print(f"restart {restart:.2f} s; a step {step * 1e3:.1f} ms predicted; "
          f"load {os.getloadavg()[0]:.1f}", flush=True)
    print(f"{'':14}{'goodput':>22}{'until the end':>24}{'input waited for':>24}")
    for name, words in SCHEDULES:
        words = words.replace("READ", rate)
        predicted = predict(words, restart)
        wall, told, data = run(words)
        goodput = STEPS * told["step_s"]["median"] / wall
        if not words:
            undisturbed = told["step_s"]["median"]
        if "slow:" in words or "read:" in words:
            goodput = STEPS * undisturbed / wall
        is_good = say(name, predicted, wall, goodput, data) and is_good
    print("predicted, measured; '!': further away than 5 points, 10 %, 15 %")
    return 0 if is_good else 1


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    CODE = main()
    os.chdir("/")
sys.exit(CODE)
