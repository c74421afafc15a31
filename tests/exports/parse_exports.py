#!/usr/bin/env python3
"""usage: parse_exports.py FOLDER: reads each *.json, *.toml, *.yaml and *.py below it
as any program would; says how many of each, and which cannot be read."""
import ast
import csv
import json
import os
import sys

import yaml

try:
    import tomllib
except ImportError:  # before Python 3.11
    import tomli as tomllib

READERS = {".json": json.loads, ".toml": tomllib.loads,
           ".yaml": lambda text: list(yaml.safe_load_all(text)),
           ".py": ast.parse,
           ".csv": lambda text: list(csv.reader(text.splitlines()))}
counts, n_wrong = {}, 0
for folder, _, names in sorted(os.walk(sys.argv[1])):
    for name in names:
        ending = os.path.splitext(name)[1]
        if ending not in READERS:
            continue
        path = os.path.join(folder, name)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        counts[ending] = counts.get(ending, 0) + 1
        try:
            READERS[ending](text)
        except Exception as why:  # whatever a parser raises
            n_wrong += 1
            print(f"{path}: {why}")
print(" ".join(f"{n} {ending}" for ending, n in sorted(counts.items())))
sys.exit(n_wrong != 0)
