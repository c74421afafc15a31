#!/usr/bin/env python3
"""Plans that are exported to Megatron-LM, by its own parser and checks.

usage: megatron_arguments.py MEGATRON_DIR FOLDER REPORT.json
FOLDER is what tests/record/random_exports writes.  Each script is run with a
torchrun that says what it is given; its arguments go through parse_args(),
validate_args() and core_transformer_config_from_args() of the checkout, and
OptimizerConfig, without torch (framework_shims.py) and as on a GPU of
generation Hopper.
"""
import importlib
import os
import re
import subprocess
import sys
import tempfile
import types

import framework_shims
import verdicts

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
        int(words[words.index("--nproc_per_node") + 1])
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


def main():
    checkout, folder, report = sys.argv[1:]
    install(checkout)
    with tempfile.TemporaryDirectory() as torchrun:
        path = os.path.join(torchrun, "torchrun")
        with open(path, "w", encoding="utf-8") as file:
            file.write("#!/bin/bash\nprintf '%s\\0' \"$@\"\n"
                       "printf '\\0'\nenv -0\n")
        os.chmod(path, 0o755)
        return verdicts.judge(
            lambda plan: check(*arguments_of(
                os.path.join(plan, "megatron.sh"), torchrun)),
            folder, report,
            lambda why, plan: why.endswith(LATER) or NO_WORD.search(why))


if __name__ == "__main__":
    sys.exit(main())
