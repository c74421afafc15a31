#!/usr/bin/env python3
"""Recipes for Megatron-Bridge, by its own ConfigContainer.

usage: bridge_recipes.py CHECKOUT FOLDER REPORT.json
FOLDER is what tests/record/random_exports writes, MEGATRON_CORE_DIR the
Megatron-LM that the Bridge is built on.  Each recipe.py is imported, its
forerun_config() called as on its number of ranks, and what comes of it goes
through runtime_config_update(), which ends in ConfigContainer.validate(), with
the providers' and Megatron Core's own checks, without torch (framework_shims.py), as on a GPU of generation
Blackwell.
"""
import importlib
import os
import re
import runpy
import sys
import types

import framework_shims
import megatron_arguments as megatron
import verdicts

STUBS = {"torch", "transformer_engine", "triton", "einops", "tqdm",
         "requests", "transformers", "omegaconf", "hydra", "datasets",
         "safetensors", "huggingface_hub", "wandb", "nvidia_resiliency_ext",
         "modelopt", "mamba_ssm", "causal_conv1d", "flash_attn", "peft",
         "accelerate", "PIL", "rich", "tensorstore", "zarr", "megatron_energon",
         "qwen_vl_utils", "timm", "diffusers", "apex", "nltk", "sentencepiece",
         "tiktoken", "multistorageclient", "fla", "emerging_optimizers",
         "comet_ml", "mlflow", "jsonlines", "scipy", "regex", "onnx",
         "nvdlfw_inspect", "nemo_run", "torchvision", "nvtx", "psutil",
         "megatron.energon", "numpy.dtypes", "filelock"}

# Megatron-LM says so in its parser of arguments, which the Bridge has not, or
# of precisions that a recipe says nothing of (tf32).
OF_ARGUMENTS = ("it refuses Transformer Engine's fused loss",
                "bf16 or f16 with ep-overlap")


def install(checkout, core):
    framework_shims.install(STUBS)
    import torch
    torch.cuda.get_device_capability = lambda *device: (10, 0)
    torch.cuda.get_device_properties = lambda *device: types.SimpleNamespace(
        major=10, minor=0, name="NVIDIA B200", total_memory=180 << 30)
    torch.cuda.device_count = lambda: 8
    torch.cuda.is_available = lambda: True
    torch.distributed.is_initialized = lambda: False
    torch.distributed.is_available = lambda: True
    importlib.import_module("torch.utils.cpp_extension").CUDA_HOME = \
        framework_shims.NO_FILE
    sys.path[:0] = [os.path.join(checkout, "src"), core]


def check(folder):
    path = os.path.join(folder, "recipe.py")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    ranks = re.search(r"--nnodes (\d+) --nproc_per_node (\d+)", text)
    for name in list(os.environ):
        if name.startswith(("CUDA_", "NVTE_", "NCCL_")):
            del os.environ[name]
    world = int(ranks[1]) * int(ranks[2])
    os.environ["WORLD_SIZE"] = str(world)
    importlib.import_module("torch.distributed").get_world_size = \
        lambda *group: world
    config = runpy.run_path(path, run_name="recipe")["forerun_config"]()
    from megatron.bridge.training.config import runtime_config_update
    runtime_config_update(config)


def main():
    checkout, folder, report = sys.argv[1:]
    install(checkout, os.environ["MEGATRON_CORE_DIR"])
    return verdicts.judge(check, folder, report,
                          lambda why, plan: (
                              why.endswith(OF_ARGUMENTS + megatron.LATER) or
                              megatron.NO_WORD.search(why)))


if __name__ == "__main__":
    sys.exit(main())
