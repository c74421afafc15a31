"""calls.py: forerun as the scripts beside this file call it; the first argument
of each is the program.
"""
import json
import os
import subprocess
import sys

FORERUN = os.path.abspath(sys.argv[1])


def forerun(*words):
    """What it prints; ends the script where it fails."""
    done = subprocess.run([FORERUN, *words, "-q"], capture_output=True,
                          text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"forerun {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


def answer(*words):
    return json.loads(forerun(*words, "--json"))


def write_this_machine(path, name):
    with open(path, "w", encoding="utf-8") as out:
        out.write(f'<cluster name="{name}">\n'
                  '  <machine id="host" detect="yes"/>\n</cluster>\n')


def steps_of(path):
    """The rows that `run --metrics` wrote."""
    with open(path, encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]
