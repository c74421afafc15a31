#!/usr/bin/env python3
"""Plans that are exported to DeepSpeed, by its own configuration and engine.

usage: deepspeed_configs.py CHECKOUT FOLDER REPORT.json
FOLDER is what tests/record/random_exports writes.  ds_config.json goes through
DeepSpeedConfig, then through what DeepSpeedEngine and PipelineEngine check of
it as they are made: devices and types, experts and their folding, the wrapper
of the optimizer, ZeRO.  torch is not needed (framework_shims.py); pydantic is.
"""
import json
import os
import re
import sys
from unittest import mock

import framework_shims
import verdicts

STUBS = {"torch", "hjson", "numpy", "cpuinfo", "psutil", "tqdm", "einops",
         "msgpack", "ninja", "transformers", "triton", "safetensors", "mpi4py",
         "deepspeed_kernels"}

# What DeepSpeed takes, and trains something else: its checkpoints are those of
# the script, and what it does not overlap it says in a warning, or nowhere.
LATER = ("ZeRO with offload-optimizer",  # without ZeRO it is not read
         "recompute full with offload-activations",
         "no-overlap without ZeRO, with a pipeline, and with bf16 weights whose "
         "f32 gradients ZeRO 1 reduces",
         # Ulysses finds it as attention is called, its groups as they are made.
         "heads that cp divides (Ulysses)", "tp 1 and pp 1 with cp (Ulysses)",
         # MiCS finds it as its optimizer is made, without zero 3 it is written
         # nowhere.
         "zero 3, tp 1, cp 1, ep 1 and no offload-optimizer with a zero-group "
         "(MiCS)",
         # Of experts without ep, or written nowhere.
         "etp 1 with ep, tp without")


class Reached(Exception):
    """The engine has come to its process groups: it takes the plan."""


class Ranks:
    """mpu: the first rank's view of pipeline, tensor and data parallel."""

    def __init__(self, world, pp, tp):
        self.pp, self.tp, self.dp = pp, tp, world // (pp * tp)

    def get_pipe_parallel_world_size(self):
        return self.pp

    get_pipeline_model_parallel_world_size = get_pipe_parallel_world_size

    def get_tensor_model_parallel_world_size(self):
        return self.tp

    def get_data_parallel_world_size(self):
        return self.dp

    def get_sequence_parallel_world_size(self):
        return 1

    @property
    def data_parallel_size(self):
        return self.dp

    @property
    def pipe_parallel_size(self):
        return self.pp

    def get_global_rank(self):
        return 0

    def get_stage_id(self):
        raise Reached


def stop(*arguments, **how):
    raise Reached


def install(checkout):
    framework_shims.install(STUBS)
    import torch
    torch.distributed.ReduceOp = framework_shims.make_stub("ReduceOp", "torch")
    torch.distributed.is_initialized = lambda: False
    torch.__version__ = "2.8.0"
    torch.version.__version__ = "2.8.0"
    torch.cuda.is_available = lambda: True
    torch.cuda.device_count = lambda: 8
    os.environ["DS_ACCELERATOR"] = "cuda"
    os.environ["DS_IGNORE_CUDA_DETECTION"] = "1"
    sys.path.insert(0, checkout)


def engine_of(config, ranks, world):
    """An engine as its __init__ has it before it makes process groups."""
    from deepspeed.runtime.engine import DeepSpeedEngine
    from deepspeed.utils import groups
    cp = config.get("sequence_parallel_size", 1)
    groups._get_sequence_parallel_world_size = lambda: cp

    def begin(engine):
        from deepspeed.runtime import config as theirs
        theirs.dist.get_rank = lambda *group: 0
        theirs.dist.get_world_size = lambda *group: world
        mpu = ranks if ranks.pp > 1 or (ranks.tp > 1 and cp == 1) else None
        state = engine.__dict__
        state.update(
            _config=theirs.DeepSpeedConfig(config, mpu),
            client_optimizer=None, client_lr_scheduler=None, module=None,
            mpu=ranks if ranks.pp > 1 else None, has_moe_layers=False,
            pipeline_parallelism=ranks.pp > 1, global_rank=0, optimizer=None,
            dp_world_size=ranks.dp, zenflow=False, sequence_parallel_size=cp)
        engine._do_sanity_check()
        try:
            engine._configure_expert_parallel(None)
        except Reached:
            state["has_moe_layers"] = True
        if engine.zero_optimization_stage() == 3:
            check_experts(engine)
        engine._do_optimizer_sanity_check(engine.optimizer_name())
    return DeepSpeedEngine, begin


def check_experts(engine):
    """Experts of AutoEP in the model, which is what ZeRO 3 looks at."""
    from deepspeed.module_inject.auto_ep_layer import AutoEPMoELayer
    engine.__dict__["module"] = type("Model", (), {
        "named_modules": lambda model: [
            ("experts", AutoEPMoELayer.__new__(AutoEPMoELayer))]})()
    engine._validate_zero3_moe_compatibility()


def check(folder):
    from deepspeed.runtime import engine as engines
    from deepspeed.runtime.pipe import engine as pipes
    from deepspeed.utils import groups
    groups._create_expert_and_data_parallel = stop
    engines.is_zero_supported_optimizer = lambda name: True
    with open(os.path.join(folder, "ds_config.json"), encoding="utf-8") as file:
        config = json.load(file)
    with open(os.path.join(folder, "run_deepspeed.sh"),
              encoding="utf-8") as file:
        script = file.read()
    nodes = re.search(r"--num_nodes (\d+)", script)
    world = int(re.search(r"--num_gpus (\d+)", script)[1]) * \
        int(nodes[1] if nodes else 1)
    ranks = Ranks(world, config.get("pipeline", {}).get("stages", 1),
                  config.get("tensor_parallel", {}).get("autotp_size", 1))
    cls, begin = engine_of(config, ranks, world)
    if ranks.pp == 1:
        begin(cls.__new__(cls))
        return
    pipe = pipes.PipelineEngine
    module = type("Module", (pipes.PipelineModule,), {
        "__init__": lambda module: None, "_grid": ranks})()

    def begin_pipe(engine, *arguments, **how):
        begin(engine)
        engine.__dict__["module"] = module
    with mock.patch.object(cls, "__init__", begin_pipe):
        try:
            pipe.__init__(pipe.__new__(pipe))
        except Reached:
            return
    raise RuntimeError("the pipeline's engine never came to its stages")


def main():
    checkout, folder, report = sys.argv[1:]
    install(checkout)
    with open(os.path.join(checkout, "version.txt"), encoding="utf-8") as file:
        version = file.read().strip()
    return verdicts.judge(check, folder, report,
                          lambda why, plan: why.endswith(LATER),
                          version=version)


if __name__ == "__main__":
    sys.exit(main())
