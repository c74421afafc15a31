#!/usr/bin/env python3
"""Runs exported scripts as torchrun would; PyTorch is loaded once, every rank
of every script is a fork.

usage: script_ranks.py WORLD JOBS

JOBS is a file with a line for each script: its path and arguments.  What rank
0 prints goes to PATH.out, what goes wrong to PATH.err.
"""
import contextlib
import os
import runpy
import signal
import socket
import sys
import traceback

import torch  # noqa: F401, so that the forks have it
import torch.distributed.optim  # noqa: F401

import script_stubs
import script_stubs_arrays

SECONDS = 60  # of a script


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def run_rank(rank, world, port, words):
    """Never returns.  Ends without tearing PyTorch down, which is slow."""
    path, status = words[0], 1
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank),
                      WORLD_SIZE=str(world), LOCAL_WORLD_SIZE=str(world),
                      MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    sys.argv = words
    signal.alarm(SECONDS)
    with open(path + ".out" if rank == 0 else os.devnull, "w") as out:
        try:
            with contextlib.redirect_stdout(out):
                runpy.run_path(path, run_name="__main__")
            status = 0
        except (Exception, SystemExit) as why:
            with open(path + ".err", "a") as err:
                err.write(f"rank {rank}: {why}\n{traceback.format_exc()}")
    os._exit(status)


def run_one(world, words):
    port, children = free_port(), []
    for rank in range(world):
        child = os.fork()
        if child == 0:
            run_rank(rank, world, port, words)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)


def main():
    os.environ["STUB_WORLD"] = sys.argv[1]
    script_stubs.install()
    script_stubs_arrays.install()
    with open(sys.argv[2]) as file:
        for line in file:
            if line.strip():
                run_one(int(sys.argv[1]), line.split())


if __name__ == "__main__":
    main()
