#!/usr/bin/env python3
"""Plans that are exported to torchtitan, by its own configuration and trainer.

usage: torchtitan_configs.py CHECKOUT FOLDER REPORT.json
FOLDER is what tests/record/random_exports writes.  TOML goes through the
ConfigManager of 0.2, the recipe through that of main; then Trainer.__init__
runs as far as the optimizer: degrees, batch sizes, the model's checks, stages
and schedules.  torch is not needed (framework_shims.py); tyro, which would
read a command line, is a check of the types of all fields.
"""
import dataclasses
import enum
import importlib
import math
import os
import re
import sys
import types
import typing
from unittest import mock

import framework_shims
import verdicts

STUBS = {"torch", "tyro", "spmd_types", "torchao", "numpy", "datasets",
         "tokenizers", "transformers", "wandb", "tensorboard", "triton",
         "jinja2", "grain", "torchdata", "PIL", "einops", "safetensors",
         "psutil", "tqdm", "requests", "fsspec", "torchcomms", "pyarrow",
         "deep_ep", "torchvision", "av", "regex", "torchft"}


class Reached(Exception):
    """The trainer has come to its optimizer: it takes the configuration."""


# ---- tyro: the types of a configuration --------------------------------------

def is_of_type(value, kind):
    origin, of = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        return is_of_type(value, of[0])
    if kind is typing.Any or isinstance(kind, (framework_shims.Stub, str)):
        return True
    if origin is typing.Literal:
        return value in of
    if origin in (typing.Union, types.UnionType):
        return any(is_of_type(value, one) for one in of)
    if origin in (list, tuple):
        return isinstance(value, origin) and (
            not of or all(is_of_type(item, of[0]) for item in value))
    if kind in (int, float):
        return isinstance(value, (int, kind)) and not isinstance(value, bool)
    if origin is not None or not isinstance(kind, type):
        return True
    try:
        return isinstance(value, kind)
    except TypeError:  # a protocol
        return True


def checked(config, where="config"):
    """The same configuration made anew, as tyro makes it: with its checks."""
    kinds = typing.get_type_hints(type(config), include_extras=True)
    made = {}
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        name = f"{where}.{field.name}"
        if not is_of_type(value, kinds[field.name]):
            raise TypeError(f"{name}: {value!r} is no {kinds[field.name]}")
        is_leaf = field.name == "model_spec" or isinstance(value, enum.Enum)
        if dataclasses.is_dataclass(value) and not is_leaf:
            value = checked(value, name)
        if field.init:
            made[field.name] = value
    return type(config)(**made)


# ---- torch.distributed.pipelining --------------------------------------------

class PipelineScheduleSingle:
    """torch/distributed/pipelining/schedules.py: what it asks for."""

    def __init__(self, stage, n_microbatches, **rest):
        if n_microbatches < stage.num_stages:
            raise ValueError("Number of microbatches must be greater than or "
                             "equal to the number of stages")


class PipelineScheduleMulti:
    def __init__(self, stages, n_microbatches, **rest):
        pass


