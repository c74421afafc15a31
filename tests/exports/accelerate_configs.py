"""accelerate_configs.py CHECKOUT FOLDER REPORT: random plans that were exported
to Accelerate, and what it makes of them itself: its configuration
(load_config_from_file), its launcher (accelerate launch, up to the environment
of the processes) and the plugins that read that environment.  Stand-ins for
torch: no GPU and no PyTorch are needed.
"""
import contextlib
import enum
import importlib.metadata
import json
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import framework_shims  # noqa: E402

import verdicts  # noqa: E402

# Rules of ours that Accelerate checks before a process starts.
OF_ITS_OWN = ("ranks to shard over", "a zero-group of more")


def plan_of(folder):
    """The plan of a folder, from the line that describes it."""
    with open(os.path.join(folder, "accelerate.yaml")) as file:
        line = re.search(r"# Plan: (.*)", file.read()).group(1)
    words = line.split()
    plan = {"sp": "sp" in words, "offload": "offload-optimizer" in words,
            "kept": "no-reshard" in words, "recompute": "none",
            "precision": next((w for w in words if w in (
                "bf16", "f16", "tf32")), "f32")}
    for name in ("dp", "tp", "pp", "cp", "mb", "zero"):
        found = re.search(rf"(?:^| ){name}(\d+)(?: |$)", line)
        plan[name] = int(found.group(1)) if found else name != "zero"
    found = re.search(r"recompute=(\w+)", line)
    if found:
        plan["recompute"] = found.group(1)
    return plan


# ---- stand-ins --------------------------------------------------------------

def enum_of(name, *names):
    return enum.Enum(name, {n: i + 1 for i, n in enumerate(names)})


def make_torch():
    """What of torch the plugins ask for by type or value."""
    framework_shims.install(["torch", "numpy", "huggingface_hub", "psutil",
                             "safetensors", "transformers", "deepspeed",
                             "tqdm"])
    of_others = importlib.metadata.version
    known = {"torch": "2.8.0", "transformers": "4.57.0", "deepspeed": "0.19.0",
             "numpy": "2.0.0"}
    importlib.metadata.version = lambda name: (
        known[name] if name in known else of_others(name))
    import torch
    torch.dtype = type("dtype", (), {})
    for name in ("float16", "bfloat16", "float32"):
        setattr(torch, name, torch.dtype())
    torch.cuda.is_available = lambda: True
    torch.cuda.device_count = lambda: 8
    torch.cuda.current_device = lambda: 0
    import torch.distributed.fsdp as fsdp
    import torch.distributed.fsdp.fully_sharded_data_parallel as whole

    class Options:
        def __init__(self, **options):
            self.__dict__.update(options)

    class OffloadPolicy(Options):
        pass

    fsdp.OffloadPolicy = OffloadPolicy
    fsdp.CPUOffloadPolicy = type("CPUOffloadPolicy", (OffloadPolicy,), {})
    for name in ("CPUOffload", "MixedPrecision", "MixedPrecisionPolicy"):
        setattr(fsdp, name, type(name, (Options,), {}))
    fsdp.ShardingStrategy = enum_of(
        "ShardingStrategy", "FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD",
        "HYBRID_SHARD", "_HYBRID_SHARD_ZERO2")
    fsdp.BackwardPrefetch = enum_of("BackwardPrefetch", "BACKWARD_PRE",
                                    "BACKWARD_POST")
    whole.StateDictType = enum_of("StateDictType", "FULL_STATE_DICT",
                                  "LOCAL_STATE_DICT", "SHARDED_STATE_DICT")
    for name in ("FullOptimStateDictConfig", "FullStateDictConfig",
                 "ShardedOptimStateDictConfig", "ShardedStateDictConfig"):
        setattr(whole, name, type(name, (Options,), {}))
    for name in ("ShardingStrategy", "BackwardPrefetch", "CPUOffload"):
        setattr(whole, name, getattr(fsdp, name))


@contextlib.contextmanager
def environment(values):
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update(values)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def same(what, theirs, ours):
    if theirs != ours:
        raise ValueError(f"{what} is {theirs}, the plan's is {ours}")


# ---- what Accelerate says ---------------------------------------------------

def launched(path):
    """The arguments and the environment that its launcher comes to."""
    from accelerate.commands import launch
    from accelerate.utils import launch as steps
    steps.is_port_in_use = lambda port=None: False
    args = launch.launch_command_parser().parse_args(
        ["--config_file", path, "--machine_rank", "0", "--main_process_ip",
         "127.0.0.1", "train.py"])
    args, defaults, has_precision = launch._validate_launch_command(args)
    if args.use_deepspeed:
        fields = list(defaults.deepspeed_config)
        if has_precision:
            fields.append("mixed_precision")
        args.deepspeed_fields_from_accelerate_config = ",".join(fields)
        return args, steps.prepare_deepspeed_cmd_env(args)[1]
    if args.use_fsdp or args.use_megatron_lm or args.multi_gpu:
        return args, steps.prepare_multi_gpu_env(args)
    return args, steps.prepare_simple_launcher_cmd_env(args)[1]


