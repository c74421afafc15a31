#!/usr/bin/env python3
"""injected.py: runs with faults on purpose on this machine, against what is
predicted of them.

    injected.py FORERUN

A small model on two ranks: ranks that are killed, hung and slow, data that
come slowly.  Measured before: a profile (forerun calibrate), which also has
what starts, restarts and checkpoints take; nothing is told but the plan and
the faults.  Ends with 1 where goodput is more than 5 points away, the time
until the end more than 10 %, or what is waited for input more than 15 %.  The
machine should have nothing else to do.  Before the table: the terms of a run
in which nothing happens, each predicted and measured.
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
NOTHING = "slow:rank=0x1@0"
SCHEDULES = [
    ("nothing", ""),
    ("killed twice", "kill:rank=1@37,kill:rank=0@68"),
    ("hung", "hang:rank=1@45"),
    ("slow rank", "slow:rank=1x2.5@20..69"),
    ("slow storage", "read:READ@20..69"),
    ("all of it", "kill:rank=0@24,slow:rank=0x2@30..49,read:READ@55..74,"
                  "kill:rank=1@83"),
]


def run(words):
    """When it began and ended, the answer, the rows of its steps."""
    subprocess.run(["rm", "-rf", "checkpoints", "metrics.jsonl"], check=True)
    begin = time.time()
    told = answer(
        "run", "plan.json", "--steps", str(STEPS), "--data", "tokens.bin",
        "--checkpoint", "checkpoints", "--checkpoint-every", str(EVERY),
        "--elastic", "1:2", "--max-restarts", "9", "--timeout", str(TIMEOUT),
        "--metrics", "metrics.jsonl",
        *(["--inject", words] if words else []))
    return begin, time.time(), told, steps_of("metrics.jsonl")


def predict(words):
    return answer(
        "goodput", "plan.json", "this-machine.xml", "-p", "machine.json",
        "--steps", str(STEPS), "--checkpoint-every", str(EVERY),
        "--timeout", str(TIMEOUT), "--inject", words or NOTHING)


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


def mean_step(rows):
    return statistics.mean(row["step_s"] for row in rows)


def say_terms(begin, end, told, rows):
    """What a run without faults is made of."""
    with open("machine.json", encoding="utf-8") as text:
        known = json.load(text)["running"]
    predicted = predict("")
    first, last = rows[0], rows[-1]
    saved = told["checkpoints"]["stall_s"]
    steps = [row["step_s"] for row in rows]
    for name, expected, found in (
            ("start", known["start_s"],
             first["time_s"] - first["step_s"] - begin),
            ("step, mean", predicted["step_s"], statistics.mean(steps)),
            ("step, median", predicted["step_s"], statistics.median(steps)),
            ("checkpoint",
             predicted["seconds"]["checkpoint"] / (STEPS / EVERY), saved),
            ("end", known["end_s"], end - last["time_s"] - saved)):
        print(f"{name:14}{expected:8.3f} s{found:8.3f} s")


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


def say_restarts(told):
    for restart in told["restarts"]:
        print(f"{'':14}restart of step {restart['step']}: "
              f"{restart['seconds']:.2f} s", flush=True)


def main():
    is_good = True
    prepare()
    # Twice as slow as would be hidden.
    rate = f"{8 * 129 * 2 / (2 * predict('')['step_s']):.0f}B/s"
    for name, words in SCHEDULES:
        words = words.replace("READ", rate)
        predicted = predict(words)
        begin, end, told, rows = run(words)
        step = mean_step(rows)
        if not words:
            undisturbed = step
            say_terms(begin, end, told, rows)
            print(f"load {os.getloadavg()[0]:.1f}")
            print(f"{'':14}{'goodput':>22}{'until the end':>24}"
                  f"{'input waited for':>24}")
        if "slow:" in words or "read:" in words:
            step = undisturbed
        # Of a step that was made twice the later time counts.
        waited = {row["step"]: (row["parts_s"] or {}).get("data", 0)
                  for row in rows}
        is_good = say(name, predicted, end - begin,
                      STEPS * step / (end - begin),
                      sum(waited.values())) and is_good
        say_restarts(told)
    print("predicted, measured; '!': further away than 5 points, 10 %, 15 %")
    return 0 if is_good else 1


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    CODE = main()
    os.chdir("/")
sys.exit(CODE)
