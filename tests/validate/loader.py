#!/usr/bin/env python3
"""loader.py FORERUN: the runtime's loader on two files of 1 GiB.

Two ranks, a manifest of two files of random tokens that are dropped from the
page cache, ranges: each rank draws its samples from its own file.  As storage
is, reading is hidden behind the step before (under 2 % of the steps' time is
waited for); held to a rate at which a step's samples take half as long again
as the step, they are waited for: within 15 % of what that comes to.  No rank
holds what it reads: its memory stays below half a file.

Takes 2 GiB where TMPDIR is and about a minute; `make data` runs it.
"""
import json
import os
import random
import statistics
import sys
import tempfile

from calls import forerun, steps_of, write_this_machine

GIB, BLOCK = 1 << 30, 1 << 20
SEQ, BATCH, STEPS, WARM = 256, 16, 60, 5
MODEL = {"model_type": "gpt2", "n_layer": 2, "n_embd": 128, "n_head": 2,
         "n_inner": 512, "n_positions": SEQ, "vocab_size": 256,
         "layer_norm_epsilon": 1e-5, "activation_function": "gelu_new"}


def write_tokens(path, seed):
    """1 GiB of 16-bit tokens below 256, and nothing of it in the cache."""
    block = bytearray(BLOCK)
    block[0::2] = random.Random(seed).randbytes(BLOCK // 2)
    with open(path, "wb") as out:
        for i in range(GIB // BLOCK):
            block[0] = i % 251
            out.write(block)
        out.flush()
        os.fsync(out.fileno())
        os.posix_fadvise(out.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def run(*options):
    """Median seconds of a step and of what it waits for input; largest
    memory."""
    forerun("run", "plan.json", "--data", "all.json", "--metrics", "m.jsonl",
            "--json", *options)
    rows = steps_of("m.jsonl")[WARM:]
    return (statistics.median(row["step_s"] for row in rows),
            statistics.median((row["parts_s"] or {}).get("data", 0)
                              for row in rows),
            max(row["memory_bytes"] or 0 for row in rows))


def main():
    is_good = True
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        with open("model.json", "w", encoding="utf-8") as out:
            json.dump(MODEL, out)
        for i in range(2):
            write_tokens(f"part-{i}.bin", 2385 + i)
        with open("all.json", "w", encoding="utf-8") as out:
            json.dump({"schema": "forerun.tokens/1", "shuffle": "ranges",
                       "files": [{"path": f"part-{i}.bin", "tokens": GIB // 2}
                                 for i in range(2)]}, out)
        write_this_machine("here.xml", "here")
        forerun("simulate", "model.json", "here.xml", "--dp", "2",
                "--micro-batch", str(BATCH // 2), "--threads", "1",
                "--ranks-per-node", "2", "--global-batch", str(BATCH), "--seq",
                str(SEQ), "--steps", str(STEPS), "-o", "plan.json")
        step_s, waits_s, memory = run()
        good = waits_s <= 0.02 * step_s and memory < GIB // 2
        is_good = is_good and good
        print(f"as it is:  step {1e3 * step_s:.1f} ms, waits "
              f"{1e3 * waits_s:.2f} ms for input, "
              f"{memory / 2**20:.0f} MiB{'' if good else '  too much'}")
        # Bytes that a rank reads in a step, at a rate that takes 1.5 steps.
        wanted_s = 1.5 * step_s
        rate = BATCH / 2 * 2 * (SEQ + 1) / wanted_s
        slow_s, waits_s, _ = run("--inject", f"read:{rate:.0f}B/s@0..{STEPS}")
        # What the rest of the same steps leaves of that.
        expected_s = wanted_s - (slow_s - waits_s)
        good = (abs(waits_s / expected_s - 1) <= 0.15
                and abs(slow_s / wanted_s - 1) <= 0.15)
        is_good = is_good and good
        print(f"throttled: step {1e3 * slow_s:.1f} ms of {1e3 * wanted_s:.1f}, "
              f"waits {1e3 * waits_s:.1f} ms for input of "
              f"{1e3 * expected_s:.1f}{'' if good else '  too far'}")
    return 0 if is_good else 1


sys.exit(main())