class Interleaved1F1B(PipelineScheduleMulti):
    def __init__(self, stages, n_microbatches, **rest):
        if n_microbatches % max(1, n_microbatches // stages[0].group_size):
            raise ValueError("Interleaved 1F1B requires the number of "
                             "microbatches to be a multiple of the rounds")


class ZBVZeroBubble(PipelineScheduleMulti):
    def __init__(self, stages, n_microbatches, **rest):
        if len(stages) != 2:
            raise ValueError("ZBV requires exactly 2 stages per rank")


class Runtime(PipelineScheduleMulti):
    """_PipelineScheduleRuntime: any order of tasks, from a file."""

    def __init__(self, stages, n_microbatches, **rest):
        self.n_ranks, self.n_micro = stages[0].group_size, n_microbatches

    def _load_csv(self, path):
        with open(path, encoding="utf-8") as file:
            ranks = [line.strip().split(",") for line in file]
        if len(ranks) != self.n_ranks:
            raise ValueError(f"{len(ranks)} lines, not {self.n_ranks}")
        for rank, tasks in enumerate(ranks):
            done = set()
            for task in tasks:
                stage, kind, micro = re.fullmatch(
                    r"(\d+)([FIW])(\d+)", task).groups()
                before = {"F": None, "I": "F", "W": "I"}[kind]
                if int(stage) != rank or (before, micro) not in done | {
                        (None, micro)} or (kind, micro) in done:
                    raise ValueError(f"rank {rank}: {task} is out of order")
                done.add((kind, micro))
            if len(done) != 3 * self.n_micro:
                raise ValueError(f"rank {rank}: {len(done)} tasks")


class Shard:
    """Of spmd_types: a tensor's dimension that ranks share."""

    def __init__(self, dim):
        self.dim = dim


class Stage:
    def __init__(self, model, index, num_stages, device, group, **rest):
        self.num_stages, self.group_size = num_stages, group.size()
        self.is_first, self.is_last = index == 0, index == num_stages - 1


SCHEDULES = {"GPipe": type("GPipe", (PipelineScheduleSingle,), {}),
             "1F1B": type("Schedule1F1B", (PipelineScheduleSingle,), {}),
             "PipelineScheduleSingle": PipelineScheduleSingle,
             "Interleaved1F1B": Interleaved1F1B, "ZBVZeroBubble": ZBVZeroBubble}


def install_pipelining():
    schedules = importlib.import_module("torch.distributed.pipelining.schedules")
    schedules.get_schedule_class = SCHEDULES.__getitem__
    schedules.PipelineScheduleSingle = PipelineScheduleSingle
    schedules.PipelineScheduleMulti = PipelineScheduleMulti
    schedules._PipelineScheduleRuntime = Runtime
    schedules.ScheduleZBVZeroBubble = ZBVZeroBubble
    schedules.ScheduleDualPipeV = type("DualPipeV", (), {})
    importlib.import_module("torch.distributed.pipelining").PipelineStage = Stage


# ---- torchtitan --------------------------------------------------------------

class Mesh:
    """Of torch.distributed.device_mesh, seen by its first rank."""

    group_name = "group"

    def __init__(self, sizes, flat=None):
        self.sizes = sizes
        self.flat = {} if flat is None else flat
        self.mesh_dim_names = tuple(sizes)
        self.ndim = len(sizes)

    def size(self, *axis):
        return math.prod(self.sizes.values())

    def get_local_rank(self, *axis):
        return 0

    def get_group(self, *axis):
        return self

    def __getitem__(self, names):
        names = (names,) if isinstance(names, str) else names
        known = {**self.flat, **self.sizes}
        return Mesh({name: known[name] for name in names}, self.flat)

    def _flatten(self, mesh_dim_name):
        self.flat[mesh_dim_name] = self.size()
        return Mesh({mesh_dim_name: self.size()}, self.flat)

    def _unflatten(self, axis, sizes, names, backend_override):
        if math.prod(sizes) != self.size():
            raise ValueError(f"{self.size()} ranks are not {names} of {sizes}")
        return Mesh(dict(zip(names, sizes)))


def install(checkout):
    framework_shims.install(STUBS)
    import spmd_types
    import torch
    import tyro
    spmd_types.S = spmd_types.Shard = Shard
    torch.library.custom_op = lambda *names, **how: (
        lambda function: framework_shims.make_stub("op", "torch"))
    torch.version.hip = None
    torch.cuda.get_device_capability = lambda *device: (10, 0)
    torch.nn.Module.named_children = lambda *model: ()
    tyro.cli = lambda cls, args, default, registry: checked(default)
    importlib.import_module("torch.distributed.device_mesh").init_device_mesh \
        = lambda device, sizes, mesh_dim_names: Mesh(
            dict(zip(mesh_dim_names, sizes)))
    install_pipelining()
    os.environ["LOCAL_RANK"] = "0"
    sys.path.insert(0, checkout)
    from torchtitan.distributed import utils
    utils.set_determinism = lambda *arguments, **how: None
    utils.get_device_rank = lambda: 0


def stop(*arguments, **how):
    raise Reached


def world_of(config):
    """The ranks that the header of the file counts on."""
    parallelism = config.parallelism
    return (parallelism.data_parallel_replicate_degree *
            parallelism.data_parallel_shard_degree *
            parallelism.tensor_parallel_degree *
            parallelism.context_parallel_degree *
            parallelism.pipeline_parallel_degree)


def train_toml(path):
    """Of 0.2."""
    from torchtitan import train
    from torchtitan.config.manager import ConfigManager
    from torchtitan.distributed import utils
    config = ConfigManager().parse_args(["--job.config_file", path])
    utils.init_distributed = lambda *how, **more: world_of(config)
    os.environ["WORLD_SIZE"] = str(world_of(config))
    spec = train.train_spec_module.get_train_spec(config.model.name)
    stub = framework_shims.make_stub("Made", "torch")
    train.build_metrics_processor = lambda *how: stub

    def model_of(arguments):
        stub.model_args = arguments
        return stub
    for arguments in spec.model_args.values():
        type(arguments).get_nparams_and_flops = lambda *how: (1, 1)
    spec = dataclasses.replace(
        spec, build_tokenizer_fn=None, build_dataloader_fn=lambda **how: stub,
        build_metrics_processor_fn=None, build_loss_fn=lambda *a, **k: stub,
        model_cls=model_of, build_optimizers_fn=stop)
    with mock.patch.object(train.train_spec_module, "get_train_spec",
                           lambda name: spec):
        train.Trainer(config)


def train_recipe(path):
    """Of main."""
    from torchtitan import trainer
    from torchtitan.config.manager import ConfigManager
    from torchtitan.distributed import utils
    sys.modules.pop("forerun_recipe", None)
    sys.path.insert(0, os.path.dirname(path))
    sys.path_importer_cache.clear()
    config = ConfigManager().parse_args(
        ["--module", "forerun_recipe", "--config", "forerun_plan"])
    sys.path.pop(0)
    utils.init_distributed = lambda *how, **more: world_of(config)
    stub = framework_shims.make_stub("Made", "torch")
    model = type(config.model_spec.model)
    stub.verify_module_protocol = lambda: None
    model.build = lambda config: stub
    model.get_nparams_and_flops = lambda *how: (1, 1)
    type(config.loss).build = lambda *how, **more: stub
    type(config.metrics).build = lambda *how, **more: stub
    type(config.optimizer).build = stop
    trainer.Trainer(config)


def check(folder):
    os.chdir(folder)
    toml = os.path.join(folder, "torchtitan.toml")
    recipe = os.path.join(folder, "forerun_recipe.py")
    try:
        if os.path.exists(toml):
            train_toml(toml)
        else:
            train_recipe(recipe)
    except Reached:
        return
    raise RuntimeError("the trainer never came to its optimizer")


# What torchtitan does not look at, as it would train something else, and what
# its configuration has no word for.
LATER = ("precision f32 without FSDP in tensor and pipeline parallelism",
         "zero 3 with cp, which shards parameters too",
         "zero 3 with offload-optimizer", "sequence-parallel with tp",
         "no cuda-graphs before main", "expert-dispatch all-to-all before 0.2.1", "a zero-group that cp divides",
         "more than one rank to shard over with zero 3",
         "scaling current or block with fp8", "etp 1 or tp", "etp 1 with ep, tp without", "cp-kind all-gather",
         # It has more stages, or stages of other lengths.
         "layers that pp x vpp divides, or a layer-split")


def is_later(why, plan):
    """DDP beside tp and pp is refused by Llama's code alone."""
    return why.endswith(LATER) or (
        plan.startswith("deepseek") and why.endswith("(DDP)"))


def main():
    checkout, folder, report = map(os.path.abspath, sys.argv[1:])
    install(checkout)
    return verdicts.judge(check, folder, report, is_later)


if __name__ == "__main__":
    sys.exit(main())
