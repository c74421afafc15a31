"""Random plans through `forerun export --to accelerate`, and what Accelerate
itself makes of them: its configuration (load_config_from_file), its launcher
(accelerate launch, up to the environment of the processes) and the plugins that
read that environment.  Stand-ins for torch: no GPU and no PyTorch are needed.

    accelerate_configs.py make WORK           random plans, shared by releases
    accelerate_configs.py check WORK FOLDER   one checkout
"""
import contextlib
import enum
import importlib.metadata
import json
import os
import random
import re
import subprocess
import sys
import types

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import framework_shims  # noqa: E402

N_PLANS = int(os.environ.get("PLANS", "200"))
# Places of --version, by the release that brought them.
VERSIONS = ["1.0", "1.6", "1.10", "1.12", "1.13", "1.14"]
FAILED = (SystemExit, Exception)


# ---- plans ------------------------------------------------------------------

def random_options(rng):
    zero = rng.choice([0, 0, 1, 2, 3, 3, 3])
    options = {"--dp": rng.choice([1, 2, 4, 8]),
               "--tp": rng.choice([1, 1, 1, 2, 4]),
               "--pp": rng.choice([1, 1, 1, 2, 4]),
               "--cp": rng.choice([1, 1, 1, 2]),
               "--cp-kind": rng.choice(["ring", "all-gather", "all-to-all"]),
               "--zero": zero,
               "--micro-batch": rng.choice([1, 2]),
               "--recompute": rng.choice(["none", "full", "selective"]),
               "--precision": rng.choice(["bf16", "bf16", "f16", "f32"]),
               "--grad-dtype": rng.choice(["bf16", "f16", "f32"]),
               "--kernels": rng.choice(["eager", "eager", "compiled"])}
    words = [str(w) for pair in options.items() for w in pair]
    words += rng.choice([[], ["--no-overlap"]])
    words += rng.choice([[], ["--no-gather-overlap"]])
    words += rng.choice([[], [], ["--offload-optimizer"]])
    words += rng.choice([[], [], ["--sequence-parallel"]])
    words += rng.choice([[], [], ["--no-zero-reshard"]])
    words += rng.choice([[], [], ["--zero-group", "2"]])
    return words


def make(work):
    """Plan files that forerun can simulate, WORK/plans/N.json."""
    rng = random.Random(2385)
    folder = os.path.join(work, "plans")
    os.makedirs(folder)
    n = 0
    while n < 6 * N_PLANS:
        model = rng.choice(["gpt2-1.5b", "llama-3-8b"])
        made = subprocess.run(
            ["forerun", "simulate", model, "dgx-h100:16", *random_options(rng),
             "--seq", "512", "--global-batch", "64", "-q", "-o",
             os.path.join(folder, f"{n}.json")], capture_output=True)
        n += made.returncode == 0


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
    is_kept = not plan.get("zero_reshard", True)
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
         plan.get("offload_optimizer", False))
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
         plan["tp"] > 1 and plan["sequence_parallel"])
    same("recompute", given.get("recompute_granularity") or "none",
         plan["recompute"])
    if given.get("recompute_granularity") == "selective" and given.get(
            "recompute_method") is not None:
        raise ValueError("Megatron-LM forbids a method beside selective")
    # _prepare_megatron_lm()
    plugin.set_training_args(plan["micro_batch"],
                             world // (plugin.tp_degree * plugin.pp_degree))
    same("global batch", plugin.global_batch_size, 64)


def check_files(folder, plan):
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
    return ("fsdp" if args.use_fsdp else "deepspeed" if args.use_deepspeed
            else "megatron" if args.use_megatron_lm else "ddp")


def check(work, checkout):
    with open(os.path.join(checkout, "setup.py")) as file:
        release = re.search(r'version="([^"]+)"', file.read()).group(1)
    number = tuple(int(n) for n in release.split(".")[:2])
    version = [v for v in VERSIONS
               if tuple(int(n) for n in v.split(".")) <= number][-1]
    sys.path.insert(0, os.path.join(checkout, "src"))
    make_torch()
    tally = {"release": release, "version": version, "accepted": 0,
             "refused_by_table": 0, "backends": {}, "disagree": []}
    out = os.path.join(work, "files")
    for i in range(6 * N_PLANS):
        if tally["accepted"] + len(tally["disagree"]) == N_PLANS:
            break
        name = os.path.join(work, "plans", f"{i}.json")
        done = subprocess.run(["forerun", "export", name, "--to", "accelerate",
                               "--version", version, "-o", out],
                              capture_output=True, text=True)
        if done.returncode != 0:
            tally["refused_by_table"] += 1
            continue
        with open(name) as file:
            plan = json.load(file)["plan"]
        before = os.getcwd()
        os.chdir(out)
        try:
            backend = check_files(out, plan)
            tally["accepted"] += 1
            tally["backends"][backend] = tally["backends"].get(backend, 0) + 1
        except FAILED as why:  # whatever their checks raise
            tally["disagree"].append(f"{name}: {why!r}")
        os.chdir(before)
    tally["plans"] = tally["accepted"] + len(tally["disagree"])
    with open(os.path.join(work, f"report-{release}.json"), "w") as file:
        json.dump(tally, file)
    print(f"accelerate {release}: {tally['accepted']} of {tally['plans']} "
          f"accepted {tally['backends']}, {tally['refused_by_table']} were "
          "refused by our table")
    for line in tally["disagree"][:5]:
        print("  " + line)
    return 1 if tally["disagree"] else 0


if sys.argv[1] == "make":
    make(sys.argv[2])
else:
    sys.exit(check(sys.argv[2], sys.argv[3]))
