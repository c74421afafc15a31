"""
Trains a decoder with Horovod (0.28, PyTorch).

    horovodrun -np 8 python3 train_horovod.py [--weights model.safetensors]

Without --weights it begins with the weights that `forerun run` begins with,
and trains on its tokens.
"""
import argparse
import contextlib
import json
import math
import os
import struct
import sys
import time

import horovod.torch as hvd
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

# forerun: plan
# forerun: include tokens.py
# forerun: include schedule.py
# forerun: include torch_model.py
# forerun: include torch_optimizer.py
# forerun: include torch_setup.py
# ---- Horovod -----------------------------------------------------------------


def set_up_horovod(n_bytes):
    """Joins the other ranks; the device of this one."""
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    # 0: one bucket.  Horovod fuses what is ready within a cycle.
    os.environ.setdefault("HOROVOD_FUSION_THRESHOLD",
                          str(PLAN["bucket_bytes"] or n_bytes))
    if PLAN["collective"] == "hierarchical":
        os.environ.setdefault("HOROVOD_HIERARCHICAL_ALLREDUCE", "1")
    hvd.init()
    if hvd.size() != PLAN["dp"]:
        sys.exit(f"the plan is for {PLAN['dp']} ranks, these are "
                 f"{hvd.size()}; start them with horovodrun -np")
    if torch.cuda.is_available():
        torch.cuda.set_device(hvd.local_rank())
        torch.backends.cuda.matmul.allow_tf32 = PLAN["precision"] == "tf32"
        return torch.device("cuda", hvd.local_rank())
    torch.set_num_threads(PLAN["threads"])
    return torch.device("cpu")


def train_step(model, optimizer, tokens, step, device):
    """One global batch; the mean loss of all ranks."""
    micro = PLAN["micro_batch"]
    per_rank = JOB["global_batch"] // hvd.size()
    n_micro, total = per_rank // micro, 0.0
    optimizer.zero_grad()
    for i in range(n_micro):
        first = hvd.rank() * per_rank + i * micro
        batch = torch.from_numpy(tokens.load(step, first, micro)).to(device)
        with autocast(device):
            loss = model(batch[:, :-1], batch[:, 1:]) / n_micro
        loss.backward()  # the last one of a step sends gradients
        total += loss.item()
    optimizer.synchronize()
    if JOB["clip_norm"] > 0:
        nn.utils.clip_grad_norm_(model.parameters(), JOB["clip_norm"])
    set_learning_rate(optimizer, step)
    with optimizer.skip_synchronize():
        optimizer.step()
    return hvd.allreduce(torch.tensor(total), op=hvd.Average).item()


def main():
    arguments = read_arguments()
    model = Decoder(Weights(arguments.weights, JOB["seed"]),
                    lambda block: block)
    device = set_up_horovod(4 * sum(p.numel() for p in model.parameters()))
    model.to(device)
    if arguments.save_weights and hvd.rank() == 0:
        save_safetensors(named_tensors(model.state_dict()),
                         arguments.save_weights)
    torch.manual_seed(JOB["seed"] + hvd.rank())  # of dropout
    kind, groups, options = optimizer_of(model)
    optimizer = hvd.DistributedOptimizer(
        kind(groups, **options), named_parameters=model.named_parameters(),
        compression=hvd.Compression.none, op=hvd.Average,
        backward_passes_per_step=(JOB["global_batch"] // hvd.size() //
                                  PLAN["micro_batch"]))
    model = compiled(model)
    tokens = Tokens(arguments.data, JOB["seed"], JOB["seq"], MODEL["vocab"])
    for step in range(arguments.steps):
        begin = time.monotonic()
        loss = train_step(model, optimizer, tokens, step, device)
        if hvd.rank() == 0:
            print(f"step {step} loss {loss:.6f} lr {learning_rate(step):.3g} "
                  f"seconds {time.monotonic() - begin:.3f}", flush=True)


if __name__ == "__main__":
    main()
