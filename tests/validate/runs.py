#!/usr/bin/env python3
"""runs.py: goodput against published runs, and spot traces against a policy
computed here, which shares no code with forerun.

    runs.py FORERUN [TRACE.json ...]

Ends with 1 where a row is further from what was published than it may be: by
the factor at_most, or, for shares, by that much.
"""
import csv
import json
import os
import sys
import tempfile

from calls import answer

HERE = os.path.dirname(os.path.abspath(__file__))


def predict(arguments):
    """forerun goodput as its JSON; the key of conditions is one of the top.
    --force: the published runs did fit, but their pages do not state every
    option that saved memory."""
    told = answer("goodput", "--force", *arguments)
    conditions = told["conditions"]
    hours = 24 * (told["finish_days"]["mean"] or float("inf"))
    node_kw = (told["kwh"] or 0) / hours / conditions["nodes"]
    return {"node_kw": node_kw, **conditions, **told}


def model_of(text, folder):
    """A model of the catalogue, or one of so many billion parameters: 12
    hidden^2 in each of 40 layers or more."""
    try:
        billions = float(text)
    except ValueError:
        return text
    layers = 40 if billions < 60 else 80
    if billions < 4:
        layers = 24
    hidden = round((billions * 1e9 / 12 / layers) ** 0.5 / 512) * 512
    path = os.path.join(folder, f"gpt-{text}b.json")
    with open(path, "w", encoding="utf-8") as out:
        json.dump({"schema": "forerun.model/1", "name": f"gpt-{text}b",
                   "kind": "decoder", "n_layers": layers, "hidden": hidden,
                   "n_heads": hidden // 128, "ffn_hidden": 4 * hidden,
                   "vocab": 50257, "max_seq": 2048,
                   "activation": "gelu_tanh", "tied": True}, out)
    return path


def published_rows(folder):
    """(row, predicted, published, is it near enough)"""
    with open(os.path.join(HERE, "runs.csv"), encoding="utf-8") as rows:
        for row in csv.DictReader(rows):
            told = predict([model_of(row["model"], folder), row["cluster"],
                              *row["options"].split()])
            is_, was = told[row["key"]], float(row["published"])
            at_most = float(row["at_most"])
            near = (abs(is_ - was) <= at_most if row["key"] == "goodput"
                    else max(is_ / was, was / is_) <= at_most)
            yield row["row"], is_, was, near


def spans_of(trace, needed):
    """[seconds, whether all nodes are there], in order."""
    with open(trace, encoding="utf-8") as file:
        read = json.load(file)
    spans = []
    for count in read["data"]:
        there = count >= needed
        if spans and spans[-1][1] == there:
            spans[-1][0] += read["metadata"]["gap_seconds"]
        else:
            spans.append([read["metadata"]["gap_seconds"], there])
    return spans


def replay(spans, begin, work, restart, cycle, blocked):
    """Seconds that a run takes which begins so far into the trace: it waits for
    all nodes, starts, steps, saves after every `cycle` of them, loses what is
    not saved when nodes go."""
    i, left = 0, begin % sum(span[0] for span in spans)
    while left >= spans[i][0]:
        left -= spans[i][0]
        i = (i + 1) % len(spans)
    remaining = spans[i][0] - left
    passed, saved = 0.0, 0.0
    while True:
        if spans[i][1] and remaining > restart:
            budget = remaining - restart
            whole = int((work - saved) / cycle + 1e-9)
            if whole * cycle >= work - saved - 1e-9:
                whole -= 1   # the last save is not waited for
            whole = max(whole, 0)
            need = (work - saved) + whole * blocked
            if need <= budget:
                return passed + restart + need
            saved += int(budget / (cycle + blocked)) * cycle
        passed += remaining
        i = (i + 1) % len(spans)
        remaining = spans[i][0]
        if passed > 100 * work:
            sys.exit("the oracle's run does not end")


def replay_rows(traces):
    """Time and money of spot runs, forerun's and ours."""
    nodes, restart = 8, 300
    for trace in traces:
        every = 200
        arguments = ["gpt2-1.5b", f"p4d.24xlarge:{nodes}", "--seq", "1024",
                     "--spot", "--spot-trace", trace, "--mtbf", "1e11h",
                     "--restart", f"{restart}s", "--tokens", "20B", "--runs",
                     "4000", "--checkpoint-every", str(every)]
        told = predict(arguments)
        if told["unfinished"] > 0:
            continue
        spans = spans_of(trace, nodes)
        work = told["work_days"] * 86400
        total = sum(span[0] for span in spans)
        count = 4000
        mean = sum(replay(spans, (k + 0.5) * total / count, work, restart,
                          every * told["step_s"],
                          told["checkpoint_blocked_s"])
                   for k in range(count)) / count
        name = os.path.basename(trace)
        is_ = told["finish_days"]["mean"]
        near = abs(is_ * 86400 / mean - 1) <= 0.03
        yield f"days on spot nodes, {name}", is_, mean / 86400, near
        price = told["usd"] / (is_ * 24)
        yield (f"dollars of it, {name}", told["usd"], price * mean / 3600,
               near)


def main():
    is_good = True
    print(f"{'run':52} {'forerun':>9} {'other':>9}  ratio")
    with tempfile.TemporaryDirectory() as folder:
        rows = [*published_rows(folder), *replay_rows(sys.argv[2:])]
    for name, is_, was, near in rows:
        is_good = is_good and near
        print(f"{name:52} {is_:9.4g} {was:9.4g} {is_ / was:6.2f}"
              f"{'' if near else '  too far'}")
    return 0 if is_good else 1


sys.exit(main())