def check_mesh(env, plan, world):
    if "ACCELERATE_USE_PARALLELISM_CONFIG" not in env:
        return
    from accelerate.parallelism_config import ParallelismConfig
    mesh = ParallelismConfig()
    same("tp", mesh.tp_size, plan["tp"] if env.get(
        "ACCELERATE_USE_FSDP") else 1)
    if getattr(mesh, "sp_size", 1) > 1:
        same("sp_size", mesh.sp_size, plan["cp"])
        same("data parallel ranks", mesh.data_parallel_size, plan["dp"])
    else:
        same("cp", mesh.cp_size, plan["cp"])
        same("total_size", mesh.total_size, world)
        if not mesh.dp_shard_cp_dim_names:
            raise ValueError("fsdp_dim_names names no dimension of the mesh")


def check_fsdp(args, plan, precision):
    from accelerate.utils import dataclasses
    dataclasses.is_cuda_available = lambda *a, **k: True
    plugin = dataclasses.FullyShardedDataParallelPlugin()
    if precision != "no":
        plugin.set_mixed_precision(precision)
    is_kept = plan["kept"]
    if getattr(plugin, "fsdp_version", 1) == 2:
        same("reshard_after_forward", plugin.reshard_after_forward, not is_kept)
    else:
        same("sharding_strategy", plugin.sharding_strategy.name,
             "SHARD_GRAD_OP" if is_kept else "FULL_SHARD")
    same("activation_checkpointing", plugin.activation_checkpointing,
         plan["recompute"] == "full")


def check_deepspeed(plan, precision):
    from accelerate.utils import dataclasses
    plugin = dataclasses.DeepSpeedPlugin()
    plugin.set_mixed_precision(precision)
    same("zero_stage", plugin.zero_stage, plan["zero"])
    same("offload", plugin.offload_optimizer_device == "cpu",
         plan["offload"])
    same("bf16", plugin.deepspeed_config["bf16"]["enabled"],
         plan["precision"] == "bf16")
    same("zero3_init_flag", plugin.zero3_init_flag, plan["zero"] == 3)


def check_megatron(plan, precision, world):
    from accelerate.utils import dataclasses
    plugin = dataclasses.MegatronLMPlugin()
    plugin.set_mixed_precision(precision)
    given = plugin.megatron_lm_default_args
    same("tp", given["tensor_model_parallel_size"], plan["tp"])
    same("pp", given["pipeline_model_parallel_size"], plan["pp"])
    same("cp", given.get("context_parallel_size", 1), plan["cp"])
    same("sharded optimizer", given["use_distributed_optimizer"],
         plan["zero"] == 1)
    same("sequence parallel", given["sequence_parallel"],
         plan["tp"] > 1 and plan["sp"])
    same("recompute", given.get("recompute_granularity") or "none",
         plan["recompute"])
    if given.get("recompute_granularity") == "selective" and given.get(
            "recompute_method") is not None:
        raise ValueError("Megatron-LM forbids a method beside selective")
    # _prepare_megatron_lm()
    plugin.set_training_args(plan["mb"],
                             world // (plugin.tp_degree * plugin.pp_degree))


def check_folder(folder):
    plan = plan_of(folder)
    path = os.path.join(folder, "accelerate.yaml")
    from accelerate.commands.config.config_args import load_config_from_file
    load_config_from_file(path)
    args, env = launched(path)
    world = plan["dp"] * plan["tp"] * plan["pp"] * plan["cp"]
    same("num_processes", args.num_processes, world)
    precision = args.mixed_precision.lower()
    if not args.use_deepspeed:
        same("precision", precision, {"bf16": "bf16", "f16": "fp16"}.get(
            plan["precision"], "no"))
    with environment(env):
        check_mesh(env, plan, world)
        if args.use_fsdp:
            check_fsdp(args, plan, precision)
        elif args.use_deepspeed:
            check_deepspeed(plan, precision)
        elif args.use_megatron_lm:
            check_megatron(plan, precision, world)
        else:
            same("zero", 0, plan["zero"])
    TALLY[args.use_fsdp and "fsdp" or args.use_deepspeed and "deepspeed" or
          args.use_megatron_lm and "megatron" or "ddp"] += 1


TALLY = {"ddp": 0, "fsdp": 0, "deepspeed": 0, "megatron": 0}


def main():
    checkout, folder, report = sys.argv[1:]
    sys.path.insert(0, os.path.join(checkout, "src"))
    make_torch()

    def check(plan):
        before = os.getcwd()
        os.chdir(plan)  # deepspeed_config_file is relative
        try:
            return check_folder(os.path.abspath("."))
        finally:
            os.chdir(before)

    status = verdicts.judge(
        check, folder, report,
        # The others are of DeepSpeed and Megatron-LM, or of what a plan means.
        lambda why, plan: not why.startswith(OF_ITS_OWN), backends=TALLY)
    print("  accepted by backend:", TALLY)
    return status


if __name__ == "__main__":
    sys.exit(main())
