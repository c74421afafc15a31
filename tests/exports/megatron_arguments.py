#!/usr/bin/env python3
"""Plans that are exported to Megatron-LM, by its own parser and checks.

usage: megatron_arguments.py MEGATRON_DIR FOLDER REPORT.json
FOLDER is what tests/record/random_exports writes.  Each script is run with a
torchrun that says what it is given; its arguments go through parse_args(),
validate_args() and core_transformer_config_from_args() of the checkout, and
OptimizerConfig, without torch (framework_shims.py) and as on a GPU of
generation Hopper.
"""
import contextlib
import importlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import types
import warnings

import framework_shims

STUBS = {"torch", "transformer_engine", "numpy", "triton", "yaml", "einops",
         "tqdm", "requests", "pydantic"}

# What Megatron finds out later than where it looks at its arguments, or says
# in its documents alone: rules that its parser does not know.  Where a release
# has no word for a value, nothing is written, which it takes.
NO_WORD = re.compile(r"before core|core 0\.\d+ or later|even stages")
LATER = (
    "sequence parallel with experts and tp",
    "pp 1 with sharded gradients or parameters",
    "ep x etp > 1 with expert-dispatch by-node",
    "fewer steps of warm-up than of training",
    "a seed from 1 to 2^31 - 1",
    "a precision of 16 bits or fewer with loss_fused",
    "at least one part with selective recompute",
    "recompute of other parts than products",
    "grad_dtype f32, or that of the weights where it has 16 bits",
    "offload-activations of whole layers, and not of all",
    # What it turns on by itself, whatever the plan says.
    "overlap with sharded gradients or parameters",
    "overlap-grad-reduce with overlap-param-gather",
)


def install(checkout):
    framework_shims.install(STUBS)
    sys.modules["regex"] = re
    sys.path.insert(0, checkout)
    import torch
    torch.cuda.get_device_capability = lambda *device: (9, 0)
    torch.cuda.get_device_properties = lambda *device: types.SimpleNamespace(
        major=9, minor=0, total_memory=80 << 30)
    torch.cuda.device_count = lambda: 8
    torch.cuda.is_available = lambda: True
    torch.distributed.is_initialized = lambda: False
    importlib.import_module("torch.utils.cpp_extension").CUDA_HOME = \
        framework_shims.NO_FILE


def arguments_of(script, torchrun):
    """What torchrun is given, and the environment that the script sets."""
    env = {"PATH": torchrun + ":" + os.environ["PATH"], "MEGATRON": "/m",
           "NODE_RANK": "0", "MASTER_ADDR": "localhost"}
    out = subprocess.run(["bash", script], env=env, check=True,
                         capture_output=True).stdout.decode()
    words, variables = out.split("\0\0")
    words = words.split("\0")
    pairs = dict(line.split("=", 1) for line in variables.split("\0") if line)
    at = words.index("/m/pretrain_gpt.py")
    world = int(words[words.index("--nnodes") + 1]) * \
        int(words[words.index("--nproc-per-node") + 1])
    return words[at + 1:], pairs, world


def check(words, variables, world):
    """Raises what Megatron raises."""
    from megatron.training import arguments
    from megatron.core.optimizer.optimizer_config import OptimizerConfig
    import dataclasses
    for name in list(os.environ):
        if name.startswith(("CUDA_", "NVTE_", "NCCL_", "NVIDIA_")):
            del os.environ[name]
    os.environ.update({k: v for k, v in variables.items() if k.startswith(
        ("CUDA_", "NVTE_", "NCCL_", "NVIDIA_"))})
    os.environ.update(WORLD_SIZE=str(world), RANK="0", LOCAL_RANK="0")
    sys.argv = ["pretrain_gpt.py"] + words
    args = arguments.parse_args()
    args.rank, args.world_size = 0, world
    arguments.validate_args(args)
    arguments.core_transformer_config_from_args(args)
    known = {f.name for f in dataclasses.fields(OptimizerConfig) if f.init}
    OptimizerConfig(**{k: v for k, v in vars(args).items() if k in known})
    data = world // (args.tensor_model_parallel_size *
                     args.pipeline_model_parallel_size *
                     args.context_parallel_size)
    assert args.global_batch_size % (args.micro_batch_size * data) == 0
    return args


def verdict(folder, torchrun):
    try:
        words, variables, world = arguments_of(
            os.path.join(folder, "megatron.sh"), torchrun)
        said = io.StringIO()
        with contextlib.redirect_stdout(said), \
                contextlib.redirect_stderr(said), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            check(words, variables, world)
        return None
    except SystemExit:
        lines = said.getvalue().strip().splitlines()
        return lines[-1] if lines else "exit"
    except Exception as why:  # whatever Megatron raises
        return f"{type(why).__name__}: {why}"


def main():
    checkout, folder, report = sys.argv[1:]
    install(checkout)
    with open(os.path.join(folder, "plans.tsv"), encoding="utf-8") as file:
        plans = [line.rstrip("\n").split("\t") for line in file]
    n = {"allowed": 0, "accepted": 0, "refused": 0, "accepted_all_the_same": 0,
         "known_later": 0}
    wrong, lax = [], {}
    with tempfile.TemporaryDirectory() as torchrun:
        path = os.path.join(torchrun, "torchrun")
        with open(path, "w", encoding="utf-8") as file:
            file.write("#!/bin/bash\nprintf '%s\\0' \"$@\"\n"
                       "printf '\\0'\nenv -0\n")
        os.chmod(path, 0o755)
        for number, ours, plan, why in plans:
            theirs = verdict(os.path.join(folder, number), torchrun)
            n[ours] += 1
            if ours == "allowed" and theirs is None:
                n["accepted"] += 1
            elif ours == "allowed":
                wrong.append({"plan": plan, "number": number, "they": theirs})
            elif theirs is None and (why.endswith(LATER) or
                                     NO_WORD.search(why)):
                n["known_later"] += 1
            elif theirs is None:
                n["accepted_all_the_same"] += 1
                lax[why] = lax.get(why, 0) + 1
    for row in wrong:
        print(f"refused: {row['plan']}\n    {row['they'][:300]}")
    for why, count in lax.items():
        print(f"accepted {count} times: {why}")
    with open(report, "w", encoding="utf-8") as file:
        json.dump({**n, "wrong": wrong, "accepted_here_refused": lax}, file,
                  indent=1)
    return 1 if wrong or lax else 0


if __name__ == "__main__":
    sys.exit(main())
