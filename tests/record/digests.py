#!/usr/bin/env python3
"""digests.py RECORD: a line with a digest for each 250 plans of
RECORD/plans.txt and for each command of RECORD/answers.json."""
import hashlib
import sys


def parts(folder):
    with open(f"{folder}/plans.txt", encoding="utf-8") as file:
        lines = file.readlines()
    for first in range(0, len(lines), 250):
        yield f"plans from line {first + 1}", lines[first : first + 250]
    name, lines = None, []
    with open(f"{folder}/answers.json", encoding="utf-8") as file:
        for line in file:
            if line.startswith("== "):
                if name is not None:
                    yield name, lines
                name, lines = line[3:].rstrip("\n"), []
            lines.append(line)
    yield name, lines


for title, text in parts(sys.argv[1]):
    digest = hashlib.sha256("".join(text).encode()).hexdigest()[:16]
    print(digest, title, sep="\t")
